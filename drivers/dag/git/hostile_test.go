package git

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/git/gittest"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// bare is a repository whose branches are made by hand.
type bare struct {
	t     *testing.T
	dir   string
	cells git.Git
}

func newBare(t *testing.T) bare {
	t.Helper()
	b := bare{t, filepath.Join(t.TempDir(), "repo"), gittest.Git(t)}
	expect.No(t, os.Mkdir(b.dir, 0o700))
	expect.Of(b.cells.Run(t.Context(), git.Call{Write: []string{b.dir}, Args: []string{"init", "-q", "--bare", b.dir}}))(t)
	return b
}

func (b bare) git(in string, args ...string) string {
	b.t.Helper()
	out := expect.Of(b.cells.Run(b.t.Context(), git.Call{GitDir: b.dir, In: strings.NewReader(in), Args: args}))(b.t)
	return strings.TrimSpace(string(out))
}

// branches makes the branch record and another one, with the same segments.
func (b bare) branches(segments string) {
	b.t.Helper()
	blob := b.git("{}\n", "hash-object", "-w", "--stdin")
	tree := b.git(fmt.Sprintf("100644 blob %s\t%s\n040000 tree %s\tsegments\n", blob, manifestFile, segments), "mktree")
	for _, ref := range []string{recordBranch, agentBranch + "a"} {
		b.git("", "update-ref", ref, b.git("x", "commit-tree", tree))
	}
}

func (b bare) read() error {
	_, err := (Format{b.cells}).Import(b.t.Context(), b.dir, func(dag.Record) error { return nil })
	return err
}

func TestAMillionNamesInAFewTreesAreRefusedInLittleMemory(t *testing.T) {
	b := newBare(t)
	tree := b.git("", "hash-object", "-w", "--stdin")
	kind := "100644 blob"
	for range 3 {
		var in strings.Builder
		for i := range 101 {
			fmt.Fprintf(&in, "%s %s\t%03d\n", kind, tree, i)
		}
		tree, kind = b.git(in.String(), "mktree"), "040000 tree"
	}
	b.branches(tree)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	err := b.read()
	runtime.ReadMemStats(&after)
	expect.Says(t, err, "more than 1000000 segments")
	grown := (int64(after.Sys) - int64(before.Sys)) >> 20
	t.Logf("%d MB", grown)
	expect.True(t, grown <= 200, "it took %d MB", grown)
}

func TestATreeWithoutEndIsRefused(t *testing.T) {
	b := newBare(t)
	tree := b.git("", "hash-object", "-w", "--stdin")
	kind := "100644 blob"
	for range 20 {
		tree = b.git(fmt.Sprintf("%[1]s %[2]s\ta\n%[1]s %[2]s\tb\n%[1]s %[2]s\tc\n", kind, tree), "mktree")
		kind = "040000 tree"
	}
	b.branches(tree)
	expect.Says(t, b.read(), "segments")
}

func TestAContentTooLargeIsNotReadIntoMemory(t *testing.T) {
	b := newBare(t)
	big := filepath.Join(b.dir, "zeros")
	expect.No(t, os.WriteFile(big, nil, 0o600))
	expect.No(t, os.Truncate(big, 300<<20))
	blob := b.git("", "hash-object", "-w", big)
	b.branches(b.git(fmt.Sprintf("100644 blob %s\tx.jsonl\n", blob), "mktree"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := b.read()
	runtime.ReadMemStats(&after)
	expect.Says(t, err, "are too many")
	grown := (after.TotalAlloc - before.TotalAlloc) >> 20
	expect.True(t, grown <= 50, "it took %d MB", grown)
}

// TestNothingOfARepositoryButItsObjectsIsRead gives one whose objects lie
// elsewhere, by links and by what git follows.
func TestNothingOfARepositoryButItsObjectsIsRead(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	expect.No(t, (Format{gittest.Git(t)}).Export(t.Context(), whole, forked(t)))
	objects := filepath.Join(whole, ".git", "objects")
	for name, lead := range map[string]func(b bare) error{
		"alternates": func(b bare) error {
			return os.WriteFile(filepath.Join(b.dir, "objects/info/alternates"), []byte(objects+"\n"), 0o600)
		},
		"a link": func(b bare) error {
			if err := os.RemoveAll(filepath.Join(b.dir, "objects")); err != nil {
				return err
			}
			return os.Symlink(objects, filepath.Join(b.dir, "objects"))
		},
		"a link to the packs": func(b bare) error {
			if err := os.RemoveAll(filepath.Join(b.dir, "objects/pack")); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(objects, "pack"), filepath.Join(b.dir, "objects/pack"))
		},
	} {
		b := newBare(t)
		expect.No(t, os.MkdirAll(filepath.Join(b.dir, "objects/info"), 0o700))
		expect.No(t, lead(b))
		refs := says(t, whole, "for-each-ref", "--format=%(objectname) %(refname)")
		expect.No(t, os.WriteFile(filepath.Join(b.dir, "packed-refs"), []byte(strings.Join(refs, "\n")+"\n"), 0o600))
		expect.Fails(t, b.read(), name)
	}
	// Packed refs and objects are read where they are.
	says(t, whole, "pack-refs", "--all")
	says(t, whole, "repack", "-a", "-d", "-q")
	n := 0
	_, err := (Format{gittest.Git(t)}).Import(t.Context(), whole, func(dag.Record) error { n++; return nil })
	expect.True(t, err == nil && n != 0, "%d events: %v", n, err)
}

func TestAHostileRepositoryRunsNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	expect.No(t, (Format{gittest.Git(t)}).Export(t.Context(), dir, forked(t)))
	c := gittest.NewCanary(t)
	c.Infest(filepath.Join(dir, ".git"), dir)
	for _, missing := range []bool{false, true} {
		if missing { // an object that only the remote would have
			expect.No(t, os.WriteFile(filepath.Join(dir, ".git/refs/heads/gone"), []byte(strings.Repeat("12", 20)+"\n"), 0o600))
		}
		_, err := (Format{gittest.Git(t)}).Import(t.Context(), dir, func(dag.Record) error { return nil })
		expect.Is(t, err != nil, missing, "missing", err)
	}
	ran := c.Ran()
	expect.True(t, len(ran) == 0, "programs of the repository ran: %v", ran)
}
