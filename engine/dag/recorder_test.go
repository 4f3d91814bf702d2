package dag_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

func (r *rig) record() *dag.Recording {
	r.t.Helper()
	rec, err := r.Record(r.t.Context(), alice, dag.RunInfo{AgentID: "ada", TaskID: "task-1", Reason: "user", TraceID: "0af7651916cd43dd8448eb211c80319c"})
	r.no(err)
	return rec
}

// kinds are the kinds of a run's events in their order, with their status.
func (r *rig) kinds(run string) (all []string) {
	r.t.Helper()
	page, err := r.Events(r.t.Context(), acme, dag.Query{Run: run, Filter: core.Filter{Size: 100}})
	r.no(err)
	for _, e := range page.Items {
		text := string(e.Event.Kind)
		if b, ok := e.Event.Body.(*dag.ToolResult); ok {
			text += " " + string(b.Status)
		}
		all = append(all, text)
	}
	return all
}

func TestARunIsRecordedAsItGoes(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	r.no(rec.Said(ctx, "main", dag.RoleUser, "Build it"))
	r.no(rec.Call(ctx, "acp", "exec", "c-1", core.Raw(`{"cmd":"rm -rf /"}`)))
	r.no(rec.Substitute(ctx, "c-1", core.Raw(`{"cmd":"ls"}`), "edited by alice"))
	r.no(rec.Result(ctx, "c-1", dag.CallOK, core.Raw(`{"rc":0}`), nil))
	r.no(rec.Call(ctx, "acp", "exec", "c-2", core.Raw(`{}`)))
	r.no(rec.Interrupt(ctx, dag.ReasonApprovalDenied, "c-2"))
	r.no(rec.Result(ctx, "never-asked", dag.CallError, core.Raw(`"text"`), &dag.Fault{Code: "x", Message: "y"}))
	r.no(rec.Call(ctx, "acp", "exec", "c-3", core.Raw(`{}`)))
	r.no(rec.Finish(ctx, true))
	want := []string{
		"run_started", "history_append", "tool_call", "tool_call", "substitution", "tool_result ok", "tool_call", "tool_result canceled",
		"interruption", "tool_call", "tool_result error", "tool_call", "tool_result canceled", "interruption", "run_finished",
	}
	if got := r.kinds(rec.RunID()); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	s, err := r.Run(ctx, acme, rec.RunID())
	if err != nil || s.Status != "finished" || s.TaskID != "task-1" || len(s.OpenCalls) != 0 {
		t.Errorf("%+v %v", s, err)
	}
	r.no(r.Recover(ctx, acme)) // finds nothing
	if got := r.kinds(rec.RunID()); len(got) != len(want) {
		t.Errorf("%v", got)
	}
}

func TestWhatIsGatheredOutlivesACancel(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	r.no(rec.Said(t.Context(), "main", dag.RoleUser, "Build it"))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r.no(rec.Call(gone, "acp", "exec", "c-1", core.Raw(`{}`)))
	r.no(rec.Result(gone, "c-1", dag.CallOK, core.Raw(`{}`), nil))
	r.no(rec.Finish(t.Context(), true))
	want := []string{"run_started", "history_append", "tool_call", "tool_result ok", "run_finished"}
	if got := r.kinds(rec.RunID()); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestARunThatWasCutOffIsClosed(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	r.no(rec.Call(t.Context(), "acp", "exec", "c-1", core.Raw(`{}`)))
	r.no(r.db.Close()) // the process dies here
	r.open()
	r.no(r.Recover(t.Context(), acme))
	r.no(r.Recover(t.Context(), acme))
	if got := r.kinds(rec.RunID()); !slices.Equal(got, []string{"run_started", "tool_call", "tool_result interrupted", "interruption", "run_finished"}) {
		t.Errorf("%v", got)
	}
}

func TestWhatAnAgentSaysIsMadeFit(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	r.no(rec.Said(ctx, "main", dag.RoleAssistant, "\xff\x00\x1b]0;owned\u202e"+strings.Repeat("x", 3<<20)))
	r.no(rec.Call(ctx, "s\x1b", "\u202et", strings.Repeat("c", 2000), core.Raw(`{"n":12345678901234567890}`)))
	r.no(rec.Call(ctx, "s", "t", "c", core.Raw(`not json`)))
	r.no(rec.Result(ctx, "c", dag.CallOK, core.Raw(`[1]`), &dag.Fault{Code: "\x00", Message: "\xff"}))
	r.no(rec.Finish(ctx, false))
	page, err := r.Calls(ctx, acme, dag.Query{Run: rec.RunID()})
	r.no(err)
	if c := page.Items[0]; string(c.Args) != `{"text":"{\"n\":12345678901234567890}"}` || c.Tool != "\ufffdt" {
		t.Errorf("%+v", c)
	}
	if c := page.Items[1]; string(c.Result) != `{"text":"[1]"}` || c.Status != "ok" {
		t.Errorf("%+v", c)
	}
}
