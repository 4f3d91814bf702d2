package git

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/git/gittest"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

const tenant = "t_test"

// place is a repository of an agent, and what looks after it.
type place struct {
	t    *testing.T
	base string
	root string
	d    *Driver
}

func newPlace(t *testing.T) place {
	t.Helper()
	base := t.TempDir()
	f := expect.Of(files.New(files.Options{Dir: filepath.Join(base, "files")}))(t)
	d := expect.Of(New(Options{Cells: gittest.Git(t).Cells, Dir: filepath.Join(base, "kept"), Files: f}))(t)
	p := place{t, base, filepath.Join(base, "repo"), d}
	p.git(base, "init", "-q", "-b", "main", p.root)
	p.write(".gitignore", "ignored\n")
	p.write("a", "committed\r\n")
	p.git(p.root, "add", ".")
	p.git(p.root, "commit", "-q", "-m", "first")
	return p
}

func (p place) git(dir string, args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	expect.No(p.t, err, "git", args, out)
	return strings.TrimSpace(string(out))
}

func (p place) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.root, name)
	expect.No(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.No(p.t, os.WriteFile(path, []byte(text), 0o644))
}

func (p place) kept(id string) (dag.Resource, dag.Snapshot) {
	p.t.Helper()
	r := expect.Of(p.d.Look(p.t.Context(), p.root))(p.t)
	got := expect.Of(p.d.Snapshot(p.t.Context(), tenant, id, r, nil))(p.t)
	return r, dag.Snapshot{ID: id, Method: got.Method, ExternalRef: got.Ref}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	expect.Must(t, err == nil || os.IsNotExist(err), "%v", err)
	return string(data)
}

func TestAWorktreeIsMadeAgainOnABranchOfItsOwn(t *testing.T) {
	p := newPlace(t)
	p.write("a", "changed\r\n")
	p.write("new/b", "untracked")
	p.write("ignored", "secret")
	p.write(".gitattributes", "* text=auto eol=lf\n")
	before := p.git(p.root, "status", "--porcelain")
	refs := p.git(p.root, "for-each-ref")
	r, snap := p.kept("s1")
	expect.Is(t, p.git(p.root, "for-each-ref"), refs, "a snapshot changed the repository")
	p.write("a", "later")
	p.git(p.root, "commit", "-q", "-a", "-m", "second")

	dest := filepath.Join(p.base, "forks", "ada-2", "repo")
	expect.No(t, os.MkdirAll(filepath.Dir(dest), 0o755))
	for range 2 {
		made := expect.Of(p.d.Restore(t.Context(), tenant, "r1", snap, r, dest))(t)
		path, _ := files.PathOf(made)
		expect.True(t, path == dest && made.ID != r.ID, "made %+v", made)
	}
	expect.Is(t, read(t, filepath.Join(dest, "a")), "changed\r\n", "a is")
	expect.Is(t, read(t, filepath.Join(dest, "new/b")), "untracked", "new/b is")
	expect.Is(t, read(t, filepath.Join(dest, "ignored")), "", "what is ignored was copied")
	got := p.git(dest, "-c", "core.autocrlf=false", "status", "--porcelain")
	expect.True(t, got == before, "status of the fork\n%s\nwant\n%s", got, before)
	expect.Is(t, p.git(dest, "branch", "--show-current"), "swarmdeck/ada-2-repo", "branch")
	expect.Is(t, p.git(dest, "log", "--format=%s"), "first", "log")
	expect.Is(t, read(t, filepath.Join(p.root, "a")), "later", "the original is")
	expect.No(t, p.d.Undo(t.Context(), tenant, "r1", r, dest))
	expect.True(t, os.IsNotExist(expect.Fault(os.Lstat(dest))), "it is there after it was undone")
	got = p.git(p.root, "worktree", "list")
	expect.True(t, !strings.Contains(got, "ada-2") && !strings.Contains(p.git(p.root, "branch"), "swarmdeck"), "left: %s", got)
}

func TestTheSameStateIsTheSameCommit(t *testing.T) {
	p := newPlace(t)
	_, first := p.kept("s1")
	r, second := p.kept("s2")
	expect.Is(t, first.ExternalRef, second.ExternalRef, "the same state, and another commit")
	got, err := p.d.Snapshot(t.Context(), tenant, "s3", r, &first.ExternalRef)
	expect.True(t, err == nil && got.Ref == first.ExternalRef, "%v %v", got, err)
	p.write("a", "changed")
	_, other := p.kept("s4")
	expect.True(t, other.ExternalRef != first.ExternalRef, "a change was not seen")
	_, again := p.kept("s1")
	expect.True(t, again.ExternalRef == first.ExternalRef, "a snapshot taken again under its id is another")
	for _, id := range []string{"s1", "s2", "s4"} {
		expect.No(t, p.d.Drop(t.Context(), tenant, dag.Snapshot{ID: id}))
	}
	expect.No(t, p.d.Sweep(t.Context(), tenant))
}

// TestAHostileRepositoryRunsNothing gives a repository, and one in it, every
// setting that could run a program, and looks whether one has.
func TestAHostileRepositoryRunsNothing(t *testing.T) {
	p := newPlace(t)
	c := gittest.NewCanary(t)
	p.git(p.base, "init", "-q", filepath.Join(p.root, "nested"))
	p.write("nested/f", "one")
	p.git(filepath.Join(p.root, "nested"), "add", ".")
	p.git(filepath.Join(p.root, "nested"), "commit", "-q", "-m", "first")
	c.Infest(filepath.Join(p.root, "nested", ".git"), filepath.Join(p.root, "nested"))
	c.Infest(filepath.Join(p.root, ".git"), p.root)
	p.write("b", "text")
	secret := filepath.Join(p.base, "secret")
	expect.No(t, os.WriteFile(secret, []byte("TOP SECRET"), 0o600))
	expect.No(t, os.Symlink(secret, filepath.Join(p.root, "out")))
	p.kept("s1")
	p.write("nested/f", "two")
	p.write("a", "changed")
	r, snap := p.kept("s2")
	dest := filepath.Join(p.base, "fork")
	expect.Of(p.d.Restore(t.Context(), tenant, "r1", snap, r, dest))(t)
	expect.Is(t, expect.Of(os.Readlink(filepath.Join(dest, "out")))(t), secret)
	expect.Is(t, read(t, filepath.Join(dest, "b")), "text", "b is")
	expect.No(t, p.d.Undo(t.Context(), tenant, "r1", r, dest))
	expect.No(t, p.d.Sweep(t.Context(), tenant))
	ran := c.Ran()
	expect.True(t, len(ran) == 0, "programs of the repository ran: %v", ran)
}

// TestACommitThatIsNotThereIsNotFetched is a partial clone whose remote is a
// command, and whose HEAD names what only that remote would have.
func TestACommitThatIsNotThereIsNotFetched(t *testing.T) {
	p := newPlace(t)
	c := gittest.NewCanary(t)
	c.Infest(filepath.Join(p.root, ".git"), p.root)
	p.write(".git/refs/heads/main", strings.Repeat("12", 20)+"\n")
	r, snap := p.kept("s1")
	expect.Fails(t, expect.Fault(p.d.Restore(t.Context(), tenant, "r1", snap, r, filepath.Join(p.base, "fork"))), "a worktree of a commit that is not there")
	expect.No(t, p.d.Undo(t.Context(), tenant, "r1", r, filepath.Join(p.base, "fork")))
	ran := c.Ran()
	expect.True(t, len(ran) == 0, "programs of the repository ran: %v", ran)
}

// TestARepositorysLinksAreNotFollowed puts links where a new worktree's files
// and its branch are to be written.
func TestARepositorysLinksAreNotFollowed(t *testing.T) {
	for _, name := range []string{"worktrees", "refs/heads/swarmdeck", "refs"} {
		p := newPlace(t)
		r, snap := p.kept("s1")
		out := filepath.Join(p.base, "out")
		expect.No(t, os.Mkdir(out, 0o755))
		expect.No(t, os.RemoveAll(filepath.Join(p.root, ".git", name)))
		expect.No(t, os.Symlink(out, filepath.Join(p.root, ".git", name)))
		expect.Fails(t, expect.Fault(p.d.Restore(t.Context(), tenant, "r1", snap, r, filepath.Join(p.base, "fork"))), name)
		left, err := os.ReadDir(out)
		expect.True(t, err == nil && len(left) == 0, "%s: %v was written: %v", name, left, err)
	}
}

// TestAPipeHoldsNothingUp has pipes where files are read.
func TestAPipeHoldsNothingUp(t *testing.T) {
	p := newPlace(t)
	r, _ := p.kept("s1")
	for _, name := range []string{"HEAD", "packed-refs"} {
		path := filepath.Join(p.root, ".git", name)
		_ = os.Remove(path)
		expect.No(t, syscall.Mkfifo(path, 0o600))
	}
	expect.Of(p.d.Snapshot(t.Context(), tenant, "s2", r, nil))(t)
}

func TestARefThatIsPackedIsFound(t *testing.T) {
	p := newPlace(t)
	p.git(p.root, "pack-refs", "--all")
	r, snap := p.kept("s1")
	dest := filepath.Join(p.base, "fork")
	expect.Of(p.d.Restore(t.Context(), tenant, "r1", snap, r, dest))(t)
	expect.Is(t, p.git(dest, "log", "--format=%s"), "first", "log")
	expect.Is(t, p.git(p.root, "fsck", "--strict"), "", "fsck")
	p.git(p.root, "worktree", "move", dest, dest+"2")
	p.git(p.root, "worktree", "remove", dest+"2")
}

func TestWhatOnlySaysItIsAWorktreeIsNone(t *testing.T) {
	p := newPlace(t)
	liar := filepath.Join(p.base, "liar")
	expect.No(t, os.Mkdir(liar, 0o755))
	for _, text := range []string{"gitdir: " + filepath.Join(p.root, ".git"), "gitdir: /etc", "nothing", strings.Repeat("x", 9000)} {
		expect.No(t, os.WriteFile(filepath.Join(liar, ".git"), []byte(text), 0o600))
		expect.Is(t, core.AsError(expect.Fault(p.d.Look(t.Context(), liar))).Code, core.NotFound, text)
	}
	expect.No(t, os.Remove(filepath.Join(liar, ".git")))
	expect.No(t, os.Symlink(filepath.Join(p.root, ".git"), filepath.Join(liar, ".git")))
	expect.Is(t, core.AsError(expect.Fault(p.d.Look(t.Context(), liar))).Code, core.NotFound)
	linked := filepath.Join(p.base, "linked")
	p.git(p.root, "worktree", "add", "-q", linked)
	r := expect.Of(p.d.Look(t.Context(), linked))(t)
	l, err := p.d.Probe(t.Context(), r)
	expect.True(t, l == dag.Alive && err == nil, "%v %v", l, err)
	expect.No(t, os.RemoveAll(linked))
	l, err = p.d.Probe(t.Context(), r)
	expect.True(t, l == dag.Dead && err == nil, "%v %v", l, err)
}

func TestAWorktreeBeyondItsLimitsIsRefused(t *testing.T) {
	p := newPlace(t)
	p.write("huge", "x")
	expect.No(t, os.Truncate(filepath.Join(p.root, "huge"), 1<<40))
	r := expect.Of(p.d.Look(t.Context(), p.root))(t)
	_, err := p.d.Snapshot(t.Context(), tenant, "s1", r, nil)
	expect.True(t, core.AsError(err).Code == core.InvalidInput && strings.Contains(err.Error(), "huge"), "%v", err)
}

// TestAKilledRestoreIsBroughtToItsEnd cuts a restore off at each of its steps,
// and does it again.
func TestAKilledRestoreIsBroughtToItsEnd(t *testing.T) {
	p := newPlace(t)
	p.write("a", "changed")
	r, snap := p.kept("s1")
	for i, cut := range []time.Duration{0, 5, 10, 20, 40, 60, 80, 100, 150} {
		dest := filepath.Join(p.base, fmt.Sprintf("fork-%d", i))
		id := fmt.Sprintf("r%d", i)
		ctx, end := context.WithTimeout(t.Context(), cut*time.Millisecond) // any time will do
		cmd := exec.CommandContext(ctx, "/proc/self/exe", p.d.opt.Dir, id, snap.ExternalRef.ID, p.root, dest)
		cmd.Env = append(os.Environ(), victim+"=1")
		_ = cmd.Run()
		end()
		expect.True(t, expect.Fault(os.Lstat(dest)) != nil || read(t, filepath.Join(dest, "a")) == "changed", "%d: half a worktree", i)
		// A git that the killed one began may be at work for a moment yet: like
		// the controller, this tries again.
		expect.Await(t, id+" is restored", func() bool { _, err := p.d.Restore(t.Context(), tenant, id, snap, r, dest); return err == nil })
		expect.Is(t, p.git(dest, "status", "--porcelain"), "M a", i)
	}
	left, _ := filepath.Glob(filepath.Join(p.base, ".swarmdeck*"))
	expect.True(t, len(left) == 0, "left %v", left)
}

// victim makes this program one that restores until it is killed.
const victim = "SWARMDECK_TEST_VICTIM"

func TestMain(m *testing.M) {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		syscall.Exit(code) // os.Exit of a race build takes a second
	}
	if os.Getenv(victim) == "" {
		os.Exit(m.Run())
	}
	if err := restore(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func restore() error {
	f, err := files.New(files.Options{Dir: filepath.Join(os.Args[1], "files")})
	if err != nil {
		return err
	}
	sup, err := cell.NewSupervisor(cell.Options{Instance: "git-test-victim-" + strconv.Itoa(os.Getpid())})
	if err != nil {
		return err
	}
	d, err := New(Options{Cells: sup, Dir: os.Args[1], Files: f})
	if err != nil {
		return err
	}
	ctx := context.Background()
	r, err := d.Look(ctx, os.Args[4])
	if err != nil {
		return err
	}
	_, err = d.Restore(ctx, tenant, os.Args[2], dag.Snapshot{ID: "s1", ExternalRef: dag.ExtRef{Kind: refKind, ID: os.Args[3]}}, r, os.Args[5])
	return err
}
