package cad_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func TestAnOperationIsStoredWithAllThatFollowsFromIt(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "modeler")
	done := w.do("ann", "entity.create_point", `{"x":3}`)
	expect.True(t, done.Seq == 2 && len(done.Entities) == 1 && textOf(done.Data, "entity_id") == "ws_ann_point_1" && done.DecisionID != "" && !done.Repeated,
		"%+v", done)
	for _, want := range []string{`"operation_type":"entity.create_point"`, `"execution_time_ms":1`, `"agent_id":"ann"`, `"workspace_id":"ws_ann"`, `"seq":2`} {
		expect.Has(t, string(done.Metadata), want, "metadata", done.Metadata, "lacks")
	}
	call := w.pool.calls[0]
	for _, want := range []string{`"workspace_id":"ws_ann"`, `"agent_id":"ann"`, `"deadline_ms":60000`, `"x":3`} {
		expect.Has(t, string(call.Params), want, "the worker was told", call.Params, "without")
	}
	w.do("ann", "solid.extrude", `{"width":2}`)
	w.do("ann", "solid.extrude", `{"width":2}`) // the same shape
	s := w.space("ws_ann")
	expect.True(t, s.EntityCount == 3 && s.SolidCount == 2 && s.Seq == 4, "%+v", s)
	events, decisions := w.events("cad.operation"), w.events("judge.outcome")
	expect.True(t, events == 3 && decisions == 0 && w.events("cad.workspace.changed") == 3, "%d operations, %d decisions apart in the log", events, decisions)
	d, err := w.judge.Decision(context.Background(), home, done.DecisionID)
	expect.True(t, err == nil && d.ReasonCode == "cad.own" && d.Agent == "ann", "%+v, %v", d, err)
	page, err := w.cad.History(context.Background(), home, "ws_ann", core.Filter{Size: 2})
	expect.True(t, err == nil && page.Info.Total == 4 && len(page.Items) == 2 && page.Items[0].Seq == 4 && page.Items[1].Seq == 3 && page.Info.Next,
		"%+v, %v", page, err)
	w.sound()
}

func TestUndoAndRedoAreOperationsToo(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.cad.PutRole(t.Context(), alice, cad.RoleTemplate{
		Name: "all", Description: "All.", AllowedOperations: cad.MethodNames(), ExampleTasks: []string{"x"},
	})
	expect.No(t, err)
	w.agent("ann", "all")
	w.do("ann", "entity.create_point", `{}`)
	w.do("ann", "entity.create_line", `{}`)
	w.do("ann", "entity.delete", `{"entity_id":"ws_ann_point_1"}`)
	for range 3 {
		w.do("ann", "history.undo", `{}`)
	}
	expect.Is(t, w.ids("ws_ann"), "", "after undoing all")
	_, err = w.try("ann", "history.undo", `{}`)
	expect.True(t, class(err) == cad.WorkspaceError && code(err) == core.Conflict, "%v", err)
	w.again() // another process replays it
	w.do("ann", "history.redo", `{}`)
	w.do("ann", "history.redo", `{}`)
	expect.Is(t, w.ids("ws_ann"), "ws_ann_line_1 ws_ann_point_1", "after redoing two")
	w.sound()
}

func TestBadParametersAreRefusedByName(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "integrator")
	w.agent("bob", "modeler")
	expect.Of(w.cad.CreateWorkspace(t.Context(), abbott, cad.CreateWorkspace{WorkspaceID: "theirs"}))(t)
	for _, c := range []struct {
		agent, method, params, field string
		class                        cad.ErrorCode
	}{
		{"bob", "entity.list", `[]`, "params", cad.InvalidParameters},
		{"bob", "entity.list", `{"a":`, "params", cad.InvalidParameters},
		{"bob", "entity.list", `{"x":1e999}`, "params", cad.InvalidParameters},
		{"bob", "entity.list", `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, "params", cad.InvalidParameters},
		{"bob", "entity.list", `{"agent_id":"ann"}`, "agent_id", cad.InvalidParameters},
		{"bob", "entity.list", `{"deadline_ms":0}`, "deadline_ms", cad.InvalidParameters},
		{"bob", "entity.list", `{"deadline_ms":600001}`, "deadline_ms", cad.InvalidParameters},
		{"bob", "entity.list", `{"deadline_ms":"5"}`, "deadline_ms", cad.InvalidParameters},
		{"bob", "entity.list", `{"workspace_id":7}`, "workspace_id", cad.InvalidParameters},
		{"bob", "entity.list", `{"workspace_id":"nowhere"}`, "workspace_id", cad.WorkspaceError},
		{"ann", "workspace.merge", `{"source_workspace_id":"ws_bob"}`, "target_workspace_id", cad.InvalidParameters},
		{"ann", "workspace.merge", `{"target_workspace":"ws_bob"}`, "source_workspace_id", cad.InvalidParameters},
		{"ann", "workspace.merge", `{"source_workspace":"x","target_workspace":"ws_ann"}`, "workspace_id", cad.WorkspaceError},
		{"ann", "workspace.create", `{}`, "workspace_name", cad.InvalidParameters},
		{"ann", "workspace.create", `{"workspace_name":"a","workspace_id":"a b"}`, "workspace_id", cad.InvalidParameters},
		{"ann", "workspace.create", `{"workspace_name":"ws_bob"}`, "workspace_id", cad.WorkspaceError},
		{"ann", "workspace.create", `{"workspace_name":"x","base_workspace_id":"nowhere"}`, "workspace_id", cad.EntityNotFound},
		{"ann", "workspace.create", `{"workspace_name":"x","colour":"red"}`, "colour", cad.InvalidParameters},
		{"ann", "agent.metrics", `{"agent_id":"nobody"}`, "agent_id", cad.EntityNotFound},
	} {
		before := w.now(c.agent)
		_, err := w.try(c.agent, c.method, c.params)
		var f *cad.OpError
		expect.True(t, errors.As(err, &f) && f.Class == c.class && f.Field == c.field, "%s %.60s: %v (%+v)", c.method, c.params, err, f)
		a := w.now(c.agent)
		expect.True(t, a.ErrorCount == before.ErrorCount+1 && a.Status == cad.Failing, "%s %.60s: not counted: %+v", c.method, c.params, a)
	}
	expect.Is(t, len(w.pool.calls), 0, "the worker was asked")
	_, err := w.try("bob", "entity.list", `{"workspace_id":"theirs"}`)
	expect.True(t, errors.Is(err, core.ErrForeign) && w.events("tenant.violation") == 1, "another tenant's workspace: %v", err)
	w.sound()
}

func TestAWorkerThatDiesLeavesNothingAndTheNextOneGoesOn(t *testing.T) {
	killed := func(context.Context, *fakeWorker, cad.Call) error { return errKilled }
	for name, on := range map[string]func(*fakePool){
		"before": func(p *fakePool) { p.on(killed, nil) },
		"after":  func(p *fakePool) { p.on(nil, killed) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent("ann", "designer")
			w.do("ann", "entity.create_point", `{}`)
			on(w.pool)
			_, err := w.try("ann", "entity.create_point", `{}`)
			var f *cad.OpError
			expect.True(t, errors.As(err, &f) && f.Class == cad.SubprocessError && f.Retryable && code(err) == core.Unavailable, "%v", err)
			a, s := w.now("ann"), w.space("ws_ann")
			expect.True(t, a.Status == cad.Failing && s.Seq == 2 && s.EntityCount == 1, "%+v %+v", a, s)
			w.pool.on(nil, nil)
			done := w.do("ann", "entity.create_point", `{}`)
			expect.True(t, done.Seq == 3 && w.pool.made == 2, "%+v after %d processes", done, w.pool.made)
			w.sound()
		})
	}
}

func TestALateOperationTimesOut(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	w.pool.on(func(ctx context.Context, _ *fakeWorker, _ cad.Call) error { <-ctx.Done(); return ctx.Err() }, nil)
	_, err := w.try("ann", "entity.create_point", `{"deadline_ms":20}`)
	var f *cad.OpError
	expect.True(t, errors.As(err, &f) && f.Class == cad.TimedOut && f.Code == -32012 && f.Retryable, "%v", err)
	a := w.now("ann")
	expect.True(t, a.Status == cad.Failing && w.space("ws_ann").Seq == 1, "%+v", a)
	w.sound()
}

func TestWithoutAPoolOperationsSayWhy(t *testing.T) {
	w := newWorld(t, func(w *world) { w.bare = true })
	w.agent("ann", "integrator")
	_, err := w.try("ann", "entity.list", `{}`)
	expect.True(t, code(err) == core.Unavailable && strings.Contains(err.Error(), "no CAD environment"), "%v", err)
	expect.Has(t, string(w.do("ann", "workspace.list", `{}`).Data), `"workspace_id":"ws_ann"`)
	done := w.do("ann", "workspace.create", `{"workspace_name":"extra"}`)
	expect.True(t, done.WorkspaceID == "extra" && w.space("extra").Seq == 1, "%+v", done)
	w.sound()
}

func TestAWorkerGetsOnlyWhatItLacks(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	for range 3 {
		w.do("ann", "entity.create_point", `{}`)
	}
	expect.True(t, len(w.pool.loads) == 1 && w.pool.loads[0].From == 1 && len(w.pool.loads[0].Entries) == 1, "loaded %+v", w.pool.loads)
	w.again()
	w.do("ann", "entity.create_point", `{}`)
	w.do("ann", "entity.create_point", `{}`)
	expect.True(t, len(w.pool.loads) == 1 && len(w.pool.loads[0].Entries) == 4, "after a restart: loaded %d times", len(w.pool.loads))
	w.sound()
}

func TestWhatTheStoreRefusedTheWorkerForgets(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	lost := cad.Operation{AgentID: "ann", Method: "entity.create_point", Holds: func(*audit.Tx) (bool, error) { return false, nil }}
	for _, unload := range []error{nil, errors.New("pipe broken")} {
		w.pool.unload = unload
		expect.Err(t, expect.Fault(w.cad.Execute(context.Background(), alice, lost)), cad.ErrLost)
		w.pool.unload = nil
		s := w.space("ws_ann")
		expect.True(t, s.EntityCount == s.Seq-1, "%+v", s)
		seq := w.space("ws_ann").Seq
		done := w.do("ann", "entity.create_point", `{}`)
		expect.True(t, done.Seq == seq+1, "%+v", done)
	}
	a := w.now("ann")
	expect.True(t, a.OperationCount == 2, "what was lost was counted: %+v", a)
	w.sound()
}

func TestAMarkedOperationHappensOnce(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	op := cad.Operation{AgentID: "ann", Method: "entity.create_point", Mark: "tk_1/0/0"}
	first, err := w.cad.Execute(context.Background(), alice, op)
	expect.Must(t, err == nil && !first.Repeated, "%v %v", first, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			again, err := w.cad.Execute(context.Background(), alice, op)
			expect.True(t, err == nil && again.Repeated && again.Seq == first.Seq && string(again.Data) == string(first.Data), "%+v, %v", again, err)
		})
	}
	all.Wait()
	w.again()
	again, err := w.cad.Execute(context.Background(), alice, op)
	expect.True(t, err == nil && again.Repeated && len(w.pool.calls) == 0, "after a restart: %+v, %v", again, err)
	op.Mark = "tk_1/0/1"
	for range 8 { // at once: one is stored, the others find it
		all.Go(func() {
			done, err := w.cad.Execute(context.Background(), alice, op)
			expect.True(t, err == nil && done.Seq == 3, "%+v, %v", done, err)
		})
	}
	all.Wait()
	s := w.space("ws_ann")
	expect.True(t, s.EntityCount == 2, "%+v", s)
	expect.No(t, w.Ledger.Append(context.Background(), alice, func(tx *audit.Tx) error { return w.cad.ForgetMarks(tx, "tk_1/") }))
	again, err = w.cad.Execute(context.Background(), alice, op)
	expect.True(t, err == nil && !again.Repeated && again.Seq == 4, "forgotten: %+v, %v", again, err)
	w.sound()
}

func TestAgentsWorkSideBySide(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	for i := range 8 {
		id := fmt.Sprint("a", i)
		w.agent(id, "designer")
		all.Go(func() {
			for range 20 {
				_, err := w.try(id, "entity.create_point", `{}`)
				expect.True(t, err == nil, "%v", err)
				_, err = w.try(id, "entity.create_point", `{"workspace_id":"ws_a0"}`)
				expect.True(t, err == nil, "%v", err)
			}
		})
	}
	all.Wait()
	s := w.space("ws_a0")
	expect.True(t, s.EntityCount == 20*9 && s.Seq == 1+20*9, "%+v", s)
	w.sound()
}

func TestAStoppedOperationIsNotCounted(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	stop := make(chan struct{})
	w.pool.on(func(ctx context.Context, _ *fakeWorker, _ cad.Call) error {
		close(stop)
		<-ctx.Done()
		return ctx.Err()
	}, nil)
	_, err := w.cad.Execute(context.Background(), alice, cad.Operation{AgentID: "ann", Method: "entity.create_point", Stop: stop})
	expect.Err(t, err, judge.ErrStopped)
	a := w.now("ann")
	expect.True(t, a.OperationCount == 0 && a.Status == cad.Idle, "%+v", a)
	w.sound()
}

func TestNothingChangesUnderAnEmergencyStop(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	w.run()
	reached, on := make(chan bool), make(chan bool)
	w.pool.on(func(context.Context, *fakeWorker, cad.Call) error { close(reached); <-on; return nil }, nil)
	over := expect.Later(func() error { _, err := w.try("ann", "entity.create_point", `{}`); return err })
	<-reached
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	busy := w.cad.Freeze(ctx, home)
	expect.True(t, len(busy) == 1 && busy[0] == "ann", "not acknowledged: %v", busy)
	close(on)
	expect.No(t, <-over)
	w.pool.on(nil, nil)
	expect.Of(w.swarm.EStops.Press(t.Context(), alice, "test"))(t)
	busy = w.cad.Freeze(t.Context(), home)
	expect.True(t, busy == nil, "%v", busy)
	_, err := w.try("ann", "entity.create_point", `{}`)
	expect.True(t, code(err) == core.Unavailable && strings.Contains(err.Error(), "emergency stop"), "%v", err)
	w.do("ann", "entity.list", `{}`)
	a := w.now("ann")
	expect.True(t, a.OperationCount == 2, "%+v", a)
}

// textOf is a text member of an answer.
func textOf(data core.Raw, name string) string {
	var all map[string]any
	_ = core.DecodeStored(data, &all)
	s, _ := all[name].(string)
	return s
}
