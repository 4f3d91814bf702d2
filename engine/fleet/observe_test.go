package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

// thorough is an observer that takes longer at both ends of a run than a lease
// lasts, and than a closing engine would wait for it.
type thorough struct{ witness }

const tookLong = 12 * time.Second

func (o *thorough) Began(context.Context, fleet.Agent, task.Task, string) (fleet.Observed, error) {
	time.Sleep(tookLong)
	return o, nil
}

func (o *thorough) Ended(context.Context, task.Outcome) error {
	time.Sleep(tookLong)
	return nil
}

func TestARunThatIsLookedAtForLongIsNotTakenForDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Close()
		w.observer = &thorough{}
		w.Open()
		w.run()
		w.create("bob")
		tk := w.assign("bob", "say hello")
		if r := w.result(tk.TaskID); r.Status != task.Succeeded {
			t.Errorf("%+v", r)
		}
		if lost := w.events("lease.lost"); len(lost) > 0 {
			t.Errorf("%d leases lost: %+v", len(lost), lost[0])
		}
		if busy := w.events("agent.busy"); len(busy) != 1 {
			t.Errorf("the agent was at work %d times", len(busy))
		}
	})
}
