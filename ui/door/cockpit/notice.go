package cockpit

import (
	"cmp"
	"context"
	"os"
	"os/exec"
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

// pager shows a text the way the operator reads long texts: $PAGER through the
// shell, as other programs do, or less.
func pager(getenv func(string) string) func(text string) *exec.Cmd {
	return func(text string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", cmp.Or(strings.TrimSpace(getenv("PAGER")), "less"))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), os.Stdout, os.Stderr
		return cmd
	}
}

// editor edits a file the way the operator edits texts: $VISUAL or $EDITOR
// through the shell, as other programs do, or vi.
func editor(getenv func(string) string) func(path string) *exec.Cmd {
	return func(path string) *exec.Cmd {
		program := cmp.Or(strings.TrimSpace(getenv("VISUAL")), strings.TrimSpace(getenv("EDITOR")), "vi")
		cmd := exec.Command("sh", "-c", program+` "$1"`, "sh", path)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		return cmd
	}
}

// logIn is command.Env's of a cockpit that is told of logins so.
func logIn(offers chan<- ui.Login) func(ctx context.Context, name string, argv []string) error {
	return func(ctx context.Context, name string, argv []string) error {
		over := make(chan error, 1)
		open := func() *exec.Cmd {
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			return cmd
		}
		select {
		case offers <- ui.Login{Name: name, Text: core.Join(argv), Open: open, Over: over}:
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
