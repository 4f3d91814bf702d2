package cell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// filled is a home with a module cache, and a directory to work in.
func filled(t *testing.T) (mine, work string) {
	t.Helper()
	mine, work = t.TempDir(), t.TempDir()
	t.Setenv("HOME", mine)
	t.Setenv("GOPATH", "")
	t.Setenv("GOMODCACHE", "")
	for _, name := range []string{"go/pkg/mod/x@v1/x.go", "go/pkg/mod/cache/lock", ".npm/_cacache/index", ".npm/_logs/log", ".npmrc"} {
		path := filepath.Join(mine, name)
		expect.No(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.No(t, os.WriteFile(path, []byte("warm\n"), 0o644))
	}
	return mine, work
}

func TestAWorkerHasTheCachesOfTheUser(t *testing.T) {
	mine, work := filled(t)
	s := newSupervisor(t)
	kept := filepath.Join(t.TempDir(), "home")
	expect.No(t, os.Mkdir(kept, 0o700))
	run := func(wall Wall, line string) string {
		t.Helper()
		return strings.Join(strings.Fields(printed(t, s, Spec{Argv: []string{"sh", "-c", line}, Dir: work, Wall: wall})), " ")
	}
	look := "cd ~/go/pkg/mod && cat x@v1/x.go && cat new 2>/dev/null; cat ~/.npm/_cacache/index; ls -A ~/.npm; cat ~/.npmrc 2>/dev/null; true"
	for name, wall := range map[string]Wall{"gone with the run": {}, "kept": {Home: kept}} {
		expect.Is(t, run(wall, look+"; echo mine >new; echo other >x@v1/x.go; mkdir -p y@v1 && cat new x@v1/x.go"), "warm warm _cacache mine other", name)
	}
	expect.Is(t, run(Wall{}, look), "warm warm _cacache", "the next run has")
	expect.Is(t, run(Wall{Home: kept}, look+"; ls -A ~/.cache/*"), "other mine warm _cacache", "the next run of the same home has")
	// One that works at the same time in the same home keeps its own apart.
	p, err := s.Start(Spec{Run: "first", Argv: []string{"sh", "-c", "echo ready; read x; cat ~/go/pkg/mod/late 2>/dev/null; echo end"}, Dir: work, Wall: Wall{Home: kept}})
	expect.No(t, err)
	defer p.CloseIO()
	buf := make([]byte, 64)
	if n, err := p.Stdout.Read(buf); err != nil || string(buf[:n]) != "ready\n" {
		t.Fatal(string(buf[:n]), err)
	}
	got := run(Wall{Home: kept}, "cat ~/go/pkg/mod/x@v1/x.go; echo late >~/go/pkg/mod/late && cat ~/go/pkg/mod/late")
	expect.True(t, got == "warm late", "beside another: %q", got)
	expect.Of(p.Stdin.WriteString("\n"))(t)
	if n, _ := p.Stdout.Read(buf); string(buf[:n]) != "end\n" {
		t.Errorf("the other has %q", buf[:n])
	}
	expect.No(t, p.Stop(Grace{}))
	for _, name := range []string{"go/pkg/mod/x@v1/x.go", ".npm/_cacache/index"} {
		text, err := os.ReadFile(filepath.Join(mine, name))
		expect.True(t, string(text) == "warm\n", "the user's own %s: %q %v", name, text, err)
	}
	all, _ := os.ReadDir(filepath.Join(mine, "go/pkg/mod"))
	expect.True(t, len(all) == 2, "the user's own cache: %v", all)
}

func TestCachesOfTheUserThatAreNotShown(t *testing.T) {
	mine, work := filled(t)
	s := newSupervisor(t)
	line := "cat ~/go/pkg/mod/x@v1/x.go 2>/dev/null; echo end"
	for name, wall := range map[string]Wall{"hidden": {Hide: []string{filepath.Join(mine, "go")}}, "a reader": {Profile: Reader}} {
		expect.Is(t, printed(t, s, Spec{Argv: []string{"sh", "-c", line}, Dir: work, Wall: wall}), "end", name)
	}
	expect.Is(t, printed(t, s, Spec{Argv: []string{"sh", "-c", line}, Dir: work, Env: map[string]string{"HOME": work}}), "end", "another home")
}
