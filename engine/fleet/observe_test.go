package fleet_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// newWatched is a world at work whose agents are observed.
func newWatched(t testing.TB, o fleet.Observer) *world {
	w := newWorld(t)
	w.Close()
	w.observer = o
	w.Open()
	return w.run()
}

// thorough is an observer that takes longer at both ends of a run than a lease
// lasts, and than a closing engine would wait for it.
type thorough struct{ witness }

const tookLong = 12 * time.Second

// Began takes its time, in a bubble.
func (o *thorough) Began(context.Context, fleet.Agent, task.Task, string) (fleet.Observed, error) {
	time.Sleep(tookLong)
	return o, nil
}

// Ended takes its time, in a bubble.
func (o *thorough) Ended(context.Context, task.Outcome) error {
	time.Sleep(tookLong)
	return nil
}

func TestARunThatIsLookedAtForLongIsNotTakenForDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, &thorough{})
		w.create("bob")
		tk := w.assign("bob", "say hello")
		r := w.result(tk.TaskID)
		expect.True(t, r.Status == task.Succeeded, "%+v", r)
		if lost := w.events("lease.lost"); len(lost) > 0 {
			t.Errorf("%d leases lost: %+v", len(lost), lost[0])
		}
		expect.Is(t, len(w.events("agent.busy")), 1, "the agent was at work times")
	})
}

// notes is an observer that takes note of a decision once that is on disk, and then
// takes its time.
type notes struct{ witness }

func (o *notes) Began(context.Context, fleet.Agent, task.Task, string) (fleet.Observed, error) {
	return o, nil
}

// Judged takes its time, in a bubble.
func (o *notes) Judged(tx *audit.Tx, a judge.Action, d judge.GateDecision) error {
	tx.OnCommit(func() {
		time.Sleep(50 * time.Millisecond) // long enough for an agent that is woken too soon
		o.add("%s %s", d.Decision, a.CallID)
	})
	return nil
}

func TestAnAgentHearsAnAnswerOnceItsDecisionIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &notes{}
		w := newWatched(t, seen)
		answers := make(chan fleet.ToolAnswer, 1)
		w.rt.does(call(write, answers))
		w.create("bob")
		tk := w.assign("bob", "x")
		expect.Of(w.judge.Answer(t.Context(), alice, w.approval().ApprovalID, judge.Answer{Reason: "not there"}))(t)
		w.result(tk.TaskID)
		i, j := slices.Index(seen.lines, "deny c1"), slices.Index(seen.lines, "answered c1 deny")
		expect.True(t, i >= 0 && j >= i, "the record is told: %q", seen.lines)
	})
}
