package git

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/git/gittest"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// forked is a record in which an agent is forked in the middle of its run, and
// the fork goes on.
func forked(t *testing.T) func(yield func(dag.Record, error) bool) {
	t.Helper()
	var all []dag.Record
	seq := map[string]uint64{}
	add := func(text string) dag.Event {
		e := expect.Of(dag.Parse([]byte(text)))(t)
		seq[e.RunID]++
		all = append(all, dag.Record{Pos: uint64(len(all) + 1), Seq: seq[e.RunID], Event: e})
		return e
	}
	event := func(n int, agent, run, kind, more string) dag.Event {
		return add(fmt.Sprintf(`{"kind":%q,"ts":"2026-01-02T03:04:%02dZ","run_id":%q,"agent_id":%q%s}`, kind, n, run, agent, more))
	}
	event(1, "ada", "r-1", "run_started", "")
	at := event(2, "ada", "r-1", "mcp.resource_list_changed", `,"server":"s"`)
	event(3, "ada", "r-1", "mcp.resource_list_changed", `,"server":"s"`)
	add(fmt.Sprintf(`{"kind":"agent_forked","ts":"2026-01-02T03:04:04Z","agent_id":"ada","from_branch":"main","to_branch":"try it","at_event":{"event_id":%q},
		"nodes":[{"type":"Subagent","id":"ada-2","parent_agent_id":"ada"}]}`, at.EventID))
	event(5, "ada-2", "r-2", "run_started", "")
	event(6, "ada", "r-1", "run_finished", "")
	event(7, "ada-2", "r-2", "run_finished", "")
	return func(yield func(dag.Record, error) bool) {
		for _, rec := range all {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func says(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	out := expect.Of(gittest.Git(t).Run(t.Context(), git.Call{Dir: dir, GitDir: filepath.Join(dir, ".git"), Args: args}))(t)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestAForkIsABranchFromItsEvent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	records := forked(t)
	expect.No(t, (Format{gittest.Git(t)}).Export(t.Context(), dir, records))
	problems := says(t, dir, "fsck", "--strict")
	expect.True(t, problems[0] == "", "%v", problems)
	titles := func(branch string) string {
		return strings.Join(says(t, dir, "log", "--reverse", "--format=%s", branch), "; ")
	}
	expect.Is(t, titles("agents/ada"), "run-r-1: events 1 to 2; agent-ada: events 1 to 1; run-r-1: events 3 to 4", "ada")
	expect.Is(t, titles("agents/ada-2"), "run-r-1: events 1 to 2; run-r-2: events 1 to 2", "ada-2")
	fork := says(t, dir, "for-each-ref", "--format=%(refname:short)", "refs/heads/forks/ada/")
	expect.True(t, len(fork) == 1 && titles(fork[0]) == "run-r-1: events 1 to 2", "%v", fork)
	files := says(t, dir, "ls-tree", "-r", "--name-only", "record")
	expect.True(t, len(files) == 5, "record has %v", files)
	again := filepath.Join(t.TempDir(), "again")
	expect.No(t, (Format{gittest.Git(t)}).Export(t.Context(), again, records))
	a, b := says(t, dir, "rev-parse", "record"), says(t, again, "rev-parse", "record")
	expect.True(t, a[0] == b[0], "the same record makes %s and %s", a, b)
}

func TestNamesOfBranchesAreSound(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"plain", "with space", "with_space", "../../etc", ".lock", "a.lock", "-x", "ä", "ö", strings.Repeat("x", 300), strings.Repeat("x", 301), "@{", "a//b", "A+1"} {
		n := name(id)
		other, twice := seen[n]
		expect.True(t, !twice, "%q and %q are both %s", id, other, n)
		seen[n] = id
		_, err := gittest.Git(t).Run(t.Context(), git.Call{Args: []string{"check-ref-format", agentBranch + n}})
		expect.True(t, err == nil && len(n) <= 100, "%q: %s: %v", id, n, err)
	}
}
