// Package cockpit is the door for people: the full screen, or plain lines where
// there is no terminal for it, and for scripts, which play one without a screen.
package cockpit

import (
	"cmp"
	"context"
	"os"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/presence"
	"swarmdeck/engine/view"
	"swarmdeck/ui"
	"swarmdeck/ui/command"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/plain"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/script"
	"swarmdeck/ui/term"
)

// Show opens a cockpit on the start's engine until it is left.
func Show(ctx context.Context, env *command.Env, s command.Start) error {
	if !env.Remote { // who comes over SSH is known by that
		s.Caller.Door = core.DoorCockpit
	}
	caps := term.Detect(env.Getenv, term.IsTerminal(os.Stdin), term.IsTerminal(os.Stdout), s.Screen())
	if env.Attached {
		caps = term.Detect(env.Getenv, env.Terminal != nil, env.Terminal != nil, s.Screen())
	}
	if caps.Plain {
		return plain.Run(ctx, env, s, caps.Why)
	}
	opt, err := options(env, s)
	if err != nil {
		return err
	}
	if env.Attached {
		opt.Attached, opt.Remote, opt.Terminal = true, env.Remote, env.Terminal
		return ui.Show(ctx, opt, caps, env.Stdin, env.Stdout)
	}
	return ui.Show(ctx, opt, caps, os.Stdin, os.Stdout)
}

// Play carries out a script, see package script.
func Play(ctx context.Context, env *command.Env, s command.Start) error {
	return script.Run(ctx, env, s, options)
}

// PlayFor carries out the words of a script that another process of this user
// plays.
func PlayFor(ctx context.Context, env *command.Env, s command.Start) error {
	return script.Serve(ctx, env, s, options)
}

// options are the options of a cockpit on the start's engine. Its
// command lines go by the start's door.
func options(env *command.Env, s command.Start) (ui.Options, error) {
	keys, warning, err := keysInForce(env, s)
	if err != nil {
		return ui.Options{}, err
	}
	theme, err := command.LoadTheme(env.Getenv, s.Theme)
	if err != nil {
		return ui.Options{}, err
	}
	tell, err := notice(env.Getenv)
	if err != nil {
		return ui.Options{}, err
	}
	var logins chan ui.Login
	own := *env
	own.LogIn = nil
	switch {
	case s.Script != "":
		own.Lend = nil
	case env.Lend != nil:
		logins = make(chan ui.Login)
		own.LogIn = logIn(logins)
	}
	env = &own
	return ui.Options{
		Logins: logins,
		Enter: func(tenant string) ui.Stay {
			return s.Engine.Presence.Enter(tenant, presence.Visitor{Name: s.Caller.Name, Role: string(cmp.Or(env.Role, command.Admin)), Door: s.Caller.Door})
		},
		Notice:   tell,
		Warning:  warning,
		Lend:     env.Lend,
		Pager:    pager(env.Getenv),
		Editor:   editor(env.Getenv),
		Services: services(env, s),
		Caller:   s.Caller,
		Run: func(ctx context.Context, tenant string, args []string) (string, string, int) {
			return command.Capture(ctx, lines(env, s, tenant), args)
		},
		Complete: func(ctx context.Context, tenant, line string) []command.Candidate {
			lineEnv := lines(env, s, tenant)
			return command.Complete(ctx, &lineEnv, line)
		},
		Keys:     keys,
		Theme:    theme,
		Themes:   func(name string) (*screen.Theme, error) { return command.LoadTheme(env.Getenv, name) },
		ASCII:    s.ASCII,
		Role:     env.Role,
		ReadOnly: s.ReadOnly,
		Dir:      s.Dir,
		Open:     pane.Item{Kind: fleet.TerminalName, ID: s.Terminal},
	}, nil
}

// keysInForce reads the user's keys. A mistake in their file is told in the
// cockpit, which opens with the default keys; a script would press others than
// it means, so it ends.
func keysInForce(env *command.Env, s command.Start) (keys *keymap.Keymap, warning string, err error) {
	if keys, err = command.LoadKeys(env.Getenv); err == nil || s.Script != "" {
		return keys, "", err
	}
	warning = core.AsError(err).Message + "; the default keys are in force"
	keys, err = keymap.Load(nil, "", command.Vocabulary())
	return keys, warning, err
}

// services are what a cockpit shows.
func services(env *command.Env, s command.Start) ui.Services {
	all := ui.Of(s.Engine)
	if env.Remote {
		all.View = bounded{all.View, s.Caller.Tenant}
	} else {
		all.Coding = command.FoundCoding(env.Getenv)
	}
	return all
}

// lines is the environment of command lines given inside a door.
func lines(env *command.Env, s command.Start, tenant string) command.Env {
	line := *env
	line.Caller, line.ReadOnly = s.Caller, s.ReadOnly
	if !env.Remote { // who comes over SSH stays in the tenant of their key
		line.Caller.Tenant = tenant
	}
	line.Dir, line.Stdin, line.Close, line.Doors = s.Dir, nil, nil, command.Doors{}
	line.Open = func(context.Context, command.Need) (*engine.Engine, error) { return s.Engine, nil }
	return line
}

// bounded is the view of one tenant: its visitor sees no other.
type bounded struct {
	ui.View
	tenant string
}

func (b bounded) Snapshot(string) *view.Snapshot {
	s := *b.View.Snapshot(b.tenant)
	s.Tenants, s.Cluster = []string{b.tenant}, s.Cluster.Of(b.tenant)
	return &s
}

// notify is the variable that says how a terminal out of focus is told: bell,
// osc9, osc777, off.
const notify = "SWARMDECK_NOTIFY"

// notice is how the cockpit tells somebody who looks elsewhere.
func notice(getenv func(string) string) (ui.Notice, error) {
	switch n := ui.Notice(getenv(notify)); n {
	case "":
		return ui.NoticeBell, nil
	case ui.NoticeBell, ui.NoticeOSC9, ui.NoticeOSC777, ui.NoticeOff:
		return n, nil
	default:
		return "", core.Invalid(notify, string(n), "bell, osc9, osc777 or off")
	}
}

// pager shows a text the way the operator reads long texts: $PAGER, as other programs
// do, or less.
func pager(getenv func(string) string) string {
	return cmp.Or(strings.TrimSpace(getenv("PAGER")), "less") + ` <"$1"`
}

// editor edits a file the way the operator edits texts: $VISUAL or $EDITOR, as other
// programs do, or vi.
func editor(getenv func(string) string) string {
	return cmp.Or(strings.TrimSpace(getenv("VISUAL")), strings.TrimSpace(getenv("EDITOR")), "vi") + ` "$1"`
}

// logIn is command.Env's of a cockpit that is told of logins so.
func logIn(offers chan<- ui.Login) func(ctx context.Context, name string, argv []string) error {
	return func(ctx context.Context, name string, argv []string) error {
		over := make(chan error, 1)
		select {
		case offers <- ui.Login{Name: name, Argv: argv, Over: over}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case err := <-over:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
