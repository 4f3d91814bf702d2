package main

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/ui"
	"swarmdeck/ui/command"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// cockpit is the full-screen door.
func cockpit(ctx context.Context, s command.Start) error {
	keys, err := command.LoadKeys(os.Getenv)
	if err != nil {
		return err
	}
	theme, err := command.LoadTheme(os.Getenv, s.Theme)
	if err != nil {
		return err
	}
	caps := term.Detect(os.Getenv, isTerminal(os.Stdin), isTerminal(os.Stdout),
		term.Flags{Color: s.Color, ASCII: s.ASCII, Accessible: s.Accessible})
	s.Caller.Door = core.DoorCockpit
	return ui.Show(ctx, ui.Options{
		World:  pane.Of(s.Engine),
		Caller: s.Caller,
		Run: func(ctx context.Context, tenant string, args []string) (string, string, int) {
			if s.ReadOnly {
				args = append([]string{"--read-only"}, args...)
			}
			return command.Capture(ctx, lines(s, tenant), args)
		},
		Complete: func(ctx context.Context, tenant, line string) []command.Candidate {
			env := lines(s, tenant)
			return command.Complete(ctx, &env, line)
		},
		Keys:     keys,
		Theme:    theme,
		Themes:   func(name string) (*screen.Theme, error) { return command.LoadTheme(os.Getenv, name) },
		ReadOnly: s.ReadOnly,
		Dir:      s.Dir,
	}, caps, os.Stdin, os.Stdout)
}

// lines is the environment of command lines given inside a door.
func lines(s command.Start, tenant string) command.Env {
	by := s.Caller
	by.Tenant = tenant
	return command.Env{
		Caller: by,
		Dir:    s.Dir,
		Getenv: os.Getenv,
		Open:   func(context.Context, command.Need) (*engine.Engine, error) { return s.Engine, nil },
	}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
