package git

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/engine/dag"
)

func TestAnIndexWhoseFilesWereCollectedIsMadeAgain(t *testing.T) {
	p := newPlace(t)
	p.write("sub/b", "only in the first")
	then := time.Now().Add(-time.Hour) // else git doubts the index and reads the file again
	if err := os.Chtimes(filepath.Join(p.root, "sub/b"), then, then); err != nil {
		t.Fatal(err)
	}
	p.kept("s1")
	if err := p.d.Drop(t.Context(), tenant, dag.Snapshot{ID: "s1"}); err != nil {
		t.Fatal(err)
	}
	repo, err := p.d.repo(t.Context(), tenant, "sha1")
	if err != nil {
		t.Fatal(err)
	}
	last, err := repo.Do(t.Context(), "for-each-ref", "--format=%(refname)", "refs/last/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Do(t.Context(), "update-ref", "-d", last); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Do(t.Context(), "gc", "--quiet", "--prune=now"); err != nil {
		t.Fatal(err)
	}
	p.write("sub/c", "new")
	p.kept("s2")
}

func TestSweepRemovesIndexesThatNobodyUses(t *testing.T) {
	p := newPlace(t)
	p.kept("s1")
	repo, err := p.d.repo(t.Context(), tenant, "sha1")
	if err != nil {
		t.Fatal(err)
	}
	old, fresh := filepath.Join(repo.Dir, "index-0123.abc"), filepath.Join(repo.Dir, "index-0123")
	for _, path := range []string{old, fresh} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Now().Add(-2 * staleAfter)
	if err := os.Chtimes(old, then, then); err != nil {
		t.Fatal(err)
	}
	if err := p.d.Sweep(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(old); !errors.Is(err, os.ErrNotExist) {
		t.Error("a stale index is left:", err)
	}
	if _, err := os.Lstat(fresh); err != nil {
		t.Error(err)
	}
}
