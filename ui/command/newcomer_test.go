package command_test

import (
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// TestMistakesOfNewcomers: each is answered, in at most three lines, with what does here
// what was meant.
func TestMistakesOfNewcomers(t *testing.T) {
	d := newDeck(t)
	d.line("run -- true")
	d.line("run -- true")
	d.line("session create --name night")
	d.line("agent create ada --project p -- cat")
	d.line("agent create adam --project p -- cat")
	for _, m := range []struct{ line, names string }{
		{"ps", "status"},
		{"top", "status"},
		{"logs ada", "log"},
		{"logs ada -f", "log"},
		{"tail -f ada", "log"},
		{"get 1", "show"},
		{"describe ada", "show"},
		{"ls", "agent list"},
		{"ls -la", "agent list"},
		{"start ada", "agent start"},
		{"stop ada", "agent stop"},
		{"kill -9 ada", "agent stop"},
		{"cancel 1", "task cancel"},
		{"pause ada", "agent pause"},
		{"resume ada", "agent resume"},
		{"restart ada", "agent restart"},
		{"retry 1", "task retry"},
		{"rm ada", "agent delete"},
		{"delete ada", "agent delete"},
		{"exec ada ls", "run"},
		{"new ada", "agent"},
		{"create ada", "agent create"},
		{"dispatch x", "task dispatch"},
		{"approve 1", "approval approve"},
		{"deny 1", "approval deny"},
		{"reject 1", "approval deny"},
		{"yes 1", "approval approve"},
		{"init", "project init"},
		{"login", "operator set"},
		{"connect box", "attach"},
		{"daemon", "serve"},
		{"diff ada", "review show"},
		{"commit ada", "merge"},
		{"pr ada", "push"},
		{"chat ada hello", "tell"},
		{"undo", "merge undo"},
		{"taks list", "task"},
		{"agnet list", "agent"},
		{"statsu", "status"},
		{"zebra", "swarmdeck help"},
		{"help zebra", "swarmdeck help"},
		{"task ls", "list"},
		{"task rm 1", "cancel"},
		{"task kill 1", "cancel"},
		{"task get 1", "show"},
		{"task logs 1", "log"},
		{"task create", "dispatch"},
		{"task lisst", "list"},
		{"agent new ada", "create"},
		{"agent rm ada", "delete"},
		{"agent kill ada", "stop"},
		{"agent say ada hello", "tell"},
		{"approval yes 1", "approve"},
		{"approval no 1", "deny"},
		{"session unpause 1", "resume"},
		{"agent list --json", "-o json"},
		{"task list --stauts failed", "--status"},
		{"task list --limit 5", "--page-size"},
		{"agent delete ada --force", "--yes"},
		{"-v", "version"},
		{"run", "-- CMD"},
		{"run date", "run -- date"},
		{"run --cwd / -- date", "--dir"},
		{"task", "dispatch"},
		{"task show", "ID is missing"},
		{"task dispatch", "--kind is missing"},
		{"task dispatch --kind exec.run", "--input is missing"},
		{"task list --status done", "succeeded"},
		{"agent create bob", "--project is missing"},
		{"agent show bob", `agent "bob": not found`},
		{"agent delete ada", "--yes"},
		{"show 1", "tk_8a039_0000000001, se_"},
		{"show zebra", "swarmdeck status"},
		{"agent show a", "adam, ada"},
		{"log night", "agents and tasks"},
		{"tell ada", "TEXT is missing"},
		{"approval deny 1", "--reason is missing"},
		{"--tenant acme task list", "t_"},
		{"-o yaml task list", "json"},
	} {
		code, out, stderr := d.run(expect.Of(command.Split(m.line))(t)...)
		expect.True(t, code != command.ExitOK, "%s: exit 0\n%s", m.line, out)
		expect.Has(t, stderr, m.names, m.line)
		lines := strings.Count(stderr, "\n")
		expect.True(t, lines >= 1 && lines <= 3 && len(stderr) <= 400, "%s: %d lines, %d characters: %s", m.line, lines, len(stderr), stderr)
	}
}

// TestTheFirstHelpNamesWhatToBeginWith and few flags; the rest is one word away.
func TestTheFirstHelpNamesWhatToBeginWith(t *testing.T) {
	d := newDeck(t)
	for _, line := range []string{"help", "--help"} {
		out := d.line(line)
		for _, name := range []string{"run", "status", "agent", "task", "approval", "review", "merge", "up", "serve"} {
			expect.Has(t, out, "\n  "+name+" ", line)
		}
		for _, text := range []string{"opens the cockpit", "demo", "help COMMAND", "help --all"} {
			expect.Has(t, out, text, line)
		}
		expect.True(t, strings.Count(out, "\n") <= 24 && !strings.Contains(out, "  policy"), "%s has %d lines: %s", line, strings.Count(out, "\n"), out)
	}
	expect.Has(t, d.line("help --all"), "policy", "help --all")
}
