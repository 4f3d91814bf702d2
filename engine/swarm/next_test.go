package swarm_test

import (
	"fmt"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestAWorkerGoesOnToTheNextTaskInOneCommit(t *testing.T) {
	r := newRig(t)
	first, second := r.dispatch(`{}`), r.dispatch(`{}`)
	before := r.claim()
	res, next, err := r.swarm.CompleteAndClaim(t.Context(), alice, before.TaskID, before.Lease, ok(`{}`), "w1", 1)
	expect.Must(t, err == nil && res.Status == task.Succeeded && len(next) == 1 && next[0].TaskID == second.TaskID, "%+v %+v %v", res, next, err)
	done, running := r.task(first.TaskID), r.task(second.TaskID)
	expect.True(t, running.Status == task.Running && running.Lease == next[0].Lease && running.StartedAt.Equal(done.CompletedAt),
		"the next is %+v, the first ended at %s", running, done.CompletedAt)
	res, next, err = r.swarm.CompleteAndClaim(t.Context(), alice, second.TaskID, running.Lease, ok(`{}`), "w1", 1)
	expect.True(t, err == nil && len(next) == 0, "with an empty queue: %+v %+v %v", res, next, err)
	r.whole()
}

func TestARefusedOutcomeClaimsNothing(t *testing.T) {
	r := newRig(t)
	r.dispatch(`{}`)
	waits := r.dispatch(`{}`)
	mine := r.claim()
	for what, c := range map[string]struct {
		lease  uint64
		worker string
		n      int
		code   core.Code
	}{
		"another's lease":   {mine.Lease + 7, "w1", 1, core.Conflict},
		"no worker":         {mine.Lease, "", 1, core.InvalidInput},
		"the engine's name": {mine.Lease, "engine", 1, core.InvalidInput},
		"too many":          {mine.Lease, "w1", 1001, core.InvalidInput},
	} {
		_, next, err := r.swarm.CompleteAndClaim(t.Context(), alice, mine.TaskID, c.lease, ok(`{}`), c.worker, c.n)
		expect.True(t, hasCode(err, c.code) && len(next) == 0, "%s: %v %v, want %s", what, next, err, c.code)
	}
	expect.Is(t, r.task(waits.TaskID).Status, task.Queued, "the next is")
	expect.Is(t, r.task(mine.TaskID).Status, task.Running, "the first is")
	r.whole()
}

func TestASlotGoesOnWithoutBeingCountedTwice(t *testing.T) {
	r := newRig(t)
	r.run()
	const tasks = 60
	for i := range tasks {
		r.dispatch(fmt.Sprintf(`{"i":%d}`, i))
	}
	running := map[string]bool{}
	var order []*fakeWork
	for range tasks {
		w := <-r.runner.started
		running[w.job.Task.TaskID] = true
		order = append(order, w)
		if len(running) == 2 { // both slots are taken: end the older
			old := order[0]
			order = order[1:]
			delete(running, old.job.Task.TaskID)
			expect.Must(t, len(r.runner.started) == 0, "a task started beyond the two slots")
			old.end(ok(`{}`))
		}
	}
	order[0].end(ok(`{}`))
	r.status(order[0].job.Task.TaskID, task.Succeeded)
	r.whole()
}

func TestATenantWithALongQueueLeavesSlotsToOthers(t *testing.T) {
	const other = "t_other"
	r := newRig(t)
	bob := alice
	bob.Tenant = other
	expect.Of(r.swarm.CreateTenant(t.Context(), bob, other))(t)
	for i := range 200 {
		r.dispatch(fmt.Sprintf(`{"i":%d}`, i))
	}
	r.run()
	a, b := <-r.runner.started, <-r.runner.started
	expect.Of(r.swarm.Dispatch(t.Context(), bob, swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`)}))(t)
	a.end(ok(`{}`))
	b.end(ok(`{}`))
	for range 150 { // whose turn it is, is chance: half of them, once the other waits
		w := <-r.runner.started
		w.end(ok(`{}`))
		if w.job.Task.TenantID == other {
			return
		}
	}
	t.Error("the other tenant's task never got a slot")
}
