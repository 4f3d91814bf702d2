package ui

import (
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/pane"
)

func TestAValueIsAlwaysPartOfOneWord(t *testing.T) {
	tpl := expect.Of(parseTemplate("task cancel {id} --reason {?Why not}"))(t)
	if q := tpl.questions(); !slices.Equal(q, []string{"Why not"}) || !slices.Equal(tpl.takes(), []string{"id"}) {
		t.Fatalf("questions %q, takes %v", q, tpl.takes())
	}
	hostile := "x --yes; rm -rf / '{tenant}' \"\n"
	got := expect.Of(tpl.fill(pane.Item{Kind: "task", ID: hostile}, "t_a", map[string]string{"Why not": "{id} a b"}))(t)
	want := []string{"task", "cancel", hostile, "--reason", "{id} a b"}
	expect.Must(t, slices.Equal(got, want), "filled %q, want %q", got, want)
}

func TestAMissingValueIsRefused(t *testing.T) {
	for _, c := range []struct {
		line string
		it   pane.Item
		want string
	}{
		{"agent stop {agent}", pane.Item{}, "nothing is selected"},
		{"agent stop {agent}", pane.Item{Kind: "task", ID: "tk_1"}, "task tk_1 has no agent"},
		{"agent stop {nonsense}", pane.Item{Kind: "task", ID: "tk_1"}, "task tk_1 has no nonsense"},
	} {
		tpl, _ := parseTemplate(c.line)
		_, err := tpl.fill(c.it, "t_a", nil)
		expect.True(t, err != nil && err.Error() == c.want, "%s on %v: %v, want %s", c.line, c.it, err, c.want)
	}
	for _, bad := range []string{"", "   ", "task 'open"} {
		expect.Fails(t, expect.Fault(parseTemplate(bad)), bad)
	}
}

// TestEveryDefaultKeyWorks: each bound line names a command, and each action
// is one that the cockpit knows in the scope it is bound in.
func TestEveryDefaultKeyWorks(t *testing.T) {
	m := expect.Of(keymap.Load(nil, "", keymap.Words()))(t)
	r := newRig(t, 80, 24)
	for _, b := range m.All() {
		if b.Line != "" {
			_, err := parseTemplate(b.Line)
			if err != nil {
				t.Errorf("%s: %v", b.From, err)
			} else if command.Describe(strings.Fields(b.Line)).Path == "" {
				t.Errorf("%s: %q names no command", b.From, b.Line)
			}
		}
		if _, known := r.m.panes[b.Scope]; !known && b.Scope != "global" && b.Scope != "list" && b.Scope != "sheet" && b.Scope != "terminal-typing" {
			t.Errorf("%s: no pane is called %s", b.From, b.Scope)
		}
	}
}

func TestAChangingCommandIsAskedForASentence(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"task cancel tk_1", "task cancel tk_1 -o sentence"},
		{"agent create ann --project demo -- ls -o", "agent create ann --project demo -o sentence -- ls -o"},
		{"task list", "task list"},
		{"task cancel x -o wide", "task cancel x -o wide"},
		{"task cancel x --output=text", "task cancel x --output=text"},
	} {
		words := strings.Fields(c.line)
		expect.Is(t, strings.Join(asSentence(words, command.Describe(words).Effect), " "), c.want, c.line)
	}
}

func TestKeysHaveTheToolkitsNames(t *testing.T) {
	for _, name := range []string{"a", "G", "?", "ctrl+e", "enter", "esc", "space", "shift+tab", "alt+enter", "up", "pgdown", "é", ":"} {
		k, err := Key(name)
		expect.True(t, err == nil && k.String() == name, "key %q is %q, %v", name, k.String(), err)
	}
	for _, bad := range []string{"", "ab", "hyper+x", "\x1b", "ctrl+"} {
		if k, err := Key(bad); err == nil {
			t.Errorf("key %q is %q", bad, k.String())
		}
	}
}
