package swarm_test

import (
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestSlotsAreSetWhileTasksRun(t *testing.T) {
	r := newRig(t)
	r.slots = 1
	r.Close()
	r.Open()
	r.run()
	r.dispatch(`{"n":1}`)
	first := <-r.runner.started
	waits := r.dispatch(`{"n":2}`)
	if why, err := r.swarm.Why(t.Context(), acme, waits.TaskID); err != nil || why.Text != "all 1 slots are taken" {
		t.Errorf("%+v %v", why, err)
	}
	if n, action, err := r.swarm.SetSlots(t.Context(), alice, 2); err != nil || action != "created" || n.Slots != 2 {
		t.Fatalf("%+v %s %v", n, action, err)
	}
	second := <-r.runner.started
	r.dispatch(`{"n":3}`)
	_, _, err := r.swarm.SetSlots(t.Context(), alice, 1)
	expect.No(t, err)
	first.end(ok(`{}`)) // its slot is gone
	r.status(first.job.Task.TaskID, task.Succeeded)
	select {
	case w := <-r.runner.started:
		t.Errorf("%s started", w.job.Task.TaskID)
	default:
	}
	second.end(ok(`{}`))
	(<-r.runner.started).end(ok(`{}`))
	r.Close()
	r.Open()
	n := r.swarm.SlotsOf(acme)
	expect.True(t, n.Slots == 1 && n.Own, "after a restart: %+v", n)
	for range 2 {
		n, err := r.swarm.ShareSlots(t.Context(), alice)
		expect.True(t, err == nil && !n.Own, "%+v %v", n, err)
	}
	for _, n := range []int{-1, 0, swarm.MaxSlots + 1} {
		_, _, err := r.swarm.SetSlots(t.Context(), alice, n)
		expect.True(t, hasCode(err, core.InvalidInput), "%d: %v", n, err)
	}
	agent := core.Caller{Tenant: acme, Name: "bob", Kind: core.Agent}
	_, _, err = r.swarm.SetSlots(t.Context(), agent, 5)
	expect.True(t, hasCode(err, core.Denied), "an agent: %v", err)
	r.whole()
}
