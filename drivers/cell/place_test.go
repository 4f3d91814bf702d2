package cell

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestALinkThatARunLeftLeadsNoLaterOneOut(t *testing.T) {
	s := newSupervisor(t)
	dir := expect.Of(filepath.EvalSymlinks(t.TempDir()))(t)
	first, _, _ := strings.Cut(strings.TrimPrefix(dir, "/tmp/"), "/")
	if !within(dir, "/tmp") || first == "" {
		t.Skip("the tests' directories are not below /tmp")
	}
	own := t.TempDir() // what it has for its /tmp
	spec := Spec{Argv: sh("pwd; echo x >/tmp/mine; echo y >here"), Dir: dir, Wall: Wall{Profile: Worker, Tmp: own}}
	p := start(t, s, spec)
	if !p.spaces {
		t.Skip("there are no name spaces")
	}
	said, _ := io.ReadAll(p.Stdout)
	e := p.Exit()
	expect.Must(t, e.Code == 0 && string(said) == dir+"\n", "in a directory below its /tmp: %+v %q", e, said)
	for _, file := range []string{filepath.Join(own, "mine"), filepath.Join(dir, "here")} {
		expect.Of(os.Stat(file))(t)
	}

	victim := t.TempDir()
	expect.No(t, os.RemoveAll(filepath.Join(own, first)))
	expect.No(t, os.Symlink(victim, filepath.Join(own, first)))
	spec.Run = "later"
	if p, err := s.Start(spec); err == nil {
		_ = p.Stop(Grace{Interrupt: -1, Terminate: -1})
		p.CloseIO()
		t.Error("it was started over the link")
	} else if !strings.Contains(err.Error(), first+" is a symbolic link") {
		t.Error(err)
	}
	made, err := os.ReadDir(victim)
	expect.True(t, len(made) == 0 && err == nil, "made where the link leads: %v %v", made, err)
}
