package swarm_test

import (
	"fmt"
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

func TestTheSchedulerRunsTasksWithinItsSlots(t *testing.T) {
	r := newRig(t)
	r.run()
	var ids []string
	for i := range 4 {
		ids = append(ids, r.dispatch(fmt.Sprintf(`{"i":%d}`, i)).TaskID)
	}
	a, b := <-r.runner.started, <-r.runner.started
	if a.job.Task.TaskID != ids[0] { // both start at once
		a, b = b, a
	}
	r.Await("capacity as the reason", func() bool {
		why, err := r.swarm.Why(t.Context(), acme, ids[3])
		return err == nil && why.Kind == "capacity"
	})
	select {
	case w := <-r.runner.started:
		t.Fatalf("task %s started beyond the two slots", w.job.Task.TaskID)
	default:
	}
	a.job.Log("INFO", "hello")
	a.end(ok(`{"ok":true}`))
	b.end(failure(false))
	(<-r.runner.started).end(ok(`{}`))
	(<-r.runner.started).end(ok(`{}`))
	r.status(ids[0], task.Succeeded)
	r.status(ids[1], task.Failed)
	r.status(ids[2], task.Succeeded)
	r.status(ids[3], task.Succeeded)
	lines, last, err := r.tasks.Log(t.Context(), acme, ids[0], 0, 10)
	expect.True(t, err == nil && last == 1 && lines[0].Message == "hello", "log: %v %d %v", lines, last, err)
	r.whole()
}

func TestASilentWorkerLosesItsLeaseWithinASecondAndItsResultIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		tk := r.dispatch(`{}`)
		w := <-r.runner.started
		start := time.Now()
		w.mu.Lock()
		w.mute = true
		w.mu.Unlock()
		got := r.status(tk.TaskID, task.Queued)
		took := time.Since(start)
		expect.True(t, took <= 10*time.Second, "noticed after %s", took)
		expect.True(t, got.Attempt == 1 && got.ErrorCode == "lease_lost", "after the loss: %+v", got)
		_, err := r.swarm.Complete(t.Context(), alice, tk.TaskID, w.job.Task.Lease, ok(`{}`))
		expect.True(t, hasCode(err, core.Conflict), "late result: %v, want CONFLICT", err)
		<-w.Done() // what still ran was told to stop
		w = <-r.runner.started
		w.end(ok(`{}`))
		r.status(tk.TaskID, task.Succeeded)
		r.whole()
	})
}

func TestATimeOutEndsTheTask(t *testing.T) {
	r := newRig(t)
	r.run()
	tk := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.Timeout = time.Second })
	w := <-r.runner.started
	got := r.status(tk.TaskID, task.TimedOut)
	expect.True(t, got.ErrorCode == "timed_out" && w.reason == "timed out", "%+v, work told %q", got, w.reason)
	r.whole()
}

func TestCancelInterruptsARunningTask(t *testing.T) {
	r := newRig(t)
	r.run()
	tk := r.dispatch(`{}`)
	w := <-r.runner.started
	expect.Of(r.swarm.Cancel(t.Context(), alice, tk.TaskID, "changed my mind"))(t)
	r.status(tk.TaskID, task.Cancelled)
	res, err := r.tasks.Result(t.Context(), acme, tk.TaskID)
	expect.True(t, err == nil && res.Error != nil && res.Error.Message == "changed my mind", "result %+v %v", res.Error, err)
	<-w.Done()
	_, err = r.swarm.Cancel(t.Context(), alice, tk.TaskID, "")
	expect.True(t, hasCode(err, core.Conflict), "second cancel: %v", err)
	r.whole()
}

func TestSessionsMoveOnlyAsTheSeedSays(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	move := map[string]func(string) error{
		"start":  func(id string) error { _, err := r.swarm.Sessions.Start(ctx, alice, id); return err },
		"pause":  func(id string) error { _, err := r.swarm.Sessions.Pause(ctx, alice, id, "why"); return err },
		"resume": func(id string) error { _, err := r.swarm.Sessions.Resume(ctx, alice, id); return err },
		"stop":   func(id string) error { _, err := r.swarm.Sessions.Stop(ctx, alice, id, ""); return err },
	}
	for _, c := range []struct {
		path []string
		bad  []string
	}{
		{nil, []string{"pause", "resume"}},
		{[]string{"start"}, []string{"start", "resume"}},
		{[]string{"start", "pause"}, []string{"start", "pause"}},
		{[]string{"start", "pause", "resume"}, []string{"start", "resume"}},
		{[]string{"start", "pause", "stop"}, []string{"start", "pause", "resume", "stop"}},
		{[]string{"stop"}, []string{"start", "pause", "resume", "stop"}},
	} {
		ses := expect.Of(r.swarm.Sessions.Create(ctx, alice, ""))(t)
		for _, verb := range c.path {
			expect.No(t, move[verb](ses.SessionID), c.path, verb)
		}
		for _, verb := range c.bad {
			err := move[verb](ses.SessionID)
			expect.True(t, hasCode(err, core.Conflict), "after %v: %s gave %v, want CONFLICT", c.path, verb, err)
		}
	}
	r.whole()
}

func TestPausingASessionIsShownUntilItsWorkAcknowledged(t *testing.T) {
	r := newRig(t)
	r.run()
	ctx := t.Context()
	ses := expect.Of(r.swarm.Sessions.Create(ctx, alice, "day"))(t)
	in := func(d *swarm.Dispatch) { d.Session = "day" }
	a := r.dispatch(`{"a":1}`, in)
	why, _ := r.swarm.Why(ctx, acme, a.TaskID)
	expect.True(t, why.Kind == "session", "why before the start: %+v", why)
	expect.Of(r.swarm.Sessions.Start(ctx, alice, ses.SessionID))(t)
	w := <-r.runner.started
	paused, err := r.swarm.Sessions.Pause(ctx, alice, "day", "lunch")
	// The worker may be quicker than the answer.
	shown := paused.Shown()
	expect.True(t, err == nil && (shown == "pausing" || w.isPaused()) && (shown == "pausing") == (len(paused.Pausing) == 1), "right after: %+v %v", paused, err)
	r.Await("the acknowledgement", func() bool {
		ses, err := r.swarm.Sessions.Get(ctx, acme, "day")
		return err == nil && ses.Shown() == "paused" && w.isPaused()
	})
	b := r.dispatch(`{"b":1}`, in)
	why, _ = r.swarm.Why(ctx, acme, b.TaskID)
	expect.True(t, why.Kind == "pause", "why: %+v", why)
	expect.Of(r.swarm.Sessions.Resume(ctx, alice, "day"))(t)
	w2 := <-r.runner.started
	r.Await("the work to go on", func() bool { return !w.isPaused() })
	expect.Of(r.swarm.Sessions.Stop(ctx, alice, "day", "over"))(t)
	r.status(a.TaskID, task.Cancelled)
	r.status(b.TaskID, task.Cancelled)
	<-w2.Done()
	_, err = r.swarm.Dispatch(ctx, alice, swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Session: ses.SessionID})
	expect.True(t, hasCode(err, core.Conflict), "dispatch into a stopped session: %v", err)
	r.whole()
}

func TestTheEmergencyStopFreezesEverythingWithinTwoSecondsAndThaws(t *testing.T) {
	r := newRig(t)
	r.run()
	ctx := t.Context()
	r.dispatch(`{"a":1}`)
	w := <-r.runner.started
	st, err := r.swarm.EStops.Press(ctx, alice, "smoke") // waits two seconds for acknowledgements
	expect.True(t, err == nil && st.On && len(st.Waiting) == 0 && st.Frozen == 1 && w.isPaused(), "stop: %+v %v", st, err)
	b := r.dispatch(`{"b":1}`)
	why, _ := r.swarm.Why(ctx, acme, b.TaskID)
	expect.True(t, why.Kind == "estop", "why: %+v", why)
	list, err := r.swarm.Claim(ctx, alice, "w", 1)
	expect.True(t, err == nil && len(list) == 0, "claimed during the stop: %v %v", list, err)
	st, err = r.swarm.EStops.Thaw(ctx, alice, "false alarm")
	expect.True(t, err == nil && !st.On, "thaw: %+v %v", st, err)
	r.Await("the work to go on", func() bool { return !w.isPaused() })
	w.end(ok(`{}`))
	(<-r.runner.started).end(ok(`{}`))
	r.status(b.TaskID, task.Succeeded)
	r.whole()
}

func (r *rig) openApproval() judge.Approval {
	r.T.Helper()
	var open []judge.Approval
	r.Await("an open approval", func() bool {
		var err error
		open, err = r.judge.Open(r.T.Context(), acme)
		return err == nil && len(open) == 1
	})
	return open[0]
}

func (r *rig) answer(id string, a judge.Answer) {
	r.T.Helper()
	expect.Of(r.judge.Answer(r.T.Context(), alice, id, a))(r.T)
}

func TestATaskWaitsForItsApprovalOutsideTheQueue(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.dispatch(`{"ask":"may I?"}`)
	expect.True(t, a.Status == task.Queued && a.Waiting == "approval", "dispatched: %+v", a)
	why, _ := r.swarm.Why(t.Context(), acme, a.TaskID)
	expect.True(t, why.Kind == "gate" && why.Ref == a.ApprovalID, "why: %+v", why)
	other := r.dispatch(`{}`)
	(<-r.runner.started).end(ok(`{}`)) // it stops no other task
	r.status(other.TaskID, task.Succeeded)
	r.answer(a.ApprovalID, judge.Answer{Approve: true})
	w := <-r.runner.started
	expect.Is(t, w.job.Task.TaskID, a.TaskID, "started")
	w.end(failure(true))
	// The approval was for that attempt: the next one asks anew.
	r.Await("a new approval", func() bool {
		got := r.task(a.TaskID)
		return got.Waiting == "approval" && got.ApprovalID != a.ApprovalID && got.Attempt == 1
	})
	r.whole()
}

func TestADenialBlocksAndAnEditChangesWhatRuns(t *testing.T) {
	r := newRig(t)
	r.run()
	a, b := r.dispatch(`{"ask":1}`), r.dispatch(`{"ask":2}`)
	r.answer(a.ApprovalID, judge.Answer{Reason: "no thanks"})
	r.status(a.TaskID, task.Blocked)
	res, err := r.tasks.Result(t.Context(), acme, a.TaskID)
	expect.True(t, err == nil && res.Error.Code == "approval_denied", "result %+v %v", res, err)
	r.answer(b.ApprovalID, judge.Answer{Approve: true, Edit: core.Raw(`{"ask":3}`)})
	w := <-r.runner.started
	expect.Is(t, string(w.job.Task.Input), `{"ask":3}`, "ran")
	w.end(ok(`{}`))
	r.status(b.TaskID, task.Succeeded)
	d := r.dispatch(`{"deny":1}`)
	expect.True(t, d.Status == task.Blocked && d.ErrorCode == "denied", "denied by rule: %+v", d)
	r.whole()
}

func TestCancellingVoidsTheApproval(t *testing.T) {
	r := newRig(t)
	a := r.dispatch(`{"ask":1}`)
	expect.Of(r.swarm.Cancel(t.Context(), alice, a.TaskID, ""))(t)
	ap, err := r.judge.Approval(t.Context(), acme, a.ApprovalID)
	expect.True(t, err == nil && ap.Status == judge.Voided, "approval %s, %v", ap.Status, err)
	_, err = r.judge.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true})
	expect.True(t, hasCode(err, core.Conflict), "answer to a void approval: %v", err)
	r.whole()
}

func TestConfidenceBandsDecideAboutResults(t *testing.T) {
	r := newRig(t)
	conf := func(c float64) task.Outcome { o := ok(`{"v":1}`); o.Confidence = &c; return o }
	sure, maybe, unsure := r.dispatch(`{"i":1}`), r.dispatch(`{"i":2}`), r.dispatch(`{"i":3}`)
	r.complete(r.claim(), conf(0.95))
	held := r.claim()
	r.complete(held, conf(0.8))
	r.complete(r.claim(), conf(0.5))
	expect.Is(t, r.task(sure.TaskID).Status, task.Succeeded, "0.95")
	if got := r.task(unsure.TaskID); got.Status != task.Queued || got.Attempt != 1 || got.Feedback == "" {
		t.Errorf("0.50: %+v", got)
	}
	got := r.task(maybe.TaskID)
	expect.True(t, got.Status == task.Running && got.Waiting == "approval", "0.80: %+v", got)
	_, err := r.swarm.Complete(t.Context(), alice, held.TaskID, held.Lease, ok(`{}`))
	expect.True(t, hasCode(err, core.Conflict), "second result while held: %v", err)
	r.answer(got.ApprovalID, judge.Answer{Approve: true})
	got = r.task(maybe.TaskID)
	expect.True(t, got.Status == task.Succeeded, "0.80 approved: %s", got.Status)
	r.whole()
}

func TestABudgetOpensAnApprovalInsteadOfGoingOn(t *testing.T) {
	r := newRig(t)
	r.run()
	expect.Of(r.swarm.Budgets.Set(t.Context(), alice, budget.Budget{Subject: "tenant", Tokens: 100}))(t)
	a := r.dispatch(`{}`)
	w := <-r.runner.started
	w.job.Use(99, 0.5)
	w.job.Use(2, 0)
	ap := r.openApproval()
	expect.Is(t, ap.Gate, judge.GateBudget, "gate")
	r.Await("the work to freeze", w.isPaused)
	b := r.dispatch(`{}`)
	why, _ := r.swarm.Why(t.Context(), acme, b.TaskID)
	expect.True(t, why.Kind == "budget", "why: %+v", why)
	r.answer(ap.ApprovalID, judge.Answer{Approve: true})
	r.Await("the work to go on", func() bool { return !w.isPaused() })
	w2 := <-r.runner.started
	w2.job.Use(100, 0)
	ap = r.openApproval()
	r.answer(ap.ApprovalID, judge.Answer{Reason: "enough"})
	r.status(a.TaskID, task.Cancelled)
	r.status(b.TaskID, task.Cancelled)
	list, err := r.swarm.Budgets.List(t.Context(), acme)
	expect.True(t, err == nil && len(list) == 1 && list[0].Used.Tokens == 201 && list[0].Denied, "budgets %+v %v", list, err)
	r.whole()
}

func TestATaskBudgetStopsTheNextTask(t *testing.T) {
	r := newRig(t)
	r.run()
	expect.Of(r.swarm.Budgets.Set(t.Context(), alice, budget.Budget{Subject: "tenant", Tasks: 1}))(t)
	r.dispatch(`{}`)
	(<-r.runner.started).end(ok(`{}`))
	b := r.dispatch(`{}`)
	ap := r.openApproval()
	expect.Is(t, r.task(b.TaskID).Status, task.Queued, "second task")
	r.answer(ap.ApprovalID, judge.Answer{Approve: true})
	(<-r.runner.started).end(ok(`{}`))
	r.status(b.TaskID, task.Succeeded)
	r.whole()
}

func TestARestartTakesTheLeasesBackAndKeepsTheRest(t *testing.T) {
	r := newRig(t)
	running, waiting, queued := r.dispatch(`{"i":1}`), r.dispatch(`{"ask":1}`), r.dispatch(`{"i":2}`)
	r.claim()
	r.Close()
	r.Open()
	got := r.task(running.TaskID)
	expect.True(t, got.Status == task.Queued && got.Attempt == 0 && got.ErrorCode == "", "running before: %+v", got)
	got = r.task(waiting.TaskID)
	expect.True(t, got.Waiting == "approval", "waiting before: %+v", got)
	expect.Is(t, r.claim().TaskID, queued.TaskID, "claimed")
	r.whole()
}

// TestEnginesThatDieUseUpNoAttempts: whether a task that has no other is run once more is for
// a person to say, whenever that is.
func TestEnginesThatDieUseUpNoAttempts(t *testing.T) {
	r := newRig(t)
	tk, once := r.dispatch(`{"i":1}`), r.dispatch(`{"i":2}`, func(d *swarm.Dispatch) { d.MaxAttempts = new(1) })
	r.run()
	<-r.runner.started
	<-r.runner.started
	for range 4 {
		r.Crash()
		r.Open()
		r.run()
		ap := r.openApproval()
		expect.True(t, ap.TaskID == once.TaskID && ap.ReasonCode == swarm.ReasonSent && ap.DeadlineAt.IsZero(), "%+v", ap)
		w := <-r.runner.started
		expect.Is(t, w.job.Task.TaskID, tk.TaskID)
		r.answer(ap.ApprovalID, judge.Answer{Approve: true})
		w = <-r.runner.started
		expect.Is(t, w.job.Task.TaskID, once.TaskID)
	}
	for _, id := range []string{tk.TaskID, once.TaskID} {
		got := r.task(id)
		expect.True(t, got.Status == task.Running && got.Attempt == 0, "%+v", got)
	}
}

func TestClosingGivesRunningTasksBackWithoutCostingAnAttempt(t *testing.T) {
	r := newRig(t)
	r.run()
	tk := r.dispatch(`{}`)
	w := <-r.runner.started
	r.Close()
	<-w.Done()
	r.Open()
	got := r.task(tk.TaskID)
	expect.True(t, got.Status == task.Queued && got.Attempt == 0, "after closing: %+v", got)
	r.run()
	(<-r.runner.started).end(ok(`{}`))
	r.status(tk.TaskID, task.Succeeded)
	r.whole()
}

func TestOneAgentRunsOneTaskAtATime(t *testing.T) {
	r := newRig(t)
	r.run()
	prompt := func(agent string) string {
		tk := expect.Of(r.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "agent.prompt", Input: core.Raw(`{"agent":"` + agent + `"}`)}))(t)
		return tk.TaskID
	}
	a1, a2, b1 := prompt("ann"), prompt("ann"), prompt("bob")
	first, second := <-r.runner.started, <-r.runner.started
	expect.True(t, (first.job.Task.TaskID == a1 || second.job.Task.TaskID == a1) && first.job.Task.TaskID != a2 && second.job.Task.TaskID != a2,
		"started %s and %s", first.job.Task.TaskID, second.job.Task.TaskID)
	first.end(ok(`{}`))
	second.end(ok(`{}`))
	(<-r.runner.started).end(ok(`{}`))
	for _, id := range []string{a1, a2, b1} {
		r.status(id, task.Succeeded)
	}
	page, err := r.tasks.List(t.Context(), acme, core.Filter{Agent: "ann"})
	expect.True(t, err == nil && page.Info.Total == 2, "tasks of ann: %d %v", page.Info.Total, err)
	r.whole()
}
