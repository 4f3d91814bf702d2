//go:build !linux

package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/attach"
	"swarmdeck/ui/door/socket"
)

// Run carries out one command line, whose first word names the program, and returns the exit code. What holds agents is
// Linux's, so there is no engine here: attach opens the cockpit of one elsewhere.
func Run(args []string) int {
	args = args[1:]
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "swarmdeck: find the current directory: %v\n", err)
		return command.ExitFailed
	}
	needsLinux := func() error {
		return core.Errorf(core.Unavailable, "%s: needs Linux; `swarmdeck attach HOST` opens the cockpit of a machine that has it",
			cmp.Or(command.Describe(args).Path, "cockpit"))
	}
	return command.Run(ctx, &command.Env{
		Caller: core.Caller{Kind: core.Operator, Door: core.DoorCLI, Proof: socket.Proof()},
		Dir:    dir,
		Stdin:  os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv,
		Open:   func(context.Context, command.Need) (*engine.Engine, error) { return nil, needsLinux() },
		Doors: command.Doors{
			Attach:  attach.To,
			Cockpit: func(context.Context, *command.Env, command.Start) error { return needsLinux() },
			Script:  func(context.Context, *command.Env, command.Start) error { return needsLinux() },
			MCP:     func(context.Context, *command.Env, command.Start, command.MCP) error { return needsLinux() },
			Serve:   func(context.Context, *command.Env, command.Start, command.Serve) error { return needsLinux() },
			Connect: func(context.Context, *command.Env, string, string) error { return needsLinux() },
			CADEnv:  func(context.Context, *command.Env, command.CADEnv) error { return needsLinux() },
		},
	}, args)
}
