package fleet_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func TestMentionsAreWordsThatBeginWithAnAt(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"@a":                          "a",
		"see @src/a.go and @src/a.go": "src/a.go",
		"(@a), [@b] '@c'":             "a),|b]|c'",
		"me@x.example @ @@a":          "@a",
		"@\"a b.txt\" then @c":        "a b.txt|c",
		"@\"no end\n@d":               "d",
		"line\n@e\t@f":                "e|f",
		fleet.Mention("a b") + " " + fleet.Mention("c"): "a b|c",
	} {
		expect.Is(t, strings.Join(fleet.Mentions(text), "|"), want, text, "mentions")
	}
}

func FuzzMentions(f *testing.F) {
	for _, s := range []string{"@a @\"b c\" (@d)", "@", "@\"", "\xff@\xff", "@@@@"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, path := range fleet.Mentions(s) {
			expect.Must(t, path != "" && strings.Contains(s, path) && !strings.Contains(path, "\n"), "%q mentions %q", s, path)
		}
	})
}

func TestAnAgentsCommandsAreBoundedAndPrintable(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	w.awaitStatus("bob", fleet.Idle)
	o := fleet.Offers{Mode: "m", Commands: []fleet.Command{
		{Name: ""}, {Name: "a b"}, {Name: "x\x1b[31m"}, {Name: strings.Repeat("x", 1000)}, {Name: "plan", Description: "Make\x1b[31m a plan\nof many lines", Hint: "what\u202e for"},
	}}
	for range 1000 {
		o.Commands = append(o.Commands, fleet.Command{Name: "c", Description: strings.Repeat("d", 5000)})
	}
	w.offer("bob", o)
	got := w.agent("bob").Offered().Commands
	if len(got) != 100 || got[0] != (fleet.Command{Name: "plan", Description: "Make [31m a plan", Hint: "what for"}) || len(got[1].Description) > 304 {
		t.Errorf("it keeps %d: %+v", len(got), got[:2])
	}
}

func TestARuntimeWithoutFilesRefusesToAttachOne(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	_, err := w.fleet.WithFiles(alice.Tenant, "bob", "x", []string{"a.txt"})
	refused(t, err, core.InvalidInput, "field", "attach")
	expect.Is(t, expect.Of(w.fleet.WithFiles(alice.Tenant, "bob", "x", nil))(t), "x", "without a file")
}
