package fleet

import (
	"context"
	"strings"
	"testing"

	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
	"swarmdeck/ui/pane"
)

func TestWhoHasTheKeyboardIsSaid(t *testing.T) {
	p := NewTerminal(context.Background(), nil)
	p.Bind(pane.Item{Kind: TerminalName, ID: "shell"})
	p.wants = true
	for _, step := range []struct {
		desk fleet.Desk
		want string
	}{
		{fleet.Desk{Writer: "ada", Mine: true}, "you type"},
		{fleet.Desk{Writer: "ada", Own: true}, "your other cockpit HAS TAKEN THE KEYBOARD"},
		{fleet.Desk{}, "shell"}, // it is there for who wants it
		{fleet.Desk{Writer: "ada", Own: true}, "your other cockpit types"},
		{fleet.Desk{Writer: "bob"}, "bob types"},
	} {
		step.desk.Rev = p.desk.Rev + 1
		p.sat(step.desk)
		title := p.Title(pane.Env{})
		expect.True(t, strings.HasSuffix(title, step.want), "%+v: %q, want %q", step.desk, title, step.want)
	}
}

func TestKeysOfATerminalPageAreTheCockpitsOnlyOnceTheyAreLetGoOf(t *testing.T) {
	p := NewTerminal(context.Background(), nil)
	at := func(step, want string) {
		t.Helper()
		scope, on := p.Typing()
		expect.True(t, (want != "" || !on) && (want == "" || on && scope == want), "%s: keys go to %q (%t), want %q", step, scope, on, want)
	}
	at("no agent", "")
	p.Bind(pane.Item{Kind: TerminalName, ID: "shell"})
	at("before the seat is there", "terminal")
	p.sat(fleet.Desk{Rev: 1, Writer: "bob"})
	at("somebody else types", "terminal")
	expect.True(t, p.put() != nil && len(p.queue) == 0, "what a watcher types is kept, or nothing is said of it")
	p.Do(pane.Env{}, "detach")
	at("let go", "")
	p.sat(fleet.Desk{Rev: 2, Writer: "bob", Watchers: []string{"ada"}})
	at("the same one types on", "")
	p.sat(fleet.Desk{Rev: 3})
	at("nobody types", "")
	p.sat(fleet.Desk{Rev: 4, Writer: "eve"})
	at("another has come to type", "terminal")
	p.sat(fleet.Desk{Rev: 5})
	at("they let go in the middle of what is typed", "terminal")
	p.wants = true
	p.sat(fleet.Desk{Rev: 6, Writer: "ada", Mine: true})
	at("the keyboard came", "terminal-typing")
	p.sat(fleet.Desk{Rev: 7, Writer: "bob"})
	at("it was taken", "terminal-typing")
	p.sat(fleet.Desk{Rev: 8})
	at("who took it let go", "terminal")
}
