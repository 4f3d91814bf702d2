//go:build linux

package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"swarmdeck/drivers/builtin"
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/git/lfs"
	"swarmdeck/drivers/host/hold"
	"swarmdeck/engine/core"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/attach"
	"swarmdeck/ui/door/cockpit"
	"swarmdeck/ui/door/socket"
	"swarmdeck/ui/keyring"
	"swarmdeck/ui/serve"
	"swarmdeck/ui/term"
)

// QueryWord makes this program the process of one json-query.
const QueryWord = "-json-query"

// Run carries out one command line, whose first word names the program, closes what it opened and returns the
// exit code. A signal ends the command in order; a second one ends the
// process at once.
func Run(args []string) int { return RunBy(core.SystemClock{}, args) }

// RunBy is Run by another clock than the system's.
func RunBy(clock core.Clock, args []string) int {
	if code, is := cell.Entered(args, os.Environ()); is {
		return code
	}
	if code, is := lfs.Entered(args); is {
		return code
	}
	if code, is := hold.Entered(args); is {
		return code
	}
	args = args[1:]
	if len(args) == 1 && args[0] == QueryWord {
		return builtin.Answer(os.Stdin, os.Stdout, os.Stderr)
	}
	core.RelaxGC()
	var who hands
	ctx, stop := who.context()
	defer stop()
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
	defer keyring.Forget(os.Getenv)
	own := &machine{dir: dir, clock: clock, fail: fail, seen: term.IsTerminal(os.Stderr), warn: func(err error) { fmt.Fprintf(os.Stderr, "swarmdeck: warning: %v\n", err) }}
	in := &socket.Input{File: os.Stdin}
	own.here = in.Stay
	engines := newEngines(own)
	env := &command.Env{
		Caller: core.Caller{Kind: core.Operator, Door: core.DoorCLI, Proof: socket.Proof(), Seat: socket.Seat()},
		Dir:    dir,
		Clock:  clock,
		Stdin:  in, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv,
		Open:   engines.open,
		Close:  engines.close,
		Doctor: doctor, Troubles: troubles, Stuck: engines.stuck, LogIn: who.logIn(), Lend: who.lend,
		Doors: command.Doors{Cockpit: cockpit.Show, Script: cockpit.Play, MCP: engines.mcp, Serve: engines.serve, Attach: attach.To, Connect: connectMCP, CADEnv: serveCAD},
	}
	env.Elsewhere = func(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) (int, error) {
		return socket.Talk(ctx, own.conn, own.login, dir, args, in, out, errs)
	}
	elsewhere := socket.Elsewhere{In: in, Login: func() *serve.Login { return own.login }}
	for {
		code := command.Run(ctx, env, args)
		if err := engines.leaves(code == command.ExitStore); err != nil {
			fmt.Fprintf(os.Stderr, "swarmdeck: close: %v\n", err)
			if code == command.ExitOK {
				code = command.ExitFailed
			}
		}
		if code != command.ExitElsewhere {
			return code
		}
		code, again := elsewhere.Run(ctx, env, own.conn, args)
		if !again {
			return code
		}
	}
}
