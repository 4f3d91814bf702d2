package dag_test

import (
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// within tells something of a run in a transaction.
func (r *rig) within(run string, tell func(*dag.Recording)) {
	r.T.Helper()
	r.No(r.Ledger.Append(r.T.Context(), core.Self(acme, "tests"), func(tx *audit.Tx) error {
		return r.Tell(tx, run, tell)
	}))
}

func (r *rig) started(info dag.RunInfo, attempt bool) (run string) {
	r.T.Helper()
	r.No(r.Ledger.Append(r.T.Context(), core.Self(acme, "tests"), func(tx *audit.Tx) (err error) {
		run, err = r.StartIn(tx, info, attempt)
		return err
	}))
	return run
}

func (r *rig) openRuns(agent, task string) (ofAgent, ofTask string) {
	r.T.Helper()
	r.No(r.Ledger.Append(r.T.Context(), core.Self(acme, "tests"), func(tx *audit.Tx) (err error) {
		if ofAgent, err = r.OpenRun(tx, agent); err == nil {
			ofTask, err = r.Attempt(tx, task)
		}
		return err
	}))
	return ofAgent, ofTask
}

func TestARunToldWithinTransactionsIsOneChain(t *testing.T) {
	r := newRig(t)
	run := r.started(dag.RunInfo{AgentID: "sub", TaskID: "task-1", AskedBy: "alice", AskedKind: "operator"}, false)
	a, task := r.openRuns("sub", "task-1")
	expect.True(t, a == run && task == "", "open are %q and %q", a, task)
	r.within(run, func(w *dag.Recording) {
		w.Said(dag.ListMain, dag.RoleUser, "go")
	})
	r.within(run, func(w *dag.Recording) {
		w.Call("", "skill", "greet@1.0.0", "x-1", core.Raw(`{"n":1}`))
	})
	r.within(run, func(w *dag.Recording) { w.Result("x-1", dag.CallOK, core.Raw(`{"ok":true}`), nil) })
	r.within(run, func(w *dag.Recording) { w.Result("x-1", dag.CallError, nil, nil) }) // told once
	r.within(run, func(w *dag.Recording) { w.Call("", "skill", "greet@1.0.0", "x-2", nil) })
	r.within(run, func(w *dag.Recording) { w.Finish(true) })
	r.within(run, func(w *dag.Recording) { w.Call("", "skill", "late", "x-3", nil) })
	want := []string{"run_started", "history_append", "tool_call", "tool_result ok", "tool_call", "tool_result canceled", "interruption", "run_finished"}
	expect.Same(t, r.kinds(run), want)
	a, task = r.openRuns("sub", "task-1")
	expect.True(t, a+task == "", "still open are %q and %q", a, task)
	page := expect.Of(r.Events(t.Context(), acme, dag.Query{Run: run}))(r.T)
	last := page.Items[len(page.Items)-1].Event.EventID
	line := expect.Of(r.Lineage(t.Context(), acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeEvent, ID: last}, Depth: 50}))(r.T)
	var got []string
	for _, s := range line.Steps {
		got = append(got, s.Node.ID)
	}
	for _, e := range page.Items[:len(page.Items)-1] {
		expect.True(t, slices.Contains(got, e.Event.EventID), "the run's %s did not lead to its end, as it seems: %v", e.Event.Kind, got)
	}
}

// What a recorder has told rests on disk until its task says what it came to, over a
// restart; the next attempt closes what nobody concluded.
func TestAnAttemptWaitsForWhatItCameTo(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	rec := r.record()
	r.No(rec.Said(ctx, dag.ListMain, dag.RoleUser, "go"))
	r.No(rec.Call(ctx, "acp", "exec", "c-1", core.Raw(`{}`)))
	r.No(rec.Result(ctx, "c-1", dag.CallOK, core.Raw(`{}`), nil))
	r.No(rec.Said(ctx, dag.ListMain, dag.RoleAssistant, "done"))
	r.No(rec.Rest(ctx))
	r.No(r.DB.Close())
	r.Open()
	r.No(r.Recover(ctx, acme))
	_, run := r.openRuns("ada", "task-1")
	expect.Must(t, run == rec.RunID(), "the attempt is %q", run)
	r.within(run, func(w *dag.Recording) {
		w.Note("result", dag.RoleSystem, "task-1", "result", map[string]string{"status": "succeeded"})
	})
	next := r.record()
	want := "run_started history_append tool_call tool_result ok history_append history_append interruption run_finished"
	expect.Is(t, strings.Join(r.kinds(run), " "), want)
	r.No(next.Rest(ctx))
	_, task := r.openRuns("ada", "task-1")
	expect.True(t, task == next.RunID(), "the attempt is %q", task)
}

func TestAnAnswerFollowsFromAllThatLedToIt(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	rec := r.record()
	r.No(rec.Said(ctx, dag.ListMain, dag.RoleUser, "go"))
	for _, call := range []string{"c-1", "c-2"} {
		r.No(rec.Call(ctx, "acp", "exec", call, core.Raw(`{}`)))
		r.No(r.Ledger.Append(ctx, core.Self(acme, "judge"), func(tx *audit.Tx) error {
			return rec.DecideIn(tx, call, core.Raw(`{"decision":"approve","decided_by":"alice"}`))
		}))
		r.No(rec.Result(ctx, call, dag.CallOK, core.Raw(`{}`), nil))
	}
	r.No(rec.Said(ctx, dag.ListMain, dag.RoleAssistant, "done"))
	r.No(r.finish(rec, true))
	page := expect.Of(r.Events(ctx, acme, dag.Query{Run: rec.RunID(), Filter: core.Filter{Size: 100}}))(r.T)
	answer := page.Items[len(page.Items)-2].Event
	for _, from := range []dag.NodeRef{{Type: dag.TypeEvent, ID: answer.EventID}, answer.Nodes[0].Ref()} {
		line := expect.Of(r.Lineage(ctx, acme, dag.LineageQuery{Node: from}))(r.T)
		seen := map[string]bool{}
		for _, s := range line.Steps {
			seen[s.Node.ID] = true
		}
		for _, e := range page.Items[:len(page.Items)-2] {
			expect.True(t, seen[e.Event.EventID], "%s does not lead back to a %s", from, e.Event.Kind)
		}
	}
}
