package swarm_test

import (
	"testing"

	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// TestManyThatWaitForOneGoOnInBatches has more of them than one transaction lets
// go, and an engine that ends between two.
func TestManyThatWaitForOneGoOnInBatches(t *testing.T) {
	r := newRig(t)
	first := r.dispatch(`{}`)
	after := func(id string) func(*swarm.Dispatch) { return func(d *swarm.Dispatch) { d.After = []string{id} } }
	var waiting []task.Task
	for range 250 {
		waiting = append(waiting, r.dispatch(`{}`, after(first.TaskID)))
	}
	last := r.dispatch(`{}`, after(waiting[249].TaskID))
	pending := func() (n int) {
		for _, tk := range waiting {
			if r.task(tk.TaskID).Pending > 0 {
				n++
			}
		}
		return n
	}
	r.complete(r.claim(), ok(`{}`))
	expect.Is(t, pending(), 150)
	r.Close()
	r.Open()
	r.run()
	for range waiting {
		w := <-r.runner.started
		if w.job.Task.TaskID == waiting[249].TaskID {
			w.end(failure(false))
			continue
		}
		w.end(ok(`{}`))
	}
	r.status(last.TaskID, task.Blocked)
	r.whole()
}
