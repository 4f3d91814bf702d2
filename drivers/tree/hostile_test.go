package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/drivers/git/gittest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
	"swarmdeck/expect"
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
			expect.Of(r.d.Changes(t.Context(), ada, ada.Since, s.Commit))(t)
			no(t, r.d.Mark(t.Context(), ada, "before"))
			if _, err := r.over(ada, tree.Join{Key: "t1", Mode: mode}); err != nil && !errors.Is(err, core.Kind(core.Conflict)) {
				t.Error(err) // what the canary has put into the repository's files is somebody's work
			}
			no(t, r.d.Remove(t.Context(), ada))
			ran := c.Ran()
			expect.True(t, len(ran) == 0, "programs of the repositories ran: %v", ran)
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
	expect.Is(t, expect.Of(os.Readlink(filepath.Join(r.repo, "sub")))(t), secret, "a link is not the text that it is")
	expect.True(t, !strings.Contains(r.git(r.repo, "log", "-p", out.Commit), "TOP SECRET"), "what a link leads to was taken over")
	_, err = r.over(ada, tree.Join{Key: "t2", Mode: tree.Rebase})
	expect.Err(t, err, core.Kind(core.Conflict), "commits of another repository were taken over:")
}

func TestATreeIsMadeOfWorkTreesAndPackedBranchesToo(t *testing.T) {
	r := newRig(t)
	r.git(r.repo, "branch", "side")
	r.git(r.repo, "pack-refs", "--all")
	beside := filepath.Join(r.base, "beside")
	r.git(r.repo, "worktree", "add", "-q", beside, "side")
	ada := r.tree("ada", beside)
	expect.Is(t, ada.Base, "side", ada)
	r.write(ada.Path, "a", "hers\n")
	out, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
	no(t, err)
	if got := r.git(beside, "rev-parse", "HEAD"); got != out.Commit || r.git(beside, "status", "--short") != "" || r.read(beside, "a") != "hers\n" {
		t.Error("the work tree beside was not brought along")
	}
	expect.True(t, r.git(r.repo, "status", "--short") == "" && r.read(r.repo, "a") == "one\ntwo\nthree\n", "the other work tree was changed")
}

func TestALinkOfTheOperatorsIsNotReplacedByADirectory(t *testing.T) {
	r := newRig(t)
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "src/new", "new\n")
	no(t, os.Symlink("sub", filepath.Join(r.repo, "src")))
	_, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
	expect.True(t, errors.Is(err, core.Kind(core.Conflict)) && strings.Contains(err.Error(), "src"), "%v", err)
	to, err := os.Readlink(filepath.Join(r.repo, "src"))
	expect.True(t, err == nil && to == "sub" && r.read(r.repo, "sub/new") == "", "the link was replaced, or written through: %v %v", to, err)
}

// Who shares a repository can write what lies in its .git. Nothing there has the engine
// read, give away or write anything beyond it.
func TestASharedRepositoryLeadsNowhere(t *testing.T) {
	type world struct {
		rig
		other  string // a repository of somebody else
		secret string
	}
	look := func(r rig, dir string) (tree.Tree, error) {
		return r.d.Look(t.Context(), tenant, tree.Wanted{Agent: "ada", Host: os.Getenv(onHost), Dir: dir})
	}
	for name, try := range map[string]struct {
		plant func(w world)
		want  string // of the error
	}{
		"alternates": {func(w world) {
			w.write(w.repo, ".git/objects/info/alternates", filepath.Join(w.other, ".git/objects")+"\n")
		}, "borrows objects"},
		"alternates that are a link": {func(w world) {
			no(t, os.Symlink(filepath.Join(w.secret, "list"), filepath.Join(w.repo, ".git/objects/info/alternates")))
		}, "borrows objects"},
		"a shallow link": {func(w world) {
			no(t, os.Symlink(filepath.Join(w.secret, "key"), filepath.Join(w.repo, ".git/shallow")))
		}, "symbolic link"},
		"a shallow text": {func(w world) { w.write(w.repo, ".git/shallow", "TOP SECRET\n") }, "something else than commits"},
		"a shallow pipe": {func(w world) { no(t, syscall.Mkfifo(filepath.Join(w.repo, ".git/shallow"), 0o644)) }, "no regular file"},
		"a file .git": {func(w world) {
			no(t, os.Rename(filepath.Join(w.repo, ".git"), filepath.Join(w.base, "kept.git")))
			fake := filepath.Join(w.repo, "fake")
			w.write(fake, "HEAD", "ref: refs/heads/main\n")
			w.write(fake, "gitdir", filepath.Join(w.repo, ".git")+"\n")
			w.write(fake, "commondir", filepath.Join(w.other, ".git")+"\n")
			w.write(w.repo, ".git", "gitdir: "+fake+"\n")
		}, "does not keep it"},
		"a file .git in a repository's place": {func(w world) {
			no(t, os.Rename(filepath.Join(w.repo, ".git"), filepath.Join(w.base, "kept.git")))
			fake := filepath.Join(w.repo, "worktrees", "w")
			w.write(fake, "HEAD", "ref: refs/heads/main\n")
			w.write(fake, "gitdir", filepath.Join(w.repo, ".git")+"\n")
			w.write(fake, "commondir", filepath.Join(w.other, ".git")+"\n")
			w.write(w.repo, ".git", "gitdir: "+fake+"\n")
		}, "does not keep it"},
		"a link .git": {func(w world) {
			no(t, os.Rename(filepath.Join(w.repo, ".git"), filepath.Join(w.base, "kept.git")))
			no(t, os.Symlink(filepath.Join(w.other, ".git"), filepath.Join(w.repo, ".git")))
		}, "neither a directory nor a file"},
		"linked objects": {func(w world) {
			no(t, os.Rename(filepath.Join(w.repo, ".git/objects"), filepath.Join(w.base, "kept")))
			no(t, os.Symlink(filepath.Join(w.other, ".git/objects"), filepath.Join(w.repo, ".git/objects")))
		}, "has no objects"},
		"linked objects of LFS": {func(w world) {
			no(t, os.MkdirAll(filepath.Join(w.repo, ".git/lfs"), 0o755))
			no(t, os.Symlink(w.secret, filepath.Join(w.repo, ".git/lfs/objects")))
		}, ""},
		"a worktree elsewhere": {func(w world) {
			w.write(w.repo, ".git", "")
		}, "names no place"},
		"core.worktree": {func(w world) { w.git(w.repo, "config", "core.worktree", w.other) }, ""},
		"commondir":     {func(w world) { w.write(w.repo, ".git/commondir", filepath.Join(w.other, ".git")+"\n") }, ""},
		"a borrowing submodule": {func(w world) {
			w.git(w.base, "init", "-q", filepath.Join(w.base, "sub"))
			no(t, os.MkdirAll(filepath.Join(w.repo, ".git/modules"), 0o755))
			no(t, os.Rename(filepath.Join(w.base, "sub/.git"), filepath.Join(w.repo, ".git/modules/sub")))
			w.write(w.repo, ".git/modules/sub/objects/info/alternates", w.secret+"\n"+filepath.Join(w.other, ".git/objects")+"\n")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			w := world{r, filepath.Join(r.base, "other"), filepath.Join(r.base, "secret")}
			w.write(w.secret, "key", "TOP SECRET\n")
			w.write(w.secret, "list", w.secret+"\n")
			w.git(w.base, "init", "-q", "-b", "main", w.other)
			w.write(w.other, "theirs", "TOP SECRET\n")
			w.git(w.other, "add", ".")
			w.git(w.other, "commit", "-q", "-m", "theirs")
			if name == "a worktree elsewhere" {
				no(t, os.RemoveAll(filepath.Join(w.repo, ".git")))
			}
			try.plant(w)
			ada, err := look(r, r.repo)
			switch {
			case try.want != "":
				if err == nil || !strings.Contains(err.Error(), try.want) {
					// A place that is no repository is one without: its files are copied.
					expect.Must(t, ada.Kind == tree.Plain && err == nil, "%+v %v", ada, err)
				}
			case err != nil:
				t.Fatal(err)
			default:
				for _, dir := range r.d.Reads(ada) {
					real, err := filepath.EvalSymlinks(dir)
					expect.True(t, err != nil || strings.HasPrefix(real, r.repo), "its agent would read %s", real)
				}
				no(t, r.d.Make(t.Context(), ada))
				expect.True(t, r.read(ada.Path, "a") == "one\ntwo\nthree\n" && r.read(ada.Path, "theirs") == "", "the tree is of something else")
				list := r.read(ada.Path, ".git/objects/info/alternates")
				expect.True(t, !strings.Contains(list, w.other) && !strings.Contains(list, w.secret), "%v", list)
			}
			expect.True(t, r.git(w.other, "for-each-ref", "refs/swarmdeck") == "" && r.git(w.other, "status", "--short") == "",
				"the other repository was written")
		})
	}
}
