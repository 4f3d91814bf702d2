package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestTheReferenceHasAPageForEachNoun(t *testing.T) {
	d := newDeck(t)
	dir := t.TempDir()
	d.line("help --markdown " + dir)
	for name, want := range map[string]string{
		"README.md": "| [task](task.md) |", "task.md": "## task dispatch\n", "agent.md": "| `--tree` | ", "help.md": "| `--markdown DIR` | ",
	} {
		expect.Has(t, string(expect.Of(os.ReadFile(filepath.Join(dir, name)))(t)), want, name, "in")
	}
	for line, want := range map[string]string{
		"help task --markdown " + dir:        "takes no COMMAND",
		"help --markdown " + dir + "/none":   "no such file or directory",
		"--read-only help --markdown " + dir: "writes a file",
	} {
		code, _, said := d.run(strings.Fields(line)...)
		expect.True(t, code != 0 && strings.Contains(said, want), "%s: exit %d %s", line, code, said)
	}
}
