package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/git/gittest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
)

// A tree is its agent's: whatever that writes into its repository runs nothing of
// ours, whichever way the work is looked at and taken over. Neither does what stands
// in the configuration of the repository that it was made of.
func TestARepositoryOfNobodysTrustRunsNothing(t *testing.T) {
	for _, mode := range tree.Modes() {
		t.Run(string(mode), func(t *testing.T) {
			r := newRig(t)
			c := gittest.NewCanary(t)
			ada := r.tree("ada", r.repo)
			r.write(ada.Path, "a", "one\nTWO\nthree\n")
			r.git(ada.Path, "commit", "-qam", "upper case")
			c.Infest(filepath.Join(ada.Path, ".git"), ada.Path)
			c.Infest(filepath.Join(r.repo, ".git"), r.repo)
			c.Ran()
			r.write(ada.Path, "new", "new\n")
			s, err := r.d.Now(t.Context(), ada)
			no(t, err)
			if _, err := r.d.Changes(t.Context(), ada, ada.Since, s.Commit); err != nil {
				t.Error(err)
			}
			no(t, r.d.Mark(t.Context(), ada, "before"))
			if _, err := r.over(ada, tree.Join{Key: "t1", Mode: mode}); err != nil && !errors.Is(err, core.Kind(core.Conflict)) {
				t.Error(err) // what the canary has put into the repository's files is somebody's work
			}
			no(t, r.d.Remove(t.Context(), ada))
			if ran := c.Ran(); len(ran) > 0 {
				t.Errorf("programs of the repositories ran: %v", ran)
			}
		})
	}
}

// A repository that leads elsewhere gives nothing of what is there away.
func TestATreesLinksLeadNowhere(t *testing.T) {
	r := newRig(t)
	secret := filepath.Join(r.base, "secret")
	r.write(secret, "key", "TOP SECRET\n")
	ada := r.tree("ada", r.repo)
	no(t, os.Symlink(filepath.Join(secret, "key"), filepath.Join(ada.Path, "link")))
	no(t, os.RemoveAll(filepath.Join(ada.Path, "sub")))
	no(t, os.Symlink(secret, filepath.Join(ada.Path, "sub")))
	no(t, os.RemoveAll(filepath.Join(ada.Path, ".git")))
	no(t, os.Symlink(filepath.Join(r.repo, ".git"), filepath.Join(ada.Path, ".git")))
	out, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
	no(t, err)
	if to, err := os.Readlink(filepath.Join(r.repo, "sub")); err != nil || to != secret {
		t.Error("a link is not the text that it is:", to, err)
	}
	if all := r.git(r.repo, "log", "-p", out.Commit); strings.Contains(all, "TOP SECRET") {
		t.Error("what a link leads to was taken over")
	}
	if _, err := r.over(ada, tree.Join{Key: "t2", Mode: tree.Rebase}); !errors.Is(err, core.Kind(core.Conflict)) {
		t.Error("commits of another repository were taken over:", err)
	}
}

func TestATreeIsMadeOfWorkTreesAndPackedBranchesToo(t *testing.T) {
	r := newRig(t)
	r.git(r.repo, "branch", "side")
	r.git(r.repo, "pack-refs", "--all")
	beside := filepath.Join(r.base, "beside")
	r.git(r.repo, "worktree", "add", "-q", beside, "side")
	ada := r.tree("ada", beside)
	if ada.Base != "side" {
		t.Errorf("%+v", ada)
	}
	r.write(ada.Path, "a", "hers\n")
	out, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
	no(t, err)
	if got := r.git(beside, "rev-parse", "HEAD"); got != out.Commit || r.git(beside, "status", "--short") != "" || r.read(beside, "a") != "hers\n" {
		t.Error("the work tree beside was not brought along")
	}
	if r.git(r.repo, "status", "--short") != "" || r.read(r.repo, "a") != "one\ntwo\nthree\n" {
		t.Error("the other work tree was changed")
	}
}

func TestALinkOfTheOperatorsIsNotReplacedByADirectory(t *testing.T) {
	r := newRig(t)
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "src/new", "new\n")
	no(t, os.Symlink("sub", filepath.Join(r.repo, "src")))
	if _, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash}); !errors.Is(err, core.Kind(core.Conflict)) || !strings.Contains(err.Error(), "src") {
		t.Error(err)
	}
	if to, err := os.Readlink(filepath.Join(r.repo, "src")); err != nil || to != "sub" || r.read(r.repo, "sub/new") != "" {
		t.Error("the link was replaced, or written through:", to, err)
	}
}
