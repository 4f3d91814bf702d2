package dag_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/enginetest"
	"swarmdeck/expect"
)

func (r *rig) record() *run {
	r.T.Helper()
	rec, err := r.Record(r.T.Context(), alice, dag.RunInfo{AgentID: "ada", TaskID: "task-1", Reason: "user", TraceID: "0af7651916cd43dd8448eb211c80319c"})
	r.No(err)
	return &run{rec}
}

// run is a recorded run of which calls and results are on disk at once.
type run struct{ *dag.Recording }

func (r *run) Call(ctx context.Context, server, tool, call string, args core.Raw) error {
	r.Recording.Call("", server, tool, call, args)
	return r.Flush(ctx)
}

func (r *run) Said(_ context.Context, list string, role dag.MessageRole, text string) error {
	r.Recording.Said(list, role, text)
	return nil
}

func (r *run) Result(ctx context.Context, call string, status dag.CallStatus, result core.Raw, fault *dag.Fault) error {
	r.Recording.Result(call, status, result, fault)
	return r.Flush(ctx)
}

// finish ends a run as its task's end does.
func (r *rig) finish(rec *run, success bool) error {
	r.T.Helper()
	err := rec.Rest(r.T.Context())
	r.No(r.Ledger.Update(r.T.Context(), core.Self(acme, "tests"), func(tx *audit.Tx) error {
		if _, err := tx.Record(audit.Entry{Type: "task.ended", Subject: "task", ID: "task-1"}); err != nil {
			return err
		}
		return r.Tell(tx, rec.RunID(), func(w *dag.Recording) { w.Finish(success) })
	}))
	return err
}

// kinds are the kinds of a run's events in their order, with their status.
func (r *rig) kinds(run string) (all []string) {
	r.T.Helper()
	page := expect.Of(r.Events(r.T.Context(), acme, dag.Query{Run: run, Filter: core.Filter{Size: 100}}))(r.T)
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
	r.No(rec.Said(ctx, "main", dag.RoleUser, "Build it"))
	r.No(rec.Call(ctx, "acp", "exec", "c-1", core.Raw(`{"cmd":"rm -rf /"}`)))
	r.No(rec.Substitute(ctx, "c-1", core.Raw(`{"cmd":"ls"}`), "edited by alice"))
	r.No(rec.Result(ctx, "c-1", dag.CallOK, core.Raw(`{"rc":0}`), nil))
	r.No(rec.Call(ctx, "acp", "exec", "c-2", core.Raw(`{}`)))
	r.No(rec.Interrupt(ctx, dag.ReasonApprovalDenied, "c-2"))
	r.No(rec.Result(ctx, "never-asked", dag.CallError, core.Raw(`"text"`), &dag.Fault{Code: "x", Message: "y"}))
	r.No(rec.Call(ctx, "acp", "exec", "c-3", core.Raw(`{}`)))
	r.No(r.finish(rec, true))
	want := []string{
		"run_started", "history_append", "tool_call", "tool_call", "substitution", "tool_result ok", "tool_call", "tool_result canceled",
		"interruption", "tool_call", "tool_result error", "tool_call", "tool_result canceled", "interruption", "run_finished",
	}
	expect.Same(t, r.kinds(rec.RunID()), want)
	s, err := r.Run(ctx, acme, rec.RunID())
	expect.True(t, err == nil && s.Status == "finished" && s.TaskID == "task-1" && len(s.OpenCalls) == 0, "%+v %v", s, err)
	r.No(r.Recover(ctx, acme)) // finds nothing
	got := r.kinds(rec.RunID())
	expect.True(t, len(got) == len(want), "%v", got)
}

func TestWhatIsGatheredOutlivesACancel(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	r.No(rec.Said(t.Context(), "main", dag.RoleUser, "Build it"))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r.No(rec.Call(gone, "acp", "exec", "c-1", core.Raw(`{}`)))
	r.No(rec.Result(gone, "c-1", dag.CallOK, core.Raw(`{}`), nil))
	r.No(r.finish(rec, true))
	want := []string{"run_started", "history_append", "tool_call", "tool_result ok", "run_finished"}
	expect.Same(t, r.kinds(rec.RunID()), want)
}

func TestARunThatWasCutOffIsClosed(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	r.No(rec.Call(t.Context(), "acp", "exec", "c-1", core.Raw(`{}`)))
	r.No(r.DB.Close()) // the process dies here
	r.Open()
	r.No(r.Recover(t.Context(), acme))
	r.No(r.Recover(t.Context(), acme))
	expect.Same(t, r.kinds(rec.RunID()), []string{"run_started", "tool_call", "tool_result interrupted", "interruption", "run_finished"})
}

// emitted emits what somebody else says of a run.
func (r *rig) emitted(run, agent string, b dag.Body, nodes ...dag.Node) dag.Event {
	r.T.Helper()
	return r.emit(dag.Head{TS: dag.At(r.at), AgentID: agent, RunID: run, Nodes: nodes}, b)
}

// leftOut are the kinds of events that the audit log says are not recorded.
func (r *rig) leftOut() (kinds []string) {
	r.T.Helper()
	log := expect.Of(r.Ledger.List(r.T.Context(), acme, core.Filter{Kind: "dag.left_out"}))(r.T)
	for _, e := range log.Items {
		var p audit.Payload
		r.No(core.DecodeStored(e.Payload, &p))
		var d struct {
			Kind string `json:"kind"`
		}
		r.No(core.DecodeStored(p.Detail, &d))
		kinds = append(kinds, d.Kind)
	}
	return kinds
}

// closed checks that a run is open for no recorder, and that the store opens.
func (r *rig) closed(run string) {
	r.T.Helper()
	ctx := r.T.Context()
	r.No(r.DB.Close())
	r.Open()
	r.No(r.Recover(ctx, acme))
	had := r.kinds(run)
	r.No(r.Recover(ctx, acme))
	r.No(r.Ledger.Update(ctx, core.Self(acme, "judge"), func(tx *audit.Tx) error {
		return r.NotifyIn(tx, &dag.MCPListChanged{Server: "s"}) // is told to runs that are open
	}))
	got := r.kinds(run)
	expect.True(r.T, slices.Equal(got, had), "%v, then %v", had, got)
}

func TestARunThatAnotherFinishedIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		end     func(*rig, *run)
		want    []string
		leftOut []string
	}{
		"when the engine died": {func(*rig, *run) {}, []string{"run_started", "tool_call", "run_finished"}, nil},
		"when it ends": {func(r *rig, rec *run) {
			r.No(rec.Said(t.Context(), "main", dag.RoleAssistant, "and on"))
			expect.True(t, r.finish(rec, true) != nil, "nobody is told that something was lost")
		}, []string{"run_started", "tool_call", "run_finished"}, []string{"interruption", "tool_result", "history_append"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			rec := r.record()
			r.No(rec.Call(t.Context(), "acp", "exec", "c-1", core.Raw(`{}`)))
			end := r.event(dag.Head{TS: dag.At(r.at), AgentID: "ada", RunID: rec.RunID()}, &dag.RunFinished{Exit: "success"})
			_, err := r.Emit(t.Context(), alice, end)
			expect.True(t, core.AsError(err).Code == core.Conflict, "somebody ends a run that is being recorded: %v", err)
			r.No(r.Ledger.Update(t.Context(), alice, func(tx *audit.Tx) error { // as an import does
				_, err := r.ObserveIn(tx, end)
				return err
			}))
			c.end(r, rec)
			r.closed(rec.RunID())
			expect.Same(t, r.kinds(rec.RunID()), c.want)
			expect.Same(t, r.leftOut(), c.leftOut, "left out are")
		})
	}
}

func TestARunWhoseAnswerAnotherStatedIsClosed(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	r.No(rec.Asked(t.Context(), "1", dag.ModelAsk{Model: "m", Messages: []dag.Spoken{spoken(dag.RoleUser, "hello")}}))
	answer := r.of(rec.RunID(), dag.KindModelRequest)[0].EventID + "/answer"
	r.emitted("other", "eve", &dag.HistoryAppend{List: "main", MessageRef: answer}, r.message(answer, "mine", dag.RoleUser))
	r.closed(rec.RunID())
	expect.Same(t, r.kinds(rec.RunID()), []string{"run_started", "model_request", "interruption", "run_finished"})
	expect.Same(t, r.leftOut(), []string{"model_response"}, "left out are")
}

// asks makes calls, all of which are open afterwards.
func asks(rec *run, n int) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _ = rec.Call(context.Background(), "acp", "exec", fmt.Sprint("c-", i), core.Raw(`{}`)) })
	}
	all.Wait()
}

func TestVeryManyOpenCallsAreInterrupted(t *testing.T) {
	const n = 4200 // more than one event refers to
	r := newRig(t)
	rec := r.record()
	asks(rec, n)
	r.No(r.finish(rec, true))
	s, err := r.Run(t.Context(), acme, rec.RunID())
	expect.True(t, err == nil && s.Status == "finished" && s.Kinds[dag.KindToolResult] == n && s.Kinds[dag.KindInterruption] == 2, "%v %+v", err, s.Kinds)
}

func TestAllOpenCallsOfARunThatWasCutOffAreClosed(t *testing.T) {
	const n = 100 // more than the head of a run lists
	r := newRig(t)
	rec := r.record()
	asks(rec, n)
	r.No(rec.Result(t.Context(), "c-7", dag.CallOK, nil, nil))
	r.No(r.DB.Close())
	r.Open()
	r.No(r.Recover(t.Context(), acme))
	for page := range 2 {
		calls := expect.Of(r.Calls(t.Context(), acme, dag.Query{Run: rec.RunID(), Filter: core.Filter{Size: 50, Page: page + 1}}))(r.T)
		for _, c := range calls.Items {
			expect.True(t, c.Status == map[bool]string{true: "ok", false: "interrupted"}[c.CallID == "c-7"], "%s is %s", c.CallID, c.Status)
		}
	}
	told := expect.Of(r.Events(t.Context(), acme, dag.Query{Filter: core.Filter{Kind: "interruption"}}))(r.T)
	if n := len(told.Items[0].Event.Body.(*dag.Interruption).Affects); len(told.Items) != 1 || n != 99 {
		t.Errorf("%d interruptions, of %d calls", len(told.Items), n)
	}
}

func TestAnOpenCallIsNotHeldWithItsArguments(t *testing.T) {
	const n = 12
	r := newRig(t)
	enginetest.File(t, r.DB) // a database's rows are in memory for a while
	rec := r.record()
	args := core.MustEncode(map[string]string{"x": strings.Repeat("y", 900<<10)})
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	for i := range n {
		r.No(rec.Call(t.Context(), "acp", "exec", fmt.Sprint("c-", i), args))
	}
	grown := int64(held()) - int64(before)
	expect.True(t, grown <= n*int64(len(args))/2, "%d calls hold %d KiB", n, grown>>10)
	r.No(r.finish(rec, true))
}

func TestWhatAnAgentSaysIsMadeFit(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	r.No(rec.Said(ctx, "main", dag.RoleAssistant, "\xff\x00\x1b]0;owned\u202e"+strings.Repeat("x", 3<<20)))
	r.No(rec.Call(ctx, "s\x1b", "\u202et", strings.Repeat("c", 2000), core.Raw(`{"n":12345678901234567890}`)))
	r.No(rec.Call(ctx, "s", "t", "c", core.Raw(`not json`)))
	r.No(rec.Result(ctx, "c", dag.CallOK, core.Raw(`[1]`), &dag.Fault{Code: "\x00", Message: "\xff"}))
	r.No(r.finish(rec, false))
	page := expect.Of(r.Calls(ctx, acme, dag.Query{Run: rec.RunID()}))(r.T)
	c := page.Items[0]
	expect.True(t, string(c.Args) == `{"n":"12345678901234567890"}` && c.Tool == "\ufffdt", "%+v", c)
	c = page.Items[1]
	expect.True(t, string(c.Result) == `{"text":"[1]"}` && c.Status == "ok", "%+v", c)
}

func TestACallHasOneResult(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	rec := r.record()
	r.No(rec.Call(ctx, "acp", "execute", "c-1", core.Raw(`{}`)))
	r.No(rec.Interrupt(ctx, dag.ReasonApprovalDenied, "c-1"))
	expect.True(t, rec.Known("c-1") && !rec.Open("c-1") && !rec.Known("c-2"), "it is not known which calls there were")
	r.No(rec.Result(ctx, "c-1", dag.CallError, core.Raw(`{}`), nil)) // what the agent makes of the denial
	r.No(rec.Call(ctx, "acp", "execute", "c-1", core.Raw(`{}`)))     // its id is used again
	r.No(rec.Result(ctx, "c-1", dag.CallOK, core.Raw(`{}`), nil))
	r.No(rec.Result(ctx, "c-1", dag.CallOK, core.Raw(`{"again":true}`), nil))
	r.No(r.finish(rec, true))
	want := []string{"run_started", "tool_call", "tool_result canceled", "interruption", "tool_call", "tool_result ok", "run_finished"}
	expect.Same(t, r.kinds(rec.RunID()), want)
}

func TestWhatIsGatheredGoesAlongWithACommit(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	rec := r.record()
	events := func() int {
		return expect.Of(r.Events(ctx, acme, dag.Query{Run: rec.RunID()}))(t).Info.Total
	}
	commits := 0
	along := func(fault error) error {
		return rec.Along(func(record func(*audit.Tx) error) error {
			return r.Ledger.Update(ctx, alice, func(tx *audit.Tx) error {
				if err := record(tx); err != nil {
					return err
				}
				commits++
				if _, err := tx.Record(audit.Entry{Type: "test.done", Subject: "test", ID: "x"}); err != nil {
					return err
				}
				return fault
			})
		})
	}
	r.No(rec.Said(ctx, dag.ListMain, dag.RoleUser, "build it"))
	rec.Recording.Call("", "sh", "exec", "c-1", core.Raw(`{}`))
	stale := errors.New("asked anew")
	expect.True(t, errors.Is(along(stale), stale) && events() == 1, "of a commit that failed something is recorded")
	r.No(along(nil))
	expect.Is(t, events(), 3, "recorded with the commit")
	log := expect.Of(r.Ledger.List(ctx, acme, core.Filter{Size: 1}))(t)
	expect.True(t, log.Items[0].EventType == "test.done" && strings.Contains(string(log.Items[0].Payload), `"dag.event `), "its event proves what is recorded: %s", log.Items[0].Payload)

	// What others emitted into the run costs the event alone that does not agree with it.
	h := r.head("ada", rec.RunID())
	r.emit(h, &dag.ToolResult{CallID: "c-1", Status: dag.CallOK, Result: core.Raw(`{}`)})
	rec.Recording.Result("c-1", dag.CallOK, core.Raw(`{"rc":1}`), nil)
	r.No(rec.Said(ctx, dag.ListMain, dag.RoleAssistant, "built"))
	commits = 0
	r.No(along(nil))
	expect.True(t, commits == 1 && events() == 5, "%d commits, %d events", commits, events())
	expect.Says(t, r.finish(rec, true), "c-1")
}
