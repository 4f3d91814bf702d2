package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

// TestAMergeThatWasBegunIsThereWholeOrNotAtAll kills the engine at random instants of an
// approved merge of many files: changed, new and deleted ones. Nothing that was answered is
// asked again; where the answer did not come in, it is denied then. Branch, index, files and record agree each time.
// SWARMDECK_TREE_KILLS is how many kills of merges of 3,000 files, where somebody has more
// time.
func TestAMergeThatWasBegunIsThereWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	kills, files := 2, 100
	if n, err := strconv.Atoi(os.Getenv("SWARMDECK_TREE_KILLS")); err == nil {
		kills, files = n, 3000
	}
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("SWARMDECK_TREE_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
		began := time.Now()
		u := newUser(t)
		u.program = u.built()
		k := &treeKills{user: u, random: rand.New(rand.NewPCG(seed, 0)), src: filepath.Join(u.home, "src"), took: map[string]time.Duration{}, ops: map[string]int{}, agent: "ada"}
		for i := range files / 2 {
			k.write(k.src, fmt.Sprintf("many/%d/%d", i%30, i), lines("first", 20))
		}
		k.git(k.src, "init", "-q", "-b", "main")
		k.git(k.src, "add", "-A")
		k.git(k.src, "commit", "-q", "-m", "first")
		k.write(k.src, "notes.txt", "my own notes\n")
		k.serve()
		k.create()
		for n := range kills + 1 { // the first is let be, to see how long it takes
			k.begun(n, files)
		}
		k.serve()
		k.ok("audit", "verify")
		k.ok("audit", "reconcile")
		t.Logf("%d kills of merges of %d files in %s, one of which takes %s: %v", kills, files, time.Since(began), k.took["begun"], k.ops)
	})
}

// begun has a merge approved, kills the engine meanwhile, and looks at what came of it.
func (k *treeKills) begun(n, files int) {
	k.t.Helper()
	k.n = n
	k.serve()
	for i := range files / 2 {
		k.write(k.tree, fmt.Sprintf("many/%d/%d", i%30, i), lines(fmt.Sprint("round ", n), 20))
		k.write(k.tree, fmt.Sprintf("new%d/%d/%d", n, i%30, i), lines("new", 20+80_000/files)) // more than a card shows
	}
	k.must(os.RemoveAll(filepath.Join(k.tree, fmt.Sprint("new", n-1))))
	before, status := k.git(k.src, "rev-parse", "main"), k.git(k.src, "status", "--porcelain", "-uall")
	notes, work := k.read("notes.txt"), k.content(k.tree)
	id := field(k.ok("merge", k.agent, "--message", "merged", "-o", "json"), "task_id")
	approval := ""
	expect.Await(k.t, "question whether "+id+" merges", func() bool {
		approval = k.question(id)
		return approval != ""
	})
	answered := true
	approve := []string{"approval", "approve", approval, "--reason", "looks right"}
	if n == 0 {
		began := time.Now()
		k.ok(approve...)
		k.ok("task", "wait", id, "--timeout", patience.String())
		k.took["begun"] = time.Since(began)
	} else {
		answered = k.killedIn(approve)
		k.serve()
	}
	ended := ""
	expect.Await(k.t, "end of "+id, func() bool {
		if q := k.question(id); q != "" {
			k.ops["asked again"]++
			expect.Must(k.t, !answered, "round %d: what was approved is asked again", n)
			k.ok("approval", "deny", q, "--reason", "not any more")
		}
		_, out, _ := k.run("task", "wait", id, "--timeout", "1s", "-o", "json")
		ended = field(out, "status")
		return ended != "" && ended != "queued" && ended != "running"
	})
	k.ops[ended]++
	k.whole("merge "+ended, status, notes, "", work)
	now, merged := k.git(k.src, "rev-parse", "main"), ended == "succeeded"
	switch {
	case !merged && now != before:
		k.t.Fatalf("round %d: %s, and main moved", n, ended)
	case merged && k.git(k.src, "rev-parse", "main^") != before:
		k.t.Fatalf("round %d: it is not one commit", n)
	case merged && k.git(k.src, "rev-parse", "main^{tree}") != work:
		k.t.Fatalf("round %d: main holds something else than the tree of the agent", n)
	}
	if left := k.ok("review", "list", "-o", "json"); strings.Contains(left, `"changes":[]`) != merged || strings.Contains(left, `"landing"`) && !merged {
		k.t.Fatalf("round %d: %s, and the record says %.300s", n, ended, left)
	}
}

// question is the open one about a task.
func (k *treeKills) question(task string) (approval string) {
	k.t.Helper()
	for line := range strings.Lines(k.ok("approval", "list", "--open", "-o", "json")) {
		if field(line, "task_id") == task {
			approval = field(line, "approval_id")
		}
	}
	return approval
}

// killedIn runs a command and kills the engine at a random instant of what comes of it;
// it reports whether the command was carried out by then.
func (k *treeKills) killedIn(args []string) bool {
	k.t.Helper()
	cmd := k.command(args...)
	instant := time.After(time.Duration(k.random.Int64N(int64(k.took["begun"]))))
	k.must(cmd.Start())
	<-instant
	k.kill()
	return cmd.Wait() == nil
}
