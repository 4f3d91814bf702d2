package ui

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/pane/fleet"
)

// paged is a rig whose pager only takes note of its text.
func pagedRig(t *testing.T, dir string, failure error) (*rig, *[]string) {
	var texts []string
	r := rigOn(t, newWorld(), 160, 60, Options{Dir: dir, Pager: "less", Lend: func(argv []string) error {
		text, err := os.ReadFile(argv[4])
		texts = append(texts, string(text))
		return cmp.Or(err, failure)
	}})
	return r, &texts
}

func TestTheDiffUnderTheCursorGoesToThePager(t *testing.T) {
	r, texts := pagedRig(t, t.TempDir(), nil)
	openScribe(r)
	for range 60 {
		if r.m.panes["agent"].(*fleet.Agent).Page.Item().Part == "#2" {
			break
		}
		r.keys("j")
	}
	r.keys("o")
	if len(*texts) != 1 || (*texts)[0] != "docs/index.md\n@@ -8,0 +9 @@\n+see NOTES.md \n" {
		t.Fatalf("%q", *texts)
	}
}

func TestTheAgentsDirectoryGoesToThePager(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"a.txt": 3, "evil\x1b[2J\u202ename": 1, "sub/deep/er/and/deeper/x": 2, ".git/config": 9} {
		path := filepath.Join(dir, name)
		expect.No(t, os.MkdirAll(filepath.Dir(path), 0o700))
		expect.No(t, os.WriteFile(path, make([]byte, size), 0o600))
	}
	r, texts := pagedRig(t, dir, nil)
	openScribe(r)
	r.keys("g", "o")
	if len(*texts) != 1 {
		t.Fatalf("%q", *texts)
	}
	text := (*texts)[0]
	for _, want := range []string{dir, "  a.txt\n", "  evilname\n", "sub/deep/er/and/ …", ".git/ …"} {
		expect.Has(t, text, want, "lacks")
	}
	expect.True(t, !strings.ContainsAny(text, "\x1b\u202e") && !strings.Contains(text, "config") && !strings.Contains(text, "deeper"), "%q", text)
}

func TestAPagerThatCannotRunIsTold(t *testing.T) {
	r := newRig(t, 120, 40)
	openScribe(r)
	r.keys("o")
	r.has("no pager is available here")
	r.keys("esc")
	r.keys("2", "g")
	r.do(r.m.action("pager"))
	r.has("nothing here for a pager")
	r, _ = pagedRig(t, filepath.Join(t.TempDir(), "none"), nil)
	openScribe(r)
	r.keys("g", "o")
	r.has("no such file")
	r, _ = pagedRig(t, t.TempDir(), exec.ErrNotFound)
	openScribe(r)
	r.keys("o")
	r.has("the pager ended badly")
}

func TestALargeDirectoryIsListedInPart(t *testing.T) {
	dir := t.TempDir()
	for i := range listMost + 10 {
		expect.No(t, os.WriteFile(filepath.Join(dir, strings.Repeat("f", i%9+1)+string(rune('a'+i%26))+"-"+strings.Repeat("x", i/234)), nil, 0o600))
	}
	text, err := listing(dir)
	expect.True(t, err == nil && strings.Count(text, "\n") <= listMost+10, "%d lines, %v", strings.Count(text, "\n"), err)
	expect.Has(t, expect.Of(listing(t.TempDir()))(t), "(empty)")
}
