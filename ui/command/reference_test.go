package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheReferenceHasAPageForEachNoun(t *testing.T) {
	d := newDeck(t)
	dir := t.TempDir()
	d.line("help --markdown " + dir)
	for name, want := range map[string]string{
		"README.md": "| [task](task.md) |", "task.md": "## task dispatch\n", "agent.md": "| `--tree` | ", "help.md": "| `--markdown DIR` | ",
	} {
		if page, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(page), want) {
			t.Errorf("%s: %v, want %q in %s", name, err, want, page)
		}
	}
	for line, want := range map[string]string{
		"help task --markdown " + dir:        "takes no COMMAND",
		"help --markdown " + dir + "/none":   "no such file or directory",
		"--read-only help --markdown " + dir: "writes a file",
	} {
		if code, _, said := d.run(strings.Fields(line)...); code == 0 || !strings.Contains(said, want) {
			t.Errorf("%s: exit %d %s", line, code, said)
		}
	}
}
