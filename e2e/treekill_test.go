package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/expect"
)

// treePolicy lets the tasks of trees go on: what is tried here is not the gate.
const treePolicy = `
schema: 1
name: trees
rules:
  - {id: rest, gates: [task.start, tool.call, result], when: "true", decision: approve, reason_code: trial, risk: low}
`

// TestAKilledEngineLeavesNoRepositoryHalfMerged kills the engine and all its
// processes at random instants of what it does to an operator's repository. The next
// engine brings it to its end: the repositories are sound, each change is there
// whole and once or not at all, as its task says, and nobody's work is lost.
// SWARMDECK_TREE_KILLS is how many, where somebody has more time.
func TestAKilledEngineLeavesNoRepositoryHalfMerged(t *testing.T) {
	t.Parallel()
	kills := 6
	if n, err := strconv.Atoi(os.Getenv("SWARMDECK_TREE_KILLS")); err == nil {
		kills = n
	}
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("SWARMDECK_TREE_SEED"), 10, 64); err == nil {
		seed = n
	}
	const hands = 2
	for hand := range hands {
		t.Run(fmt.Sprintf("seed %d hand %d", seed, hand), func(t *testing.T) {
			t.Parallel()
			k := newTreeKills(t, rand.New(rand.NewPCG(seed, uint64(hand))))
			for n := range kills / hands {
				k.round(n)
			}
			k.serve()
			k.ok("audit", "verify")
			k.ok("audit", "reconcile")
			t.Logf("%d kills, %d of them before the end: %v", kills/hands, k.cut, k.ops)
		})
	}
}

// treeKills is an operator with a repository, whose engine is killed.
type treeKills struct {
	*user
	random      *rand.Rand
	engine      *exec.Cmd
	src, remote string
	took        map[string]time.Duration // what an operation took when it was let be
	ops         map[string]int           // how often one was cut short
	cut         int

	agent, tree string
	n           int // of the round
}

func newTreeKills(t *testing.T, r *rand.Rand) *treeKills {
	u := newUser(t)
	u.program = u.built() // what is killed is to be as fast as it will be
	k := &treeKills{
		user: u, random: r, src: filepath.Join(u.home, "src"), remote: filepath.Join(u.home, "remote.git"),
		took: map[string]time.Duration{}, ops: map[string]int{},
	}
	for name, text := range map[string]string{
		"a.txt": lines("a", 60), "sub/b.txt": lines("b", 60), "sub/deep/c.txt": lines("c", 60), "own.txt": lines("own", 5),
		"old.txt": lines("old", 30), "gone.txt": "gone\n", "sub/run.sh": "#!/bin/sh\nexit 0\n",
	} {
		k.write(k.src, name, text)
	}
	k.must(os.Chmod(filepath.Join(k.src, "sub/run.sh"), 0o755))
	k.must(os.Symlink("a.txt", filepath.Join(k.src, "link")))
	k.git(k.src, "init", "-q", "-b", "main")
	k.git(k.src, "add", "-A")
	k.git(k.src, "commit", "-q", "-m", "first")
	k.git(k.src, "init", "-q", "--bare", k.remote)
	k.write(k.home, "trees.yaml", treePolicy)
	k.write(k.home, "trees.jsonl", `{"name":"goes on","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"approve"}}`+"\n")
	k.serve()
	k.ok("project", "remote", "p", "origin", k.remote)
	k.ok("policy", "activate", field(k.ok("policy", "propose", "trees.yaml", "--tests", "trees.jsonl", "-o", "json"), "policy_id"))
	return k
}

func lines(word string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, word, i)
	}
	return b.String()
}

func (k *treeKills) must(err error) {
	k.t.Helper()
	expect.No(k.t, err)
}

func (k *treeKills) write(dir, name, text string) {
	k.t.Helper()
	path := filepath.Join(dir, name)
	k.must(os.MkdirAll(filepath.Dir(path), 0o755))
	k.must(os.WriteFile(path, []byte(text), 0o644))
}

func (k *treeKills) git(dir string, args ...string) string {
	k.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	expect.No(k.t, err, "round", k.n, "git", args, out)
	return strings.TrimRight(string(out), "\n")
}

// serve starts an engine in a process group of its own.
func (k *treeKills) serve() {
	k.t.Helper()
	if k.engine != nil {
		return
	}
	k.attr = &syscall.SysProcAttr{Setpgid: true}
	k.engine = k.daemon("serve", "--slots", "4").cmd
	k.attr = nil
}

// kill ends the engine and the processes of its group.
func (k *treeKills) kill() {
	_ = syscall.Kill(-k.engine.Process.Pid, syscall.SIGKILL)
	_ = k.engine.Wait()
	k.engine = nil
}

// work is what an agent does: some of it committed, in two commits, and the rest not.
func (k *treeKills) work(op string) (commits int) {
	edit := func(name string, at int) {
		path := filepath.Join(k.tree, name)
		text, err := os.ReadFile(path)
		k.must(err)
		all := strings.SplitAfter(string(text), "\n")
		all[at] = fmt.Sprintf("%s of round %d\n", name, k.n)
		k.must(os.WriteFile(path, []byte(strings.Join(all, "")), 0o644))
	}
	edit("a.txt", 2)
	edit("a.txt", 50)
	k.git(k.tree, "commit", "-q", "-am", "one")
	edit("sub/b.txt", 7)
	k.must(os.Remove(filepath.Join(k.tree, "link")))
	k.must(os.Symlink(fmt.Sprint("sub/", k.n), filepath.Join(k.tree, "link")))
	k.git(k.tree, "add", "-A")
	k.git(k.tree, "commit", "-q", "-m", "two")
	from, to := "old.txt", "moved/new.txt" // there and back
	if _, err := os.Lstat(filepath.Join(k.tree, from)); err != nil {
		from, to = to, from
	}
	k.must(os.MkdirAll(filepath.Dir(filepath.Join(k.tree, to)), 0o755))
	k.must(os.Rename(filepath.Join(k.tree, from), filepath.Join(k.tree, to)))
	if os.Remove(filepath.Join(k.tree, "gone.txt")) != nil {
		k.write(k.tree, "gone.txt", "back\n")
	}
	mode := os.FileMode(0o755)
	if info, err := os.Stat(filepath.Join(k.tree, "sub/run.sh")); err == nil && info.Mode().Perm()&0o100 != 0 {
		mode = 0o644
	}
	k.must(os.Chmod(filepath.Join(k.tree, "sub/run.sh"), mode))
	for i := range 20 {
		k.write(k.tree, fmt.Sprintf("many/%d/%d", k.n%3, i), fmt.Sprint("round ", k.n))
	}
	if op == "rebase" {
		return 3
	}
	return 1
}

// content is the tree object of all files of a work tree, without touching its index.
func (k *treeKills) content(dir string) string {
	k.t.Helper()
	index := filepath.Join(k.home, "index")
	defer os.Remove(index)
	cmd := exec.Command("sh", "-c", "git read-tree HEAD && git add -A && git write-tree")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_INDEX_FILE="+index)
	out, err := cmd.Output()
	expect.No(k.t, err, "round", k.n, "what is in", dir)
	return strings.TrimSpace(string(out))
}

// create makes an agent, again where an engine was killed before it was there.
func (k *treeKills) create() {
	k.t.Helper()
	if code, out, _ := k.run("agent", "show", k.agent, "-o", "json"); code != 0 || field(out, "dir") == "" {
		k.ok("agent", "create", k.agent, "--project", "p", "--dir", k.src, "--tree", "--", "cat")
	}
	k.tree = field(k.ok("agent", "show", k.agent, "-o", "json"), "dir")
}

// round does one thing, kills the engine meanwhile, and looks at what comes of it.
func (k *treeKills) round(n int) {
	k.t.Helper()
	k.n, k.agent = n, fmt.Sprint("agent", n)
	op := []string{"create", "squash", "rebase", "merge", "file", "hunk", "push", "undo"}[k.random.IntN(8)]
	k.serve()
	if k.random.IntN(2) == 0 { // the operator is at work too
		k.write(k.src, "notes.txt", fmt.Sprint("notes of round ", n))
		k.write(k.src, "own.txt", fmt.Sprint("own, changed in round ", n))
	}
	before := k.git(k.src, "rev-parse", "main")
	status := k.git(k.src, "status", "--porcelain", "-uall")
	notes, own := k.read("notes.txt"), k.read("own.txt")

	var args []string
	commits, want := 0, before
	if op != "create" {
		k.create()
		commits = k.work(op)
	}
	switch op {
	case "create":
		args = []string{"agent", "create", k.agent, "--project", "p", "--dir", k.src, "--tree", "--", "cat"}
	case "squash", "rebase", "merge":
		args = []string{"merge", k.agent, "--" + op, "--message", "merged", "--wait"}
	case "file":
		args = []string{"review", "accept", k.agent, "a.txt", "sub/b.txt", "--message", "accepted", "--wait"}
	case "hunk":
		args = []string{"review", "accept", k.agent, "a.txt:2", "--message", "accepted", "--wait"}
	case "push":
		args = []string{"push", k.agent, "--to", k.agent, "--message", "pushed", "--wait"}
	case "undo":
		merged := field(k.ok("merge", k.agent, "--message", "merged", "--wait", "-o", "json"), "task_id")
		want, before = before, k.git(k.src, "rev-parse", "main")
		args, commits = []string{"merge", "undo", merged, "--wait"}, -1
	}
	work, old := "", []string{}
	if op != "create" {
		work, old = k.content(k.tree), k.tasks()
	}

	k.struck(op, args)
	k.serve()
	if op == "create" {
		k.create()
		work = k.git(k.src, "rev-parse", "main^{tree}")
	} else if !k.settled(old) { // it was never asked for
		k.whole(op, status, notes, own, work)
		now := k.git(k.src, "rev-parse", "main")
		expect.Must(k.t, now == before, "round %d: %s: no task, and main is at %s instead of %s", n, op, now, before)
		k.ok(args...)
	}
	k.whole(op, status, notes, own, work)
	now := k.git(k.src, "rev-parse", "main")
	switch op {
	case "create":
		expect.Must(k.t, now == before, "round %d: main moved", n)
	case "push":
		got := k.git(k.remote, "rev-parse", k.agent+"^{tree}")
		expect.Must(k.t, got == work && now == before, "round %d: %s was pushed, the work is %s", n, got, work)
		c := k.git(k.remote, "rev-list", "--count", before+".."+k.agent)
		expect.Must(k.t, c == "1", "round %d: %s commits were pushed", n, c)
	case "undo":
		expect.Must(k.t, now == want, "round %d: undone to %s, want %s", n, now, want)
	default:
		c := k.git(k.src, "rev-list", "--count", "--first-parent", before+".."+now)
		expect.Must(k.t, c == fmt.Sprint(commits), "round %d: %s: %s commits, want %d", n, op, c, commits)
		got := k.git(k.src, "rev-parse", "main^{tree}")
		if op != "file" && op != "hunk" && got != work {
			k.t.Fatalf("round %d: %s: main holds %s, the tree of the agent %s", n, op, got, work)
		}
		changed := map[string]string{"file": "a.txt\nsub/b.txt", "hunk": "a.txt"}[op]
		is := k.git(k.src, "diff", "--name-only", before, now)
		expect.Must(k.t, changed == "" || is == changed, "round %d: %s took over %q", n, op, is)
	}
	k.ok("agent", "delete", k.agent, "--yes", "--discard")
}

// struck runs a command and kills the engine at a random instant of it.
func (k *treeKills) struck(op string, args []string) {
	k.t.Helper()
	began, cmd := time.Now(), k.command(args...)
	k.must(cmd.Start())
	over := expect.Later(func() error { return cmd.Wait() })
	instant := time.After(time.Duration(k.random.Int64N(int64(cmp.Or(k.took[op], time.Second)))))
	for killed := false; ; {
		select {
		case <-instant:
			k.kill()
			killed = true
		case err := <-over:
			switch {
			case err == nil:
				k.took[op] = time.Since(began)
			case !killed:
				k.t.Fatalf("round %d: %v: %v", k.n, args, err)
			default:
				k.cut++
				k.ops[op]++
			}
			if !killed {
				k.kill()
			}
			return
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			k.t.Fatalf("round %d: %v goes on", k.n, args)
		}
	}
}

func (k *treeKills) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(k.src, name)) // it may not be there
	return string(text)
}

// tasks are those of trees, the newest first.
func (k *treeKills) tasks() (ids []string) {
	k.t.Helper()
	for line := range strings.Lines(k.ok("task", "list", "--page-size", "100", "-o", "json")) {
		if id := field(line, "task_id"); id != "" && strings.HasPrefix(field(line, "kind"), "tree.") {
			ids = append(ids, id)
		}
	}
	return ids
}

// settled waits for the task that is there since then, and reports whether one is.
func (k *treeKills) settled(old []string) bool {
	k.t.Helper()
	for _, id := range k.tasks() {
		if slices.Contains(old, id) {
			continue
		}
		if code, out, bad := k.run("task", "wait", id, "--timeout", patience.String(), "-o", "json"); code != 0 || field(out, "status") != "succeeded" {
			_, why, _ := k.run("result", "show", id)
			k.t.Fatalf("round %d: %s did not succeed: %s%s%s", k.n, id, out, bad, why)
		}
		return true
	}
	return false
}

// whole checks what has to hold whatever came of it.
func (k *treeKills) whole(op, status, notes, own, work string) {
	k.t.Helper()
	for _, dir := range []string{k.src, k.tree, k.remote} {
		if dir != "" {
			if said := k.git(dir, "fsck", "--full", "--strict", "--no-dangling"); strings.Contains(said, "error") || strings.Contains(said, "warning") {
				k.t.Errorf("round %d: %s: fsck of %s: %s", k.n, op, dir, said)
			}
		}
	}
	if got := k.git(k.src, "status", "--porcelain", "-uall"); got != status {
		k.t.Fatalf("round %d: %s: the operator's work tree has\n%s\nwant\n%s", k.n, op, got, status)
	}
	if k.read("notes.txt") != notes || k.read("own.txt") != own {
		k.t.Fatalf("round %d: %s: the operator's work was changed", k.n, op)
	}
	if got := k.content(k.tree); got != work {
		k.t.Fatalf("round %d: %s: the agent's tree holds %s, not %s", k.n, op, got, work)
	}
	for _, dir := range []string{filepath.Join(k.src, ".git"), k.src, filepath.Join(k.tree, ".git"), cmp.Or(k.remote, k.src)} {
		k.must(filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			name := filepath.Base(path)
			if strings.HasPrefix(name, "swarmdeck-") || strings.HasPrefix(name, ".swarmdeck-") || strings.HasSuffix(name, ".lock") {
				k.t.Errorf("round %d: %s left %s", k.n, op, path)
			}
			return err
		}))
	}
}
