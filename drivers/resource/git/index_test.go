package git

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

func TestAnIndexWhoseFilesWereCollectedIsMadeAgain(t *testing.T) {
	p := newPlace(t)
	p.write("sub/b", "only in the first")
	then := time.Now().Add(-time.Hour) // else git doubts the index and reads the file again
	expect.No(t, os.Chtimes(filepath.Join(p.root, "sub/b"), then, then))
	p.kept("s1")
	expect.No(t, p.d.Drop(t.Context(), tenant, dag.Snapshot{ID: "s1"}))
	repo := expect.Of(p.d.repo(t.Context(), tenant, "sha1"))(t)
	last := expect.Of(repo.Do(t.Context(), "for-each-ref", "--format=%(refname)", "refs/last/"))(t)
	expect.Of(repo.Do(t.Context(), "update-ref", "-d", last))(t)
	expect.Of(repo.Do(t.Context(), "gc", "--quiet", "--prune=now"))(t)
	p.write("sub/c", "new")
	p.kept("s2")
}

func TestSweepRemovesIndexesThatNobodyUses(t *testing.T) {
	p := newPlace(t)
	p.kept("s1")
	repo := expect.Of(p.d.repo(t.Context(), tenant, "sha1"))(t)
	old, fresh := filepath.Join(repo.Dir, "index-0123.abc"), filepath.Join(repo.Dir, "index-0123")
	for _, path := range []string{old, fresh} {
		expect.No(t, os.WriteFile(path, nil, 0o600))
	}
	then := time.Now().Add(-2 * staleAfter)
	expect.No(t, os.Chtimes(old, then, then))
	expect.No(t, p.d.Sweep(t.Context(), tenant))
	expect.Err(t, expect.Fault(os.Lstat(old)), os.ErrNotExist, "a stale index is left:")
	expect.Of(os.Lstat(fresh))(t)
}
