package git

import (
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestAHostileRepositoryInTheRepositoryRunsNothing(t *testing.T) {
	p := newPlace(t)
	ran, script := filepath.Join(p.base, "ran"), filepath.Join(p.base, "evil.sh")
	expect.No(t, os.WriteFile(script, []byte("#!/bin/sh\ntouch "+ran+"\ncat\n"), 0o755))
	nested := filepath.Join(p.root, "nested")
	p.git(p.base, "init", "-q", nested)
	p.write("nested/.gitattributes", "* filter=x\n")
	p.write("nested/f", "one")
	p.git(nested, "add", ".")
	p.git(nested, "commit", "-q", "-m", "first")
	p.git(nested, "config", "filter.x.clean", script)
	for _, id := range []string{"s1", "s2", "s3"} {
		p.write("nested/f", id) // as long as before, so that git reads it to know
		p.kept(id)
	}
	expect.Err(t, expect.Fault(os.Lstat(ran)), os.ErrNotExist, "a program of the nested repository ran")
}

func TestAFileIsNoWorktree(t *testing.T) {
	p := newPlace(t)
	expect.Err(t, expect.Fault(p.d.Look(t.Context(), filepath.Join(p.root, "a"))), core.Kind(core.NotFound))
}
