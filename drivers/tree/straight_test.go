package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/git/gittest"
	"swarmdeck/engine/tree"
	"swarmdeck/expect"
)

// planted is a repository with work that is ready to land, and a place beside it.
type planted struct {
	rig
	out     string
	ada     tree.Tree
	tip, to string
}

func newPlanted(t *testing.T) planted {
	p := planted{rig: newRig(t)}
	p.out = filepath.Join(p.base, "out")
	p.write(p.out, "key", "TOP SECRET\n")
	p.ada = p.tree("ada", p.repo)
	p.write(p.ada.Path, "a", "hers\n")
	s, err := p.d.Now(t.Context(), p.ada)
	no(t, err)
	p.tip, err = p.d.Tip(t.Context(), p.ada)
	no(t, err)
	j, err := p.d.Join(t.Context(), p.ada, tree.Join{Key: "t1", State: s.Commit, Onto: p.tip, Mode: tree.Squash, Message: "hers", By: "olga"})
	no(t, err)
	p.to = j.Commit
	return p
}

// link puts a link at a name of the repository to one beside it. What was there is moved
// there; back brings it back.
func (p planted) link(name, to string) (back func()) {
	path, there := filepath.Join(p.repo, ".git", name), filepath.Join(p.out, to)
	moved := os.Rename(path, there) == nil
	no(p, os.MkdirAll(filepath.Dir(path), 0o755))
	no(p, os.Symlink(there, path))
	return func() {
		_ = os.Remove(path) // which may be gone
		if moved {
			no(p, os.Rename(there, path))
		}
	}
}

// land lands, and sees that nothing was written beside the repository.
func (p planted) land(t *testing.T, want string) {
	t.Helper()
	before := all(t, p.out)
	err := p.d.Land(t.Context(), p.ada, "t1", p.tip, p.to)
	switch {
	case want == "":
		no(t, err)
	case err == nil || !strings.Contains(err.Error(), want):
		t.Errorf("%v", err)
	case p.read(p.repo, "a") != "one\ntwo\nthree\n":
		t.Error("files were changed before the refusal")
	}
	after := all(t, p.out)
	expect.True(t, after == before, "written elsewhere:\n%s\nwas\n%s", after, before)
}

// Who shares a repository can put links where a merge writes. It is refused by the path
// before anything is touched, and nothing is written elsewhere.
func TestALandingGoesThroughNoLink(t *testing.T) {
	p := newPlanted(t)
	for _, try := range []struct{ name, to, want string }{
		{"swarmdeck-t1", "key", "swarmdeck-t1"},
		{"swarmdeck-t1", "none", "swarmdeck-t1"},
		{"swarmdeck-t1.paths", "key", "swarmdeck-t1.paths"},
		{"logs", "logs", "logs/refs/heads/main"},
		{"logs/refs/heads/main", "main", "logs/refs/heads/main"},
		{"logs/HEAD", "log", "logs/HEAD"},
		{"refs", "refs", "refs/heads/main"},
		{"refs/heads", "heads", "refs/heads/main"},
		{"refs/heads/main", "main", "refs/heads/main"},
		{"refs/heads/main.lock", "key", "refs/heads/main.lock is locked"},
		{"index.lock", "key", "index.lock is locked"},
		{"index", "index", "index"},
	} {
		t.Run(try.name+" to "+try.to, func(t *testing.T) {
			defer p.link(try.name, try.to)()
			p.land(t, try.want)
		})
	}
	// What is ours by its name is made anew, whatever is there.
	p.link("swarmdeck-index", "key")
	p.link(".swarmdeck-t1", "key")
	no(t, os.Link(filepath.Join(p.out, "key"), filepath.Join(p.repo, ".git/swarmdeck-t1")))
	p.land(t, "")
	expect.True(t, p.read(p.repo, "a") == "hers\n" && p.git(p.repo, "status", "--short") == "", "it was not taken over")
}

func TestALandingGoesThroughNoLinkToThePlaceOfAPackedBranch(t *testing.T) {
	p := newPlanted(t)
	p.git(p.repo, "pack-refs", "--all")
	p.link("refs/heads", "heads")
	p.land(t, "refs/heads/main")
}

func TestALandingChangesNoWorkTreeOfAnotherRepository(t *testing.T) {
	p := newPlanted(t)
	p.git(p.repo, "checkout", "-q", "--detach")
	p.git(p.out, "init", "-q", "other")
	p.write(p.out, "other/a", "one\ntwo\nthree\n")
	dot := filepath.Join(p.repo, ".git/worktrees/x")
	p.write(dot, "HEAD", "ref: refs/heads/main\n")
	p.write(dot, "commondir", "../..\n")
	p.write(dot, "gitdir", filepath.Join(p.out, "other/.git")+"\n")
	p.land(t, "worktrees/x names")
	// Nor is one whose place is a link.
	no(t, os.RemoveAll(dot))
	p.git(p.repo, "worktree", "add", "-q", filepath.Join(p.out, "beside"), "main")
	p.link("worktrees", "worktrees")
	p.land(t, "")
}

// all are the files below a directory with what they hold.
func all(t *testing.T, dir string) string {
	var b strings.Builder
	no(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, bad := os.ReadFile(path)
			b.WriteString(path + ": " + string(data) + "\n")
			return bad
		}
		return err
	}))
	return b.String()
}

// Everything that git is asked for on a repository whose sharer had it run programs at
// every turn: none runs, and the work is taken over all the same.
func TestAHostileRepositoryIsMergedAndPushedWithoutItsPrograms(t *testing.T) {
	for _, mode := range tree.Modes() {
		t.Run(string(mode), func(t *testing.T) {
			r := newRig(t)
			c := gittest.NewCanary(t)
			ada := r.tree("ada", r.repo)
			r.write(ada.Path, "a", "one\nTWO\nthree\n")
			r.git(ada.Path, "commit", "-qam", "upper case")
			r.write(ada.Path, "more", "more\n")
			for _, dir := range []string{r.repo, ada.Path} {
				c.Infest(filepath.Join(dir, ".git"), t.TempDir())
			}
			remote := r.hooked(c, "remote.git")
			c.Infest(remote, t.TempDir())
			r.git(r.base, "config", "-f", filepath.Join(remote, "config"), "--unset-all", "receive.procReceiveRefs") // which nothing but a hook can take
			c.Ran()
			base := ada.Since
			s, err := r.d.Now(t.Context(), ada)
			no(t, err)
			_, err = r.d.Changes(t.Context(), ada, base, s.Commit)
			no(t, err)
			out, err := r.over(ada, tree.Join{Key: "t1", Mode: mode})
			no(t, err)
			expect.True(t, r.read(r.repo, "a") == "one\nTWO\nthree\n" && r.read(r.repo, "more") == "more\n", "it was not taken over")
			no(t, r.d.Push(t.Context(), ada, tree.Push{URL: remote, Commit: out.Commit, Branch: "x"}))
			got := r.read(remote, "refs/heads/x")
			expect.True(t, strings.TrimSpace(got) == out.Commit, "it was not pushed: %v", got)
			no(t, r.d.Land(t.Context(), ada, "t2", out.Commit, base)) // an undo
			no(t, r.d.Remove(t.Context(), ada))
			ran := c.Ran()
			expect.True(t, len(ran) == 0, "programs of the repositories ran: %v", ran)
		})
	}
}
