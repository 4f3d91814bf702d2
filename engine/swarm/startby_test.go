package swarm_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// within makes a dispatch start within a second or never.
func within(d *swarm.Dispatch) { d.StartTimeout = time.Second }

// lateStart fails unless a task ended because nobody started it in time.
func (r *rig) lateStart(what, id string) {
	r.T.Helper()
	got := r.status(id, task.TimedOut)
	res, err := r.tasks.Result(r.T.Context(), acme, id)
	expect.True(r.T, err == nil && res.Status == task.TimedOut && res.Error != nil && res.Error.Code == "start_timed_out" && got.ErrorCode == "start_timed_out",
		"%s: %+v, result %+v %v", what, got, res, err)
	expect.True(r.T, !got.CompletedAt.IsZero() && got.StartedAt.IsZero() && got.Waiting == "" && got.Pending == 0, "%s: %+v", what, got)
	late := got.CompletedAt.Sub(got.CreatedAt)
	expect.True(r.T, late >= time.Second && late <= 4*time.Second, "%s: ended after %s, want soon after 1 s", what, late)
	events, err := r.Ledger.List(r.T.Context(), acme, core.Filter{Kind: "task.timed_out", Match: id})
	expect.True(r.T, err == nil && events.Info.Total == 1, "%s: %d events, %v", what, events.Info.Total, err)
}

func TestWhateverATaskWaitsForItMustStartInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.session("held")
		expect.Of(r.swarm.Sessions.Pause(t.Context(), alice, "held", ""))(t)
		expect.Of(r.swarm.Sessions.Create(t.Context(), alice, "new"))(t)
		r.run()
		in := func(name string) func(*swarm.Dispatch) { return func(d *swarm.Dispatch) { d.Session = name } }
		forAnn := func(d *swarm.Dispatch) { d.Kind = "agent.prompt" }
		var slots []*fakeWork
		for range 2 {
			r.dispatch(`{"slow":1}`)
			slots = append(slots, <-r.runner.started)
		}
		r.dispatch(`{"agent":"ann"}`, forAnn)
		slots = append(slots, <-r.runner.started)
		asked := r.dispatch(`{"ask":1}`, within)
		late := map[string]task.Task{
			"approval":       asked,
			"capacity":       r.dispatch(`{}`, within),
			"paused session": r.dispatch(`{}`, within, in("held")),
			"new session":    r.dispatch(`{}`, within, in("new")),
			"busy agent":     r.dispatch(`{"agent":"ann"}`, within, forAnn),
			"dependency":     r.dispatch(`{}`, within, func(d *swarm.Dispatch) { d.After = []string{slots[0].job.Task.TaskID} }),
		}
		next := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.After = []string{asked.TaskID} })
		last := r.dispatch(`{}`, within, func(d *swarm.Dispatch) { d.After = []string{next.TaskID} })
		for what, tk := range late {
			why, err := r.swarm.Why(t.Context(), acme, tk.TaskID)
			expect.True(t, err == nil && why.StartBy.Equal(tk.CreatedAt.Add(time.Second)) && strings.Contains(why.Text, "times out"),
				"%s: why %+v %v", what, why, err)
		}
		if a, err := r.judge.Approval(t.Context(), acme, asked.ApprovalID); err != nil {
			t.Error(err)
		} else if ends, how := a.Ends(); !ends.Equal(asked.StartBy()) || !strings.HasPrefix(how, "void") {
			t.Errorf("the approval ends at %s: %s", ends, how)
		}
		for what, tk := range late {
			r.lateStart(what, tk.TaskID)
		}
		a, err := r.judge.Approval(t.Context(), acme, asked.ApprovalID)
		expect.True(t, err == nil && a.Status == judge.Voided && strings.Contains(a.VoidReason, "start"), "approval %s (%s), %v", a.Status, a.VoidReason, err)
		for _, id := range []string{next.TaskID, last.TaskID} {
			got := r.status(id, task.Blocked)
			expect.True(t, got.ErrorCode == "dependency_failed", "what waited for it: %+v", got)
		}
		for _, w := range slots {
			w.end(ok(`{}`))
			r.status(w.job.Task.TaskID, task.Succeeded)
		}
		r.whole()
	})
}

func TestAnEmergencyStopDoesNotHoldTheStartDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		expect.Of(r.swarm.EStops.Press(t.Context(), alice, "smoke"))(t)
		task := r.dispatch(`{}`, within)
		why, _ := r.swarm.Why(t.Context(), acme, task.TaskID)
		expect.True(t, why.Kind == "estop" && strings.Contains(why.Text, "times out"), "why %+v", why)
		r.lateStart("emergency stop", task.TaskID)
		r.whole()
	})
}

func TestTheStartDeadlineOutlivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		asked, queued := r.dispatch(`{"ask":1}`, within), r.dispatch(`{}`, within)
		r.Close()
		time.Sleep(time.Second - time.Since(queued.CreatedAt))
		r.Open()
		list, err := r.swarm.Claim(t.Context(), alice, "w1", 1)
		expect.True(t, err == nil && len(list) == 0, "claimed after its deadline: %v %v", list, err)
		r.lateStart("claimed too late", queued.TaskID)
		r.run()
		r.lateStart("approval", asked.TaskID)
		r.whole()
	})
}

func TestOnlyTheFirstStartHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		tk := r.dispatch(`{}`, within)
		r.complete(r.claim(), failure(true))
		r.run()
		time.Sleep(time.Second - time.Since(tk.CreatedAt))
		w := <-r.runner.started // after its back-off of a second and more
		expect.True(t, w.job.Task.Attempt == 1 && w.job.Task.TaskID == tk.TaskID, "started %+v", w.job.Task)
		w.end(ok(`{}`))
		r.status(tk.TaskID, task.Succeeded)
		r.whole()
	})
}

func TestATaskThatEndedLeavesNoStartDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		cancelled, asked, run := r.dispatch(`{"c":1}`, within), r.dispatch(`{"ask":1}`, within), r.dispatch(`{"r":1}`, within)
		expect.Of(r.swarm.Cancel(t.Context(), alice, cancelled.TaskID, ""))(t)
		r.answer(asked.ApprovalID, judge.Answer{Reason: "no"})
		denied := r.dispatch(`{"deny":1}`, within)
		expect.True(t, denied.Status == task.Blocked, "denied: %+v", denied)
		r.complete(r.claim(), ok(`{}`))
		r.Close() // an open one would be read again
		r.Open()
		r.run()
		time.Sleep(time.Second - time.Since(run.CreatedAt) + 50*time.Millisecond)
		for id, want := range map[string]task.Status{
			cancelled.TaskID: task.Cancelled, asked.TaskID: task.Blocked, run.TaskID: task.Succeeded,
		} {
			got := r.task(id)
			expect.True(t, got.Status == want, "%s is %s, want %s", got.Input, got.Status, want)
		}
		r.whole()
	})
}

func TestRetryingByHandKeepsTheStartDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		task := r.dispatch(`{"ask":1}`, within)
		expect.Is(t, task.StartTimeoutS, 1, "start_timeout_s")
		r.lateStart("the first", task.TaskID)
		again, err := r.swarm.Retry(t.Context(), alice, task.TaskID)
		expect.True(t, err == nil && again.StartTimeoutS == 1 && again.StartBy().Equal(again.CreatedAt.Add(time.Second)), "retried: %+v %v", again, err)
		r.whole()
	})
}
