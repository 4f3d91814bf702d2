package cockpit

import (
	"cmp"
	"context"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/ui"
)

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
