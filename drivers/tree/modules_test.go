package tree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/tree"
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
	if got := r.read(ada.Path, "deps/lib/l/one"); got != "one\n" {
		t.Errorf("%q", got)
	}
	now, err := r.d.Now(t.Context(), ada)
	no(t, err)
	all, err := r.d.Changes(t.Context(), ada, ada.Since, now.Commit)
	no(t, err)
	if len(all) > 0 {
		t.Errorf("nobody changed %v", all)
	}
	if said := r.git(ada.Path, "status", "--short"); said != "" {
		t.Errorf("git says: %s", said)
	}
	if ran, err := r.d.Run(t.Context(), ada, now.Commit, command(func(string) {}, "cat", "deps/lib/l/one")); err != nil || ran.Code != 0 {
		t.Errorf("a check does not see it: %+v, %v", ran, err)
	}
	if len(ada.Lacks) > 0 || !slices.Contains(r.d.Reads(ada), filepath.Join(r.repo, ".git/modules/the/lib/objects")) {
		t.Errorf("lacks %v, reads %v", ada.Lacks, r.d.Reads(ada))
	}
	r.write(ada.Path, "a", "by ada\n")
	if _, err := r.over(ada, tree.Join{Key: "k", Mode: tree.Squash}); err != nil {
		t.Fatal(err)
	}
	if said := r.git(r.repo, "status", "--short"); said != "" || r.read(r.repo, "a") != "by ada\n" || r.read(r.repo, "deps/lib/l/one") != "one\n" {
		t.Errorf("the operator has %q", said)
	}
	// What was changed within it has no place to be taken over to.
	r.write(ada.Path, "deps/lib/l/one", "other\n")
	r.git(filepath.Join(ada.Path, "deps/lib"), "commit", "-q", "-am", "other")
	if _, err := r.over(ada, tree.Join{Key: "l", Mode: tree.Squash}); err == nil || !strings.Contains(err.Error(), "deps/lib") {
		t.Errorf("%v", err)
	}
}

func TestASubmoduleThatIsNotThereIsNamedAndStaysAsItIs(t *testing.T) {
	r := newRig(t)
	r.modules()
	no(t, os.RemoveAll(filepath.Join(r.repo, ".git/modules")))
	no(t, os.RemoveAll(filepath.Join(r.repo, "deps/lib")))
	no(t, os.MkdirAll(filepath.Join(r.repo, "deps/lib"), 0o755))
	ada := r.tree("ada", r.repo)
	if fmt.Sprint(ada.Lacks) != "[deps/lib]" {
		t.Errorf("%v", ada.Lacks)
	}
	r.write(ada.Path, "a", "by ada\n")
	if _, err := r.over(ada, tree.Join{Key: "k", Mode: tree.Squash}); err != nil {
		t.Fatal(err)
	}
	if said := r.git(r.repo, "ls-files", "--stage", "deps"); !strings.HasPrefix(said, "160000") {
		t.Errorf("%s", said)
	}
}
