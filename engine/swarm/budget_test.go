package swarm_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func (r *rig) budget(b budget.Budget) {
	r.T.Helper()
	expect.Of(r.swarm.Budgets.Set(r.T.Context(), alice, b))(r.T)
}

func (r *rig) wall() time.Duration {
	r.T.Helper()
	u := expect.Of(r.swarm.Budgets.Usage(r.T.Context(), acme, "tenant"))(r.T)
	return time.Duration(u.WallMS) * time.Millisecond
}

func TestTimeThatWorkStandsStillIsNotBilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		r.budget(budget.Budget{Subject: "tenant", WallS: 1})
		tk := r.dispatch(`{}`)
		w := <-r.runner.started
		ap := r.openApproval()
		r.Await("the work to freeze", w.isPaused)
		time.Sleep(1500 * time.Millisecond)
		used := r.wall()
		expect.True(t, used >= time.Second && used <= 2*time.Second, "billed %s for about a second", used)
		r.answer(ap.ApprovalID, judge.Answer{Approve: true})
		r.Await("the work to go on", func() bool { return !w.isPaused() })
		w.end(ok(`{}`))
		r.status(tk.TaskID, task.Succeeded)
		got := r.wall()
		expect.True(t, got <= used+500*time.Millisecond, "billed %s in the end, %s before", got, used)
		r.whole()
	})
}

func TestEveryAttemptIsBilledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		r.budget(budget.Budget{Subject: "tenant", WallS: 3600})
		tk := r.dispatch(`{}`)
		w := <-r.runner.started
		time.Sleep(2300 * time.Millisecond) // billed twice in between
		w.with(func(w *fakeWork) { w.mute = true })
		<-w.Done() // lost
		w = <-r.runner.started
		time.Sleep(300 * time.Millisecond)
		w.end(ok(`{}`))
		r.status(tk.TaskID, task.Succeeded)
		got := r.wall()
		expect.True(t, got >= 3300*time.Millisecond && got <= 4500*time.Millisecond, "billed %s for 2.3 s, a lease and 0.3 s", got)
		u, err := r.swarm.Budgets.Usage(t.Context(), acme, "tenant")
		expect.True(t, err == nil && u.Tasks == 1, "two attempts of one task count as %d tasks (%v)", u.Tasks, err)
	})
}

func TestABudgetOfTasksLeavesAloneWhatRunsWithinIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		r.budget(budget.Budget{Subject: "tenant", Tasks: 1})
		a, b := r.dispatch(`{"a":1}`), r.dispatch(`{"b":1}`)
		w := <-r.runner.started
		ap := r.openApproval()
		time.Sleep(50 * time.Millisecond)
		expect.True(t, !w.isPaused(), "the task within the budget was frozen")
		r.answer(ap.ApprovalID, judge.Answer{Reason: "one is enough"})
		r.status(b.TaskID, task.Blocked)
		w.end(failure(true)) // another attempt is no further task
		w = <-r.runner.started
		expect.True(t, w.job.Task.TaskID == a.TaskID && w.job.Task.Attempt == 1, "started %s, attempt %d", w.job.Task.TaskID, w.job.Task.Attempt)
		w.end(ok(`{}`))
		r.status(a.TaskID, task.Succeeded)
		r.budget(budget.Budget{Subject: "tenant", Tasks: 2})
		c := r.dispatch(`{}`)
		(<-r.runner.started).end(ok(`{}`))
		r.status(c.TaskID, task.Succeeded)
		r.whole()
	})
}

func TestChangingABudgetVoidsItsApprovalAndRemovingItFreesTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		r.budget(budget.Budget{Subject: "tenant", Tokens: 10})
		tk := r.dispatch(`{}`)
		w := <-r.runner.started
		w.job.Use(10, 0)
		first := r.openApproval()
		r.Await("the work to freeze", w.isPaused)
		r.budget(budget.Budget{Subject: "tenant", Tokens: 5})
		var second judge.Approval
		r.Await("a new question", func() bool {
			second = r.openApproval()
			return second.ApprovalID != first.ApprovalID
		})
		_, err := r.judge.Answer(t.Context(), alice, first.ApprovalID, judge.Answer{Approve: true})
		expect.True(t, hasCode(err, core.Conflict), "answer to the void one: %v", err)
		r.budget(budget.Budget{Subject: "tenant"})
		r.Await("the work to go on", func() bool { return !w.isPaused() })
		list, err := r.swarm.Budgets.List(t.Context(), acme)
		expect.True(t, err == nil && len(list) == 0, "budgets: %v %v", list, err)
		open, _ := r.judge.Open(t.Context(), acme)
		expect.True(t, len(open) == 0, "open: %v", open)
		w.end(ok(`{}`))
		r.status(tk.TaskID, task.Succeeded)
		r.budget(budget.Budget{Subject: "tenant", Tokens: 100})
		r.whole()
	})
}

func TestBudgetsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, b := range []budget.Budget{
			{Tokens: -1}, {Tokens: math.MaxInt64}, {Tasks: math.MaxInt64}, {WallS: math.MaxInt64}, {CostUSD: math.NaN()}, {CostUSD: math.Inf(1)}, {CostUSD: -0.1},
		} {
			b.Subject = "tenant"
			_, err := r.swarm.Budgets.Set(t.Context(), alice, b)
			expect.True(t, hasCode(err, core.InvalidInput), "%+v: %v", b, err)
		}
	})
}

func TestSessionAndAgentBudgetsCloseTheirOwnLanesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		day, night := r.session("day"), r.session("night")
		r.budget(budget.Budget{Subject: "session:day", Tokens: 10})
		r.budget(budget.Budget{Subject: "agent:ann", CostUSD: 1})
		in := func(id string) func(*swarm.Dispatch) { return func(d *swarm.Dispatch) { d.Session = id } }
		spender := r.dispatch(`{}`, in(day.SessionID))
		w := <-r.runner.started
		w.job.Use(10, 0)
		r.Await("the session's work to freeze", w.isPaused)
		blocked := r.dispatch(`{}`, in(day.SessionID))
		free := r.dispatch(`{}`, in(night.SessionID))
		other := <-r.runner.started
		expect.True(t, other.job.Task.TaskID == free.TaskID && !other.isPaused(), "started %s", other.job.Task.TaskID)
		other.end(ok(`{}`))
		why, _ := r.swarm.Why(t.Context(), acme, blocked.TaskID)
		expect.True(t, why.Kind == "budget" && why.Ref == "session:"+day.SessionID, "why: %+v", why)
		prompt := expect.Of(r.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "agent.prompt", Input: core.Raw(`{"agent":"ann"}`)}))(t)
		ann := <-r.runner.started
		ann.job.Use(0, 1.5)
		r.Await("the agent's work to freeze", ann.isPaused)
		open, err := r.judge.Open(t.Context(), acme)
		expect.True(t, err == nil && len(open) == 2, "%d approvals open, want one for each budget (%v)", len(open), err)
		for _, id := range []string{spender.TaskID, prompt.TaskID} {
			expect.Of(r.swarm.Cancel(t.Context(), alice, id, "enough"))(t)
			r.status(id, task.Cancelled)
		}
		r.whole()
	})
}

func TestWhatIsQueuedOnADeniedBudgetIsBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		r.budget(budget.Budget{Subject: "tenant", Tokens: 10})
		r.dispatch(`{}`)
		w := <-r.runner.started
		w.job.Use(10, 0)
		r.Await("the work to freeze", w.isPaused)
		var queued []task.Task
		for range 150 { // more than one transaction ends
			queued = append(queued, r.dispatch(`{}`))
		}
		r.answer(r.openApproval().ApprovalID, judge.Answer{Reason: "enough"})
		for _, tk := range append(queued, r.dispatch(`{}`)) {
			expect.Is(t, r.status(tk.TaskID, task.Blocked).ErrorCode, "budget_denied", tk.TaskID)
		}
		r.budget(budget.Budget{Subject: "tenant", Tokens: 100})
		tk := r.dispatch(`{}`)
		(<-r.runner.started).end(ok(`{}`))
		r.status(tk.TaskID, task.Succeeded)
		r.whole()
	})
}

func TestATaskPastADeniedNumberIsBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		r.budget(budget.Budget{Subject: "tenant", Tasks: 1})
		r.dispatch(`{}`)
		running := <-r.runner.started
		next := r.dispatch(`{}`)
		r.answer(r.openApproval().ApprovalID, judge.Answer{Reason: "enough"})
		r.status(next.TaskID, task.Blocked)
		running.end(ok(`{}`)) // it was within it
		r.status(running.job.Task.TaskID, task.Succeeded)
		r.whole()
	})
}
