package cad_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
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
		Tasks:  []cad.PlannedTask{task("a", "ann", nil, point("a1"))},
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
		if a := of(w.flow(flow.WorkflowID), "a"); a.Status != cad.Pending || a.SwarmTask != "" {
			t.Fatalf("without room its task was given: %+v", a)
		}
		room.Store(plenty)
		for range 6 {
			time.Sleep(400 * time.Millisecond)
			w.start("one")
		}
		if got := w.flow(flow.WorkflowID); got.State != cad.WorkflowCompleted {
			t.Errorf("2.4 s later it is %s", got.Shown())
		}
		w.sound()
	})
}
