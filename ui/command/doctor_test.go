package command_test

import (
	"context"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// ill lacks one layer, which only walled runs need.
func ill(_ context.Context, look command.Look) []command.Check {
	return []command.Check{
		{Check: "name spaces", Layer: "name spaces", Needed: look.Profile != "open", Detail: "refused\x1b[2J", Fix: "turn a switch"},
		{Check: "cgroup", Layer: "cgroup", OK: true, Detail: "freeze and kill", Fix: "delegate controllers"},
		{Check: "store", Detail: look.Data},
	}
}

func TestDoctorFailsForWhatItsProfileNeeds(t *testing.T) {
	d := newDeck(t)
	if code, _, stderr := d.run("doctor"); code != command.ExitFailed || !strings.Contains(stderr, "only on the machine of the data file") {
		t.Errorf("without a doctor: exit %d %s", code, stderr)
	}
	d.env.Doctor = ill
	code, _, _ := d.run("doctor", "--profile", "closed")
	expect.True(t, code == command.ExitUsage, "an unknown profile: exit %d", code)
	code, out, stderr := d.run("doctor", "-o", "json")
	all := decode(t, out)
	if code != command.ExitFailed || stderr != "" || len(all) != 3 || all[0]["layer"] != "name spaces" || all[0]["ok"] != false || all[0]["fix"] != "turn a switch" || all[2]["layer"] != nil {
		t.Errorf("exit %d %s\n%s", code, stderr, out)
	}
	code, out, _ = d.run("doctor", "--profile", "open")
	for _, want := range []string{"no       name spaces  refused", "to get it: turn a switch", "ok       cgroup       freeze and kill", "for more: delegate controllers", d.data} {
		expect.Has(t, out, want)
	}
	expect.True(t, code == command.ExitOK && !strings.Contains(out, "\x1b"), "exit %d %q", code, out)
	_, out, _ = d.run("doctor")
	expect.True(t, strings.HasPrefix(out, "MISSING  name spaces"), "%v", out)
	expect.Is(t, len(d.needs), 0, "it opened the data file", d.needs)
}

func (w *walk) doctor() {
	w.env.Doctor = ill
	w.do("doctor --profile open")
	w.do("add")
	w.text("add", "claude", "npm install -g @openai/codex")
	w.text("doctor --profile open", "name spaces", "refused", "turn a switch")
}
