package tree_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/git/gittest"
	"swarmdeck/drivers/git/lfs"
	driver "swarmdeck/drivers/tree"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
	"swarmdeck/expect"
)

func TestMain(m *testing.M) {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		syscall.Exit(code) // os.Exit of a race build takes a second
	}
	if code, is := lfs.Entered(os.Args); is {
		syscall.Exit(code)
	}
	os.Exit(m.Run())
}

const tenant = "t_test"

// rig is a repository of an operator and what makes trees of it.
type rig struct {
	*testing.T
	base, repo string
	d          *driver.Driver
	host       *aHost // that has the trees; nil for this machine
}

func newRig(t *testing.T) rig {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	no(t, err)
	t.Setenv("HOME", filepath.Join(base, "home"))
	opt := driver.Options{Cells: gittest.Git(t).Cells, Dir: filepath.Join(base, "trees"), Kept: filepath.Join(base, "kept")}
	r := rig{T: t, base: base, repo: filepath.Join(base, "repo")}
	if os.Getenv(onHost) != "" {
		r.host = &aHost{cells: opt.Cells}
		r.host.desk, err = driver.NewDesk(opt.Cells, nil, filepath.Join(base, "box"))
		no(t, err)
		opt.Hosts = r.host
	}
	r.d, err = driver.New(opt)
	no(t, err)
	r.git(base, "init", "-q", "-b", "main", r.repo)
	r.write(r.repo, ".gitignore", "ignored\n.env\n")
	r.write(r.repo, "a", "one\ntwo\nthree\n")
	r.write(r.repo, "sub/b", "b\n")
	r.write(r.repo, "gone", "gone\n")
	r.git(r.repo, "add", ".")
	r.git(r.repo, "commit", "-q", "-m", "first")
	return r
}

func no(t testing.TB, err error) {
	t.Helper()
	expect.No(t, err)
}

func (r rig) git(dir string, args ...string) string {
	r.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	expect.No(r, err, "git", args, out)
	return strings.TrimSpace(string(out))
}

func (r rig) write(dir, name, text string) {
	r.Helper()
	path := filepath.Join(dir, name)
	no(r, os.MkdirAll(filepath.Dir(path), 0o755))
	no(r, os.WriteFile(path, []byte(text), 0o644))
}

func (r rig) read(dir, name string) string {
	r.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	expect.Must(r, err == nil || errors.Is(err, os.ErrNotExist), "%v", err)
	return string(data)
}

// tree makes a tree of a directory for an agent.
func (r rig) tree(agent, dir string) tree.Tree {
	r.Helper()
	t, err := r.d.Look(r.Context(), tenant, tree.Wanted{Agent: agent, Host: os.Getenv(onHost), Dir: dir})
	no(r, err)
	if t.Kind == tree.Plain {
		t.Since, err = r.d.Tip(r.Context(), t)
		no(r, err)
	}
	t.Included = &tree.Included{}
	no(r, r.d.Make(r.Context(), t))
	return t
}

// remove takes a tree away.
func (r rig) remove(t tree.Tree) {
	r.Helper()
	no(r, r.d.Remove(r.Context(), t))
	if r.host != nil {
		no(r, r.host.desk.Tidy(nil))
	}
}

// over takes a tree over.
func (r rig) over(t tree.Tree, q tree.Join) (tree.Joined, error) {
	r.Helper()
	s, err := r.d.Now(r.Context(), t)
	no(r, err)
	q.State, q.By, q.At = s.Commit, "olga", time.Unix(1e9, 0)
	if q.Message == "" {
		q.Message = "What ada did"
	}
	if q.Onto == "" {
		q.Onto, err = r.d.Tip(r.Context(), t)
		no(r, err)
	}
	out, err := r.d.Join(r.Context(), t, q)
	if err != nil || out.Commit == "" {
		return out, err
	}
	return out, r.d.Land(r.Context(), t, q.Key, q.Onto, out.Commit)
}

func TestATreeIsABranchWithARepositoryOfItsOwn(t *testing.T) {
	r := newRig(t)
	r.write(r.repo, ".worktreeinclude", ".env\n")
	r.git(r.repo, "add", ".worktreeinclude")
	r.git(r.repo, "commit", "-qm", "what trees have")
	r.write(r.repo, ".worktreeinclude", "*\n") // an agent's word, which nobody has taken over
	r.write(r.repo, ".env", "DB=1\n")
	r.write(r.repo, "ignored", "stays\n")
	ada := r.tree("ada", filepath.Join(r.repo, "sub"))
	expect.True(t, ada.Dir() == filepath.Join(ada.Path, "sub") && ada.Base == "main", "%+v", ada)
	expect.Is(t, r.read(ada.Path, "a")+r.read(ada.Path, ".env")+r.read(ada.Path, "ignored"), "one\ntwo\nthree\nDB=1\n")
	expect.Is(t, ada.Included.Told("ada"), "the tree of ada has copies of files that git ignores: .env (5 bytes); 5 bytes in all")
	expect.Is(t, r.git(ada.Path, "status", "--short", "--branch"), "## swarmdeck/ada")
	r.write(ada.Path, "a", "one\nTWO\nthree\n")
	r.git(ada.Path, "commit", "-qam", "upper case")
	r.git(ada.Path, "diff", "main")
	expect.Is(t, r.git(r.repo, "status", "--short"), "M .worktreeinclude", "the repository was changed:")
	// The base may be gone from every branch: what the tree needs of it stays.
	r.git(r.repo, "commit", "-q", "--amend", "-m", "another")
	r.git(r.repo, "reflog", "expire", "--expire=now", "--all")
	r.git(r.repo, "gc", "-q", "--prune=now")
	r.git(ada.Path, "fsck", "--full")
	r.remove(ada)
	expect.True(t, expect.Fault(os.Stat(ada.Path)) != nil && r.git(r.repo, "for-each-ref", "refs/swarmdeck") == "", "the tree left something behind")
}

func TestWhatChangedIsListedAndShown(t *testing.T) {
	r := newRig(t)
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "a", "one\nTWO\nthree\n")
	r.write(ada.Path, "new", "new\n")
	r.write(ada.Path, "bytes", "\x00\x01")
	no(t, os.Remove(filepath.Join(ada.Path, "gone")))
	s, err := r.d.Now(t.Context(), ada)
	no(t, err)
	all, err := r.d.Changes(t.Context(), ada, ada.Since, s.Commit)
	no(t, err)
	want := []tree.Change{
		{Path: "a", Status: "changed", Added: 1, Removed: 1},
		{Path: "bytes", Status: "added", Binary: true},
		{Path: "gone", Status: "deleted", Removed: 1},
		{Path: "new", Status: "added", Added: 1},
	}
	expect.Must(t, len(all) == len(want), "%+v", all)
	for n, c := range want {
		expect.Is(t, all[n], c)
	}
	var b bytes.Buffer
	no(t, r.d.Diff(t.Context(), ada, ada.Since, s.Commit, []string{"a"}, &b))
	expect.True(t, strings.Contains(b.String(), "-two\n+TWO\n") && !strings.Contains(b.String(), "new"), "%v", b.String())
}

func TestChangesAreTakenOverWhereTheBranchIsCheckedOut(t *testing.T) {
	for _, mode := range tree.Modes() {
		t.Run(string(mode), func(t *testing.T) {
			r := newRig(t)
			ada := r.tree("ada", r.repo)
			r.write(ada.Path, "a", "one\nTWO\nthree\n")
			r.git(ada.Path, "commit", "-qam", "upper case")
			r.write(ada.Path, "deep/new", "new\n")
			no(t, os.Remove(filepath.Join(ada.Path, "gone")))
			// Meanwhile the operator goes on, and has work of their own.
			r.write(r.repo, "sub/b", "B\n")
			r.git(r.repo, "commit", "-qam", "of the operator")
			r.write(r.repo, "mine", "mine\n")
			out, err := r.over(ada, tree.Join{Key: "t1", Mode: mode})
			no(t, err)
			got := r.git(r.repo, "rev-parse", "HEAD")
			expect.Must(t, got == out.Commit, "HEAD is %v", got)
			expect.Is(t, r.git(r.repo, "status", "--short"), "?? mine")
			expect.True(t, r.read(r.repo, "a")+r.read(r.repo, "deep/new")+r.read(r.repo, "gone")+r.read(r.repo, "sub/b") == "one\nTWO\nthree\nnew\nB\n",
				"the files are not those of the merge")
			log := r.git(r.repo, "log", "--format=%an: %s", "--topo-order")
			want := map[tree.Mode]string{
				tree.Squash: "olga: What ada did\nt: of the operator\nt: first",
				tree.Rebase: "ada: What ada did\nt: upper case\nt: of the operator\nt: first",
				tree.Merge:  "olga: Merge swarmdeck/ada\nada: What ada did\nt: upper case\nt: of the operator\nt: first",
			}[mode]
			expect.True(t, log == want, "%s\n, not\n%s", log, want)
			r.git(r.repo, "fsck", "--full", "--strict")
			// Done again it is done.
			no(t, r.d.Land(t.Context(), ada, "t1", out.Commit+"^", out.Commit))
		})
	}
}

func TestWorkOfTheOperatorIsNotOverwritten(t *testing.T) {
	r := newRig(t)
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "a", "hers\n")
	r.write(ada.Path, "new", "hers\n")
	r.write(r.repo, "a", "mine\n")
	r.write(r.repo, "new", "mine\n")
	_, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
	expect.Must(t, errors.Is(err, core.Kind(core.Conflict)) && strings.Contains(err.Error(), "a, new"), "%v", err)
	got := r.git(r.repo, "status", "--short")
	expect.True(t, got == "M a\n?? new" && r.git(r.repo, "log", "--format=%s") == "first", "%v", got)
	r.git(r.repo, "stash", "-q", "-u") // no lock is left
}

func TestConflictsAreNamed(t *testing.T) {
	r := newRig(t)
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "a", "one\nhers\nthree\n")
	r.write(r.repo, "a", "one\nmine\nthree\n")
	r.git(r.repo, "commit", "-qam", "mine")
	out, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
	no(t, err)
	expect.True(t, len(out.Conflicts) == 1 && out.Conflicts[0] == "a", "%+v", out)
}

func TestAPartOfWhatChangedIsTakenOver(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("same\n", 20)
	r.write(r.repo, "long", "top\n"+long+"end\n")
	r.git(r.repo, "add", ".")
	r.git(r.repo, "commit", "-qm", "long")
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "long", "TOP\n"+long+"END\n")
	r.write(ada.Path, "a", "hers\n")
	r.write(ada.Path, "new", "new\n")
	_, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash, Only: []tree.Piece{{Path: "long", Hunks: []int{2}}, {Path: "new"}}})
	no(t, err)
	expect.True(t, r.read(r.repo, "long") == "top\n"+long+"END\n" && r.read(r.repo, "new") == "new\n" && r.read(r.repo, "a") == "one\ntwo\nthree\n",
		"something else was taken over")
}

func TestADirectoryWithoutGitHasTreesToo(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(r.base, "plain")
	r.write(dir, "a", "a\n")
	r.write(dir, "sub/b", "b\n")
	ada := r.tree("ada", dir)
	r.write(ada.Path, "a", "A\n")
	r.write(ada.Path, "c/d", "d\n")
	r.write(dir, "mine", "mine\n")
	out, err := r.over(ada, tree.Join{Key: "t1"})
	no(t, err)
	expect.Is(t, r.read(dir, "a")+r.read(dir, "c/d")+r.read(dir, "mine")+r.read(dir, "sub/b"), "A\nd\nmine\nb\n", "the files are not those of both")
	_ = out
}

func TestACommandSeesAStateInACell(t *testing.T) {
	r := newRig(t)
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "a", "hers\n")
	s, err := r.d.Now(t.Context(), ada)
	no(t, err)
	var lines []string
	ran, err := r.d.Run(t.Context(), ada, s.Commit, command(func(line string) { lines = append(lines, line) }, "sh", "-c", "cat a; echo no >&2; exit 3"))
	no(t, err)
	expect.True(t, ran.Code == 3 && strings.Contains(ran.Tail, "hers") && len(lines) == 2, "%+v %q", ran, lines)
}

func TestACommitIsPushed(t *testing.T) {
	r := newRig(t)
	server := gittest.Serve(t)
	server.Known(t, os.Getenv("HOME"))
	url := server.Repository(t, "remote.git")
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "a", "hers\n")
	out, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
	no(t, err)
	no(t, r.d.Push(t.Context(), ada, tree.Push{URL: url, Commit: out.Commit, Branch: "swarmdeck/ada"}))
	expect.Is(t, r.git(filepath.Join(server.Dir, "remote.git"), "rev-parse", "swarmdeck/ada"), out.Commit)
}

// An agent chooses the ids of its calls: none of them passes for a task.
func TestACallsIdIsNoTasks(t *testing.T) {
	r := newRig(t)
	ada := r.tree("ada", r.repo)
	no(t, r.d.Mark(t.Context(), ada, tree.MarkTask+"tk_1"))
	r.write(ada.Path, "a", "hers\n")
	no(t, r.d.Mark(t.Context(), ada, tree.MarkCall+"tk_1"))
	no(t, r.d.Mark(t.Context(), ada, tree.MarkCall+"c1"))
	now, err := r.d.Now(t.Context(), ada)
	no(t, err)
	got, err := r.d.Marked(t.Context(), ada, "tk_1")
	expect.True(t, err == nil && got != now.Commit, "a call stands for the task: %v %v", got, err)
	expect.Is(t, expect.Of(r.d.Marked(t.Context(), ada, "c1"))(t), now.Commit)
	expect.Err(t, expect.Fault(r.d.Marked(t.Context(), ada, "c2")), core.Kind(core.NotFound))
}

// command is one that nobody holds up.
func command(log func(string), argv ...string) tree.Command {
	return tree.Command{Argv: argv, Log: log, Runs: func(tree.Process) func() { return func() {} }}
}
