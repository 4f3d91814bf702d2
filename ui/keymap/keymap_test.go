package keymap_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/keymap"
)

func load(t *testing.T, user string) *keymap.Keymap {
	t.Helper()
	return expect.Of(keymap.Load([]byte(user), "keys.toml", keymap.Words()))(t)
}

func bind(scope, key, action string) string {
	return "[[bind]]\nscope = \"" + scope + "\"\nkeys = [\"" + key + "\"]\naction = \"" + action + "\"\nhelp = \"h\"\n"
}

func TestInnerScopesWin(t *testing.T) {
	m := load(t, "")
	for _, tt := range []struct {
		scopes string
		key    string
		want   string
	}{
		{"global", "d", "task dispatch --kind exec.run --input"},
		{"fleet list global", "d", "agent assign {agent} {?Work…}"},
		{"fleet list global", "j", "down"},
		{"fleet list global", "q", "back"},
		{"approvals list global", "a", "approve"},
		{"tasks list global", "a", ""},
	} {
		got := m.Lookup(strings.Fields(tt.scopes), keymap.Sequence{tt.key})
		what := ""
		if got.Binding != nil {
			what = got.Binding.What()
		}
		expect.Is(t, what, tt.want, tt.key, "in", tt.scopes, "does")
	}
}

func TestEmergencyStopIsAChord(t *testing.T) {
	p := keymap.Presser{Map: load(t, "")}
	scopes := []string{"tasks", "list", "global"}
	m := p.Press(scopes, "E")
	expect.Must(t, m.Binding == nil && len(m.More) == 1 && m.More[0].Keys.String() == "E", "after E: %+v", m)
	m = p.Press(scopes, "E")
	expect.Must(t, m.Binding != nil && m.Binding.Action == "estop", "after E E: %+v", m)
	p.Press(scopes, "E")
	m = p.Press(scopes, "j")
	expect.Must(t, m.Binding == nil && len(p.Pending()) == 0, "a broken chord did %+v", m)
	p.Press(scopes, "E")
	m = p.Press(scopes, "esc")
	expect.Must(t, m.Binding == nil, "esc in a chord did %+v", m)
	m = p.Press(scopes, "j")
	expect.Must(t, m.Binding != nil && m.Binding.Action == "down", "after a chord: %+v", m)
}

// Multiplexer prefixes, flow control, function keys and keys that old
// terminals can't send may be extra ways, never the only one.
func TestNothingNeedsAnAwkwardKey(t *testing.T) {
	awkward := func(k string) bool {
		return slices.Contains([]string{"ctrl+a", "ctrl+b", "ctrl+space", "ctrl+s", "ctrl+q", "ctrl+h", "ctrl+j", "ctrl+k", "ctrl+i", "ctrl+m", "ctrl+z"}, k) ||
			strings.HasPrefix(k, "f1") && len(k) > 1 || strings.Contains(k, "alt+") || strings.Contains(k, "ctrl+shift")
	}
	for _, b := range load(t, "").All() {
		if b.Action == "suspend" { // job control's own key
			continue
		}
		if !slices.ContainsFunc(b.Keys, func(s keymap.Sequence) bool { return !slices.ContainsFunc(s, awkward) }) {
			t.Errorf("%s needs %s", b.What(), b.Label())
		}
		expect.True(t, b.Confirm != keymap.ConfirmNone, "%s asks nothing", b.What())
	}
}

// Half a page, never a deletion; stopping and answering by a plain letter is
// guarded.
func TestDangerousKeys(t *testing.T) {
	for _, b := range load(t, "").All() {
		for _, k := range b.Keys {
			expect.True(t, (k.String() != "ctrl+d" || b.Action == "half-down") && (k.String() != "ctrl+u" || b.Action == "half-up"), "%s is %s", k, b.What())
			expect.True(t, !b.Guard || k.String() != "enter", "enter answers in %s", b.Scope)
		}
		expect.True(t, !slices.Contains([]string{"approve", "deny", "edit", "always", "defer"}, b.Action) || b.Guard,
			"%s in %s is not guarded", b.Action, b.Scope)
	}
}

func TestUserFileOverridesAndUnbinds(t *testing.T) {
	m := load(t, bind("list", "j", "up")+"[[unbind]]\nscope = \"global\"\nkeys = [\"q\"]\n"+bind("global", "escape", "help"))
	b := m.Lookup([]string{"list"}, keymap.Sequence{"j"}).Binding
	expect.True(t, b != nil && b.Action == "up" && b.From == "keys.toml:1", "j is %+v", b)
	b = m.Lookup([]string{"list"}, keymap.Sequence{"down"}).Binding
	expect.True(t, b != nil && b.Action == "down", "down is %+v", b)
	b = m.Lookup([]string{"global"}, keymap.Sequence{"q"}).Binding
	expect.True(t, b == nil, "q is %+v", b)
}

func TestMistakesAreRefusedWithFileAndLine(t *testing.T) {
	words := keymap.Words()
	words.Line = func(line string) error {
		if strings.HasPrefix(line, "dance") {
			return errors.New("no such command")
		}
		return nil
	}
	tests := []struct{ name, file, want string }{
		{"unknown action", "\n\n" + bind("list", "x", "dance"), `keys.toml:3: action "dance" is unknown`},
		{"unknown scope", bind("dance", "x", "up"), `keys.toml:1: scope "dance" is unknown`},
		{"unknown key", bind("list", "meta+x", "up"), `keys.toml:1: key "meta+x": no such key`},
		{"too long a sequence", bind("list", "a b c d e", "up"), `keys.toml:1: key "a b c d e": at most 4 keys`},
		{"unknown field", "[[bind]]\nscoop = 1\n", `keys.toml:2: field "scoop" is unknown`},
		{"not TOML", "[[bind]\n", "keys.toml:1: "},
		{"no help in a list", "bind = [\n\t{ scope = \"list\", keys = [\"x\"], action = \"up\", help = \"h\" },\n\t# mine\n\t{ scope = \"list\", keys = [\"x\"], action = \"up\" },\n]\n", "keys.toml:4: help is missing"},
		{"no help", "[[bind]]\nscope = \"list\"\nkeys = [\"x\"]\naction = \"up\"\n", "keys.toml:1: help is missing"},
		{"both", bind("list", "x", "up") + "line = \"task list\"\n", "keys.toml:1: line and action both given"},
		{"neither", bind("list", "x", ""), "keys.toml:1: line or action is missing"},
		{"unknown command", "[[bind]]\nscope = \"list\"\nkey = \"x\"\nline = \"dance\"\nhelp = \"h\"\n", `keys.toml:1: line "dance": no such command`},
		{"open brace", "[[bind]]\nscope = \"list\"\nkey = \"x\"\nline = \"task why {id\"\nhelp = \"h\"\n", "a placeholder is {name}"},
		{"unknown tier", "[[bind]]\nscope = \"list\"\nkey = \"x\"\nline = \"task list\"\nhelp = \"h\"\nconfirm = \"maybe\"\n", `confirm "maybe" is unknown`},
		{"same key twice", bind("list", "x", "up") + bind("list", "x", "down"), `keys.toml:6: key "x" in scope "list" is taken by "up" (keys.toml:1)`},
		{"key begins a sequence", bind("global", "E", "up"), `key "E" in scope "global" and key "E E" of "estop" (default:`},
		{"unbind of nothing", "[[unbind]]\nscope = \"list\"\nkeys = [\"x\"]\n", `keys.toml:1: key "x" has no binding in scope "list"`},
		{"control character in help", "[[bind]]\nscope = \"list\"\nkey = \"x\"\naction = \"up\"\nhelp = \"\\u001b[31m\"\n", "help \"[31m\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := keymap.Load([]byte(tt.file), "keys.toml", words)
			expect.Must(t, err != nil && (strings.Contains(err.Error(), tt.want) || tt.name == "control character in help"), "got %v, want %q", err, tt.want)
			expect.Must(t, !strings.ContainsAny(err.Error(), "\x1b\n"), "the message holds control characters: %q", err)
		})
	}
}

func TestKeysAreSpeltAsTheToolkitDoes(t *testing.T) {
	for in, want := range map[string]string{
		"Ctrl+D": "ctrl+d", "shift+g": "G", "Escape": "esc", "alt+ctrl+x": "ctrl+alt+x", "shift+tab": "shift+tab", "+": "+", "ctrl++": "ctrl++",
		"PageUp": "pgup", "é": "é", "g G": "g G",
	} {
		got, err := keymap.ParseSequence(in)
		expect.True(t, err == nil && got.String() == want, "%q is %q, %v; want %q", in, got, err, want)
	}
	for _, in := range []string{"", "  ", "ctrl+ctrl+x", "enterr", "\x1b", "\u202e", "ctrl+"} {
		got, err := keymap.ParseSequence(in)
		expect.True(t, err != nil, "%q is %q", in, got)
	}
}

func TestHelpAndFooterShowWhatIsInForce(t *testing.T) {
	m := load(t, "")
	scopes := []string{"fleet", "list", "global"}
	seen := map[string]string{}
	for _, b := range m.Bindings(scopes) {
		for _, k := range b.Keys {
			other, twice := seen[k.String()]
			expect.True(t, !twice, "%s is shown for %s and %s", k, other, b.What())
			seen[k.String()] = b.What()
		}
	}
	expect.Row(t, seen, "d", "agent assign {agent} {?Work…}", "j", "down", "?", "help")
	hints := m.Hints(scopes)
	expect.True(t, len(hints) >= 5 && hints[0].Binding.Scope == "fleet", "hints are %v", hints)
	expect.Is(t, m.KeyFor(scopes, "agent assign"), "d", "agent assign has key")
	expect.True(t, m.KeyFor(scopes, "agent") != "", "agent has no key")
	expect.Is(t, m.KeyFor(scopes, "task dispatch"), "", "a hidden binding has key")
}

func FuzzLoad(f *testing.F) {
	f.Add(keymap.Default())
	f.Add(bind("list", "x", "up") + "[[unbind]]\nscope = \"global\"\nkeys = [\"q\"]\n")
	f.Add("bind = [{scope='list', keys=['g g','x'], line='task why {id}', help='\\u001b'}]")
	f.Add("\"bi\\u006ed\" = [[1]]\n[[ bind ]]\n[bind.x]\n")
	f.Fuzz(func(t *testing.T, file string) {
		m, err := keymap.Load([]byte(file), "f", keymap.Words())
		if err != nil {
			expect.Must(t, !strings.ContainsAny(err.Error(), "\x1b\u202e"), "the message holds control characters: %q", err)
			return
		}
		for _, b := range m.All() {
			for _, k := range b.Keys {
				got := m.Lookup([]string{b.Scope}, k)
				expect.Must(t, got.Binding != nil && got.Binding.What() == b.What(), "%s in %s is %+v", k, b.Scope, got)
			}
		}
	})
}

func TestALetterMeansOneThingInEveryPane(t *testing.T) {
	means := map[string][]string{
		"a": {"approve", "policy activate"},                                                 // let it go ahead
		"x": {"deny", "policy withdraw"},                                                    // refuse it
		"X": {"abort", "agent stop", "session stop", "subagent stop", "cad agent shutdown"}, // end it
		"D": {"agent delete", "skill unload", "bus unsubscribe"},                            // remove it
	}
	for _, b := range load(t, "").All() {
		for _, keys := range b.Keys {
			words, ok := means[keys.String()]
			if ok && !slices.ContainsFunc(words, func(w string) bool { return b.Action == w || strings.HasPrefix(b.Line, w+" ") }) {
				t.Errorf("%s in scope %s: %s%s, want one of %q", keys, b.Scope, b.Action, b.Line, words)
			}
		}
	}
}
