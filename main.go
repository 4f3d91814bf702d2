// Command swarmdeck is a cockpit for swarms of agents: one binary, one engine
// per data file, and one command language behind every door.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"swarmdeck/drivers/builtin"
	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/ui/command"
)

func main() {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		os.Exit(code)
	}
	os.Exit(run(os.Args[1:]))
}

// queryWord makes this program the process of one json-query.
const queryWord = "-json-query"

// run carries out one command line, closes what it opened and returns the
// exit code. A signal ends the command in order; a second one ends the
// process at once.
func run(args []string) int {
	if len(args) == 1 && args[0] == queryWord {
		return builtin.Answer(os.Stdin, os.Stdout, os.Stderr)
	}
	core.RelaxGC()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)
	// A limit on file sizes is to fail a commit, not to end the process. Caught
	// rather than ignored, because a task's process would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "swarmdeck: find the current directory: %v\n", err)
		return command.ExitFailed
	}
	house := &house{dir: dir, fail: fail, warn: func(err error) { fmt.Fprintf(os.Stderr, "swarmdeck: warning: %v\n", err) }}
	in := &input{File: os.Stdin}
	house.stay = in.stay
	env := &command.Env{
		Caller: core.Caller{Kind: core.Operator, Door: core.DoorCLI, Person: thisUser()},
		Dir:    dir,
		Stdin:  in, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv,
		Open:   house.open,
		Close:  house.close,
		Doctor: doctor, Troubles: troubles,
		Doors: command.Doors{Cockpit: cockpit, Script: playScript, MCP: serveMCP, Serve: house.serve, Attach: attachFar, Connect: connectMCP, CADEnv: serveCAD},
	}
	var heirs heirs
	for {
		code := command.Run(ctx, env, args)
		if err := house.close(); err != nil {
			fmt.Fprintf(os.Stderr, "swarmdeck: close: %v\n", err)
			if code == command.ExitOK {
				code = command.ExitFailed
			}
		}
		if code != exitElsewhere {
			return code
		}
		code, again := elsewhere(ctx, env, house.conn, args, in, &heirs)
		if !again {
			return code
		}
	}
}
