package tree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/drivers/git/gittest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
	"swarmdeck/expect"
)

// modules gives the repository a submodule that is named otherwise than its path.
func (r rig) modules() {
	r.Helper()
	lib := filepath.Join(r.base, "lib")
	r.git(r.base, "init", "-q", "-b", "main", lib)
	r.write(lib, "l/one", "one\n")
	r.git(lib, "add", ".")
	r.git(lib, "commit", "-q", "-m", "lib")
	r.git(r.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", "the/lib", lib, "deps/lib")
	r.git(r.repo, "commit", "-q", "-m", "with a library")
}

func TestASubmoduleIsInTheTree(t *testing.T) {
	r := newRig(t)
	r.modules()
	ada := r.tree("ada", r.repo)
	expect.Is(t, r.read(ada.Path, "deps/lib/l/one"), "one\n")
	now, err := r.d.Now(t.Context(), ada)
	no(t, err)
	all, err := r.d.Changes(t.Context(), ada, ada.Since, now.Commit)
	no(t, err)
	expect.True(t, len(all) == 0, "nobody changed %v", all)
	expect.Is(t, r.git(ada.Path, "status", "--short"), "", "git says")
	ran, err := r.d.Run(t.Context(), ada, now.Commit, command(func(string) {}, "cat", "deps/lib/l/one"))
	expect.True(t, err == nil && ran.Code == 0, "a check does not see it: %+v, %v", ran, err)
	if len(ada.Lacks) > 0 || r.host == nil && !slices.Contains(r.d.Reads(ada), filepath.Join(r.repo, ".git/modules/the/lib/objects")) {
		t.Errorf("lacks %v, reads %v", ada.Lacks, r.d.Reads(ada))
	}
	r.write(ada.Path, "a", "by ada\n")
	expect.Of(r.over(ada, tree.Join{Key: "k", Mode: tree.Squash}))(t)
	said := r.git(r.repo, "status", "--short")
	expect.True(t, said == "" && r.read(r.repo, "a") == "by ada\n" && r.read(r.repo, "deps/lib/l/one") == "one\n", "the operator has %q", said)
	// What was changed within it has no place to be taken over to.
	r.write(ada.Path, "deps/lib/l/one", "other\n")
	r.git(filepath.Join(ada.Path, "deps/lib"), "commit", "-q", "-am", "other")
	expect.Says(t, expect.Fault(r.over(ada, tree.Join{Key: "l", Mode: tree.Squash})), "deps/lib")
}

func TestASubmoduleThatIsNotThereIsNamedAndStaysAsItIs(t *testing.T) {
	r := newRig(t)
	r.modules()
	no(t, os.RemoveAll(filepath.Join(r.repo, ".git/modules")))
	no(t, os.RemoveAll(filepath.Join(r.repo, "deps/lib")))
	no(t, os.MkdirAll(filepath.Join(r.repo, "deps/lib"), 0o755))
	ada := r.tree("ada", r.repo)
	expect.Is(t, fmt.Sprint(ada.Lacks), "[deps/lib]", ada.Lacks)
	r.write(ada.Path, "a", "by ada\n")
	expect.Of(r.over(ada, tree.Join{Key: "k", Mode: tree.Squash}))(t)
	said := r.git(r.repo, "ls-files", "--stage", "deps")
	expect.True(t, strings.HasPrefix(said, "160000"), "%s", said)
}

func TestWhatNoCommitOfASubmoduleHoldsIsSeenAndNotLost(t *testing.T) {
	r := newRig(t)
	r.modules()
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "a", "by ada\n")
	before, err := r.d.Now(t.Context(), ada)
	no(t, err)
	r.write(ada.Path, "deps/lib/l/one", "other\n")
	r.write(ada.Path, "deps/lib/new", "new\n")
	now, err := r.d.Now(t.Context(), ada)
	no(t, err)
	all, err := r.d.Changes(t.Context(), ada, ada.Since, now.Commit)
	no(t, err)
	expect.True(t, now.Commit != before.Commit && slices.Equal(paths(all), []string{"a", "deps/lib/l/one", "deps/lib/new"}), "%+v", all)
	for _, some := range [][]string{nil, {"deps/lib/l/one"}} {
		var b strings.Builder
		no(t, r.d.Diff(t.Context(), ada, ada.Since, now.Commit, some, &b))
		if !strings.Contains(b.String(), "+++ b/deps/lib/l/one\n@@ -1 +1 @@\n-one\n+other\n") || strings.Contains(b.String(), "lib/new") != (some == nil) {
			t.Errorf("of %v: %s", some, b.String())
		}
	}
	since, err := r.d.Changes(t.Context(), ada, now.Commit, now.Commit)
	expect.True(t, err == nil && len(since) == 0, "%+v, %v", since, err)
	// A merge does not leave them behind in silence; the other files can be taken.
	for _, mode := range tree.Modes() {
		_, err := r.over(ada, tree.Join{Key: "k", Mode: mode})
		expect.True(t, errors.Is(err, core.Kind(core.Conflict)) && strings.Contains(err.Error(), "submodule deps/lib"), "%s: %v", mode, err)
	}
	expect.Err(t, expect.Fault(r.over(ada, tree.Join{Key: "l", Mode: tree.Squash, Only: []tree.Piece{{Path: "deps/lib/new"}}})), core.Kind(core.Conflict))
	_, err = r.over(ada, tree.Join{Key: "m", Mode: tree.Squash, Only: []tree.Piece{{Path: "a"}}})
	no(t, err)
	// Put back, it is as it was.
	r.write(ada.Path, "deps/lib/l/one", "one\n")
	no(t, os.Remove(filepath.Join(ada.Path, "deps/lib/new")))
	all = r.changes(ada)
	expect.True(t, slices.Equal(paths(all), []string{"a"}), "%+v", all)
	no(t, r.d.Remove(t.Context(), ada))
	left, _ := filepath.Glob(filepath.Join(r.base, "kept", tenant, "trees", "*", "index-*"))
	expect.True(t, len(left) == 0, "%v is left", left)
}

// A repository in a tree is its agent's: nothing of it runs, and what it leads to
// elsewhere is not looked at.
func TestARepositoryWithinATreeRunsNothing(t *testing.T) {
	r := newRig(t)
	r.modules()
	ada := r.tree("ada", r.repo)
	no(t, ignored(r.d.Now(t.Context(), ada)))
	c := gittest.NewCanary(t)
	sub := filepath.Join(ada.Path, "deps/lib")
	c.Infest(filepath.Join(sub, ".git"), sub)
	c.Ran()
	r.write(sub, "l/one", "other\n")
	all := r.changes(ada)
	expect.True(t, slices.Contains(paths(all), "deps/lib/l/one"), "%+v", all)
	ran := c.Ran()
	expect.True(t, len(ran) == 0, "%v ran", ran)
	secret := filepath.Join(r.base, "secret")
	r.write(secret, "key", "TOP SECRET\n")
	r.git(r.base, "init", "-q", secret)
	no(t, os.RemoveAll(sub))
	no(t, os.Symlink(secret, sub))
	all = r.changes(ada)
	expect.True(t, !slices.ContainsFunc(paths(all), func(p string) bool { return strings.Contains(p, "key") }), "%+v", all)
}

func paths(all []tree.Change) (names []string) {
	for _, c := range all {
		names = append(names, c.Path)
	}
	return names
}

func ignored(_ tree.State, err error) error { return err }
