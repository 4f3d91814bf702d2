package cad_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// full is a store that may take one more change and then has no room, until it
// is given some.
type full struct {
	store.Store
	room *atomic.Int64 // changes that there is room for
}

func (f full) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	if f.room.Add(-1) < 0 {
		return core.Errorf(core.Unavailable, "no room for a while")
	}
	return f.Store.Update(ctx, tenant, fn)
}

// one agent makes one point.
func one() cad.Scenario {
	return cad.Scenario{
		Name: "one", Description: "One task", Pattern: cad.Mixed, SuccessCriteria: "A point",
		Agents: []cad.Seat{{AgentID: "ann", RoleName: "modeler", WorkspaceID: "ws_ann"}},
		Tasks:  []cad.PlannedTask{planned("a", "ann", nil, point("a1"))},
	}
}

func TestAStepThatFailedIsTriedAgainHoweverMuchElseIsGoingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := new(atomic.Int64)
		const plenty = 1 << 40
		room.Store(plenty)
		w := newWorld(t, func(w *world) { w.wrap = func(st store.Store) store.Store { return full{st, room} } })
		w.put(one())
		w.run()
		synctest.Wait()
		room.Store(1)
		flow := w.start("one")
		synctest.Wait()
		a := of(w.flow(flow.WorkflowID), "a")
		expect.Must(t, a.Status == cad.Pending && a.SwarmTask == "", "without room its task was given: %+v", a)
		room.Store(plenty)
		for range 6 {
			time.Sleep(400 * time.Millisecond)
			w.start("one")
		}
		got := w.flow(flow.WorkflowID)
		expect.True(t, got.State == cad.WorkflowCompleted, "2.4 s later it is %s", got.Shown())
		synctest.Wait() // the last one began just now
		w.sound()
	})
}

// before is a store that does something else first, once, when it is to change.
type before struct {
	store.Store
	first *atomic.Pointer[func()]
}

func (b before) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	if first := b.first.Swap(nil); first != nil {
		(*first)()
	}
	return b.Store.Update(ctx, tenant, fn)
}

func TestATaskReassignedWhileItIsGivenGoesToItsNewAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := new(atomic.Pointer[func()])
		w := newWorld(t, func(w *world) { w.wrap = func(st store.Store) store.Store { return before{st, first} } })
		w.put(one())
		w.agent("eve", "modeler")
		w.run()
		flow := w.start("one", func(s *cad.StartWorkflow) {
			// The next change but the start itself is that the loop gives the task.
			reassign := func() {
				_, err := w.cad.ReassignWorkflow(t.Context(), alice, w.only(), "a", "eve")
				expect.True(t, err == nil, "%v", err)
			}
			start := func() { first.Store(&reassign) }
			first.Store(&start)
		})
		flow = w.over(flow.WorkflowID)
		if a := of(flow, "a"); flow.State != cad.WorkflowCompleted || a.AgentID != "eve" || a.Tries != 1 || len(flow.Failures) != 0 {
			t.Errorf("%s %+v %+v", flow.Shown(), a, flow.Failures)
		}
		expect.True(t, first.Load() == nil, "it was not reassigned")
		w.sound()
	})
}

// only is the id of the one workflow.
func (w *world) only() string {
	w.T.Helper()
	all, err := w.cad.Workflows(context.Background(), home, core.Filter{})
	expect.Must(w.T, err == nil && len(all.Items) == 1, "%+v, %v", all, err)
	return all.Items[0].WorkflowID
}
