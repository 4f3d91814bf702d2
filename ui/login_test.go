package ui

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestALoginThatACommandOffersIsOpenedByYAlone(t *testing.T) {
	r := newRig(t, 80, 24)
	for _, c := range []struct {
		keys   []string
		opened bool
	}{{[]string{"y"}, true}, {[]string{"n"}, false}, {[]string{"enter"}, false}} {
		opened, over := false, make(chan error, 1)
		r.m.opt.Lend = func(argv []string) error {
			opened = core.Join(argv) == "codex login"
			return nil
		}
		l := Login{Name: "codex", Argv: []string{"codex", "login"}, Over: over}
		r.send(followUp(func() tea.Cmd { return r.m.offer(l) }))
		r.has("codex is not logged in")
		r.has("codex login")
		r.press("n") // typed before it could be read
		r.has("codex is not logged in")
		r.keys(c.keys...)
		r.lacks("codex is not logged in")
		expect.Is(t, opened, c.opened, "the login was opened after", c.keys)
		expect.True(t, opened || len(over) == 1, "nobody was told that it is not wanted")
	}
}
