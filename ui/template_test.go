package ui

import (
	"slices"
	"strings"
	"testing"

	"swarmdeck/ui/command"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/pane"
)

func TestAValueIsAlwaysPartOfOneWord(t *testing.T) {
	tpl, err := parseTemplate("task cancel {id} --reason {?Why not}")
	if err != nil {
		t.Fatal(err)
	}
	if q := tpl.questions(); !slices.Equal(q, []string{"Why not"}) || !tpl.acts() {
		t.Fatalf("questions %q, acts %v", q, tpl.acts())
	}
	hostile := "x --yes; rm -rf / '{tenant}' \"\n"
	got, err := tpl.fill(pane.Item{Kind: "task", ID: hostile}, "t_a", map[string]string{"Why not": "{id} a b"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"task", "cancel", hostile, "--reason", "{id} a b"}
	if !slices.Equal(got, want) {
		t.Fatalf("filled %q, want %q", got, want)
	}
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
		if _, err := tpl.fill(c.it, "t_a", nil); err == nil || err.Error() != c.want {
			t.Errorf("%s on %v: %v, want %s", c.line, c.it, err, c.want)
		}
	}
	for _, bad := range []string{"", "   ", "task 'open"} {
		if _, err := parseTemplate(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

// TestEveryDefaultKeyWorks: each bound line names a command, and each action
// is one that the cockpit knows in the scope it is bound in.
func TestEveryDefaultKeyWorks(t *testing.T) {
	m, err := keymap.Load(nil, "", keymap.Words())
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, 80, 24)
	for _, b := range m.All() {
		if b.Line != "" {
			tpl, err := parseTemplate(b.Line)
			if err != nil {
				t.Errorf("%s: %v", b.From, err)
			} else if command.Describe(tpl.words).Path == "" {
				t.Errorf("%s: %q names no command", b.From, b.Line)
			}
		}
		if _, known := r.m.panes[b.Scope]; !known && b.Scope != "global" && b.Scope != "list" && b.Scope != "sheet" {
			t.Errorf("%s: no pane is called %s", b.From, b.Scope)
		}
	}
}

func TestAChangingCommandIsAskedForARecord(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"task cancel tk_1", "task cancel tk_1 -o json"},
		{"task cancel tk_1 -o table", "task cancel tk_1 -o table"},
		{"agent create ann --project demo -- ls -o", "agent create ann --project demo -o json -- ls -o"},
	} {
		words := strings.Fields(c.line)
		if got := strings.Join(machine(words, command.Writes), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}

func TestResultsAreSentences(t *testing.T) {
	for _, c := range []struct{ line, out, want string }{
		{"approval deny ap_1 --reason x", `{"approval_id":"ap_1","task_id":"tk_1","intent":"write a file"}`, "denied approval ap_1: write a file"},
		{"task dispatch --kind k", `{"task_id":"tk_7","status":"queued","title":"ls","waiting":"approval"}`, "dispatched task tk_7: ls (waits for approval)"},
		{"agent assign bob hi", `{"task_id":"tk_8","title":"hi"}`, "gave agent bob task tk_8: hi"},
		{"agent pause bob", `{"name":"bob","status":"busy"}`, "asked to pause: agent bob"},
		{"estop on --reason r", `{"on":true}`, "emergency stop: everything is told to freeze"},
		{"agent delete bob --yes", "", "done: agent delete"},
		{"agent delete bob --yes", "{}", "deleted agent bob"},
		{"task cancel tk_1", "not json\nmore", "not json"},
		{`skill invoke grasp --params {"a":1}`, `{"agent_id":"u-1","skill":"grasp"}`, "runs the skill: subagent u-1"},
		{"bus resend u-2", `{"message_id":"u-3"}`, "sent again as message u-3"},
		{"subagent cancel u-1", `{"agent_id":"u-1","state":"failed"}`, "cancelled subagent u-1"},
	} {
		words := strings.Fields(c.line)
		if got := sentence(words, command.Describe(words).Path, c.out); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
	if got := machine([]string{"task", "cancel", "x"}, command.Writes); !slices.Equal(got, []string{"task", "cancel", "x", "-o", "json"}) {
		t.Errorf("machine form %q", got)
	}
	for _, kept := range [][]string{{"task", "list"}, {"task", "cancel", "x", "-o", "wide"}, {"task", "cancel", "x", "--output=text"}} {
		effect := command.Writes
		if kept[1] == "list" {
			effect = command.Reads
		}
		if got := machine(kept, effect); !slices.Equal(got, kept) {
			t.Errorf("%q became %q", kept, got)
		}
	}
}

func TestKeysHaveTheToolkitsNames(t *testing.T) {
	for _, name := range []string{"a", "G", "?", "ctrl+e", "enter", "esc", "space", "shift+tab", "alt+enter", "up", "pgdown", "é", ":"} {
		k, err := Key(name)
		if err != nil || k.String() != name {
			t.Errorf("key %q is %q, %v", name, k.String(), err)
		}
	}
	for _, bad := range []string{"", "ab", "hyper+x", "\x1b", "ctrl+"} {
		if k, err := Key(bad); err == nil {
			t.Errorf("key %q is %q", bad, k.String())
		}
	}
}
