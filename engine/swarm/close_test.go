package swarm_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestASchedulerThatFailsStopsItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		done := make(chan error, 1)
		go func() { done <- r.swarm.Run(t.Context()) }()
		r.dispatch(`{}`)
		w := <-r.runner.started
		expect.No(t, r.DB.Close())
		r.DB = nil
		w.with(func(w *fakeWork) { w.mute = true }) // its lease will have to be taken away
		expect.From(t, done, "Run hangs on work that nobody ends")
		<-w.Done()
	})
}

func TestLogLinesOfTheLastMomentAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		task := r.dispatch(`{}`)
		w := <-r.runner.started
		for i := range 5000 { // more than the pipe holds
			w.job.Log("INFO", fmt.Sprint("line ", i))
		}
		r.Close()
		r.Open()
		_, last, err := r.tasks.Log(t.Context(), acme, task.TaskID, 0, 1)
		expect.True(t, err == nil && last == 5000, "%d lines kept, %v", last, err)
	})
}

func TestFrozenTimeDoesNotCountForTheTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		tk := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.Timeout = time.Second })
		w := <-r.runner.started
		expect.Of(r.swarm.PauseTask(t.Context(), alice, tk.TaskID, "look"))(t)
		r.Await("the pause", w.isPaused)
		time.Sleep(1500 * time.Millisecond)
		got := r.task(tk.TaskID)
		expect.Must(t, got.Status == task.Running, "timed out while frozen: %s", got.Status)
		expect.Of(r.swarm.ResumeTask(t.Context(), alice, tk.TaskID))(t)
		start := time.Now()
		r.status(tk.TaskID, task.TimedOut)
		took := time.Since(start)
		expect.True(t, took >= 500*time.Millisecond, "timed out %s after it went on", took)
		r.whole()
	})
}

func TestAPausedTaskIsStillPausedInTheNextEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		tk, _ := r.pausedWork()
		r.Close()
		r.Open()
		got := r.task(tk.TaskID)
		expect.Must(t, got.Status == task.Queued && got.Paused, "given back: %+v", got)
		r.run()
		r.Await("the pause as the reason", func() bool {
			why, err := r.swarm.Why(t.Context(), acme, tk.TaskID)
			return err == nil && why.Kind == "pause"
		})
		select {
		case <-r.runner.started:
			t.Fatal("its work began again under the pause")
		case <-time.After(300 * time.Millisecond):
		}
		expect.Of(r.swarm.ResumeTask(t.Context(), alice, tk.TaskID))(t)
		(<-r.runner.started).end(ok(`{}`))
		r.status(tk.TaskID, task.Succeeded)
		r.whole()
	})
}

func TestACancelledTaskIsCancelledAlthoughItsTimeRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		tk := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.Timeout = time.Second })
		w := <-r.runner.started
		w.with(func(w *fakeWork) { w.deaf = true })
		expect.Of(r.swarm.Cancel(t.Context(), alice, tk.TaskID, "enough"))(t)
		time.Sleep(1300 * time.Millisecond)
		w.end(failure(true))
		r.status(tk.TaskID, task.Cancelled)
		r.whole()
	})
}

func TestAPanickingRunnerFailsItsTaskOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.swarm.Runner("test.panic", panicRunner{r.runner})
		r.run()
		bad := expect.Of(r.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "test.panic", Input: core.Raw(`{}`)}))(t)
		good := r.dispatch(`{}`)
		(<-r.runner.started).end(ok(`{}`))
		r.status(good.TaskID, task.Succeeded)
		got := r.status(bad.TaskID, task.Failed)
		expect.True(t, got.ErrorCode == "runner_panic", "%+v", got)
		r.whole()
	})
}

type panicRunner struct{ *fakeRunner }

func (panicRunner) Start(context.Context, swarm.Job) (swarm.Work, error) { panic("boom") }

func TestATaskWhoseRunnerIsGoneFailsAndTheRestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.swarm.Runner("test.gone", r.runner)
		gone := expect.Of(r.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "test.gone", Input: core.Raw(`{}`)}))(t)
		retried := expect.Of(r.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "test.gone", Input: core.Raw(`{}`)}))(t)
		r.complete(r.claim(), failure(true))
		r.Close()
		r.Open()
		r.run()
		other := r.dispatch(`{}`)
		(<-r.runner.started).end(ok(`{}`))
		r.status(other.TaskID, task.Succeeded)
		r.status(gone.TaskID, task.Failed)
		r.status(retried.TaskID, task.Failed)
		r.whole()
	})
}

func TestManyDispatchesOfOneKeyMakeOneTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var wg sync.WaitGroup
		ids := make([]string, 32)
		for i := range ids {
			wg.Go(func() {
				ids[i] = r.dispatch(`{"n":1}`, func(d *swarm.Dispatch) { d.IdempotencyKey = "order-1" }).TaskID
			})
		}
		wg.Wait()
		for _, id := range ids {
			expect.Is(t, id, ids[0])
		}
		r.whole()
	})
}

func TestARunningTaskThatWaitsForAPersonCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		tk := r.dispatch(`{}`)
		claimed := r.claim()
		sure := 0.8
		r.complete(claimed, task.Outcome{Status: task.Succeeded, Confidence: &sure})
		ap := r.openApproval()
		expect.Of(r.swarm.Cancel(t.Context(), alice, tk.TaskID, "enough"))(t)
		_, err := r.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true})
		expect.True(t, hasCode(err, core.Conflict), "answer: %v", err)
		got := r.task(tk.TaskID)
		expect.True(t, got.Status == task.Cancelled && !got.CompletedAt.Before(got.StartedAt) && !got.UpdatedAt.Before(got.CompletedAt), "%+v", got)
		r.whole()
	})
}

func TestTheTraceFollowsATaskThroughEveryRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
		root := r.dispatch(`{"ask":1}`, func(d *swarm.Dispatch) { d.Trace = trace })
		child := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.Parent = root.TaskID; d.After = []string{root.TaskID} })
		r.answer(root.ApprovalID, judge.Answer{Approve: true})
		for range 2 {
			w := <-r.runner.started
			w.job.Log("INFO", "working")
			sure := 0.8
			w.end(task.Outcome{Status: task.Succeeded, Confidence: &sure})
			r.answer(r.openApproval().ApprovalID, judge.Answer{Approve: true})
		}
		for _, id := range []string{root.TaskID, child.TaskID} {
			r.status(id, task.Succeeded)
			res, err := r.tasks.Result(t.Context(), acme, id)
			expect.True(t, err == nil && res.TraceID == trace, "result: %+v %v", res, err)
			lines, _, err := r.tasks.Log(t.Context(), acme, id, 0, 5)
			expect.True(t, err == nil && len(lines) == 1 && lines[0].TraceID == trace, "log: %+v %v", lines, err)
		}
		events := expect.Of(r.Ledger.List(t.Context(), acme, core.Filter{Size: 100}))(t)
		own := map[string]bool{"policy.active": true, "audit.key": true, "tenant.created": true} // no task caused them
		for _, e := range events.Items {
			expect.True(t, e.TraceID == trace || own[e.EventType], "%s carries trace %s", e.EventType, e.TraceID)
		}
	})
}

func TestAnAnswerStandsForWorkThatHadNotBegun(t *testing.T) {
	for _, c := range []struct {
		kind  string
		crash bool
		asked int
	}{{"test.resume", false, 1}, {"test.resume", true, 1}, {"test.run", false, 2}, {"test.run", true, 2}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.run()
				tk := r.dispatch(`{"ask":1}`, func(d *swarm.Dispatch) { d.Kind = c.kind })
				first := tk.ApprovalID
				r.answer(first, judge.Answer{Approve: true})
				old := <-r.runner.started
				if c.crash {
					r.Crash()
					old.end(failure(false))
				} else { // what runs is given back
					r.Close()
				}
				r.Open()
				r.run()
				if c.asked == 1 {
					w := <-r.runner.started
					expect.Is(t, r.task(tk.TaskID).ApprovalID, first)
					w.end(ok(`{}`))
					r.status(tk.TaskID, task.Succeeded)
				} else {
					r.Await("the question", func() bool { return r.task(tk.TaskID).Waiting != "" })
				}
				all, err := r.judge.Approvals(t.Context(), acme, core.Filter{})
				expect.True(t, err == nil && len(all.Items) == c.asked, "%d were asked: %v", len(all.Items), err)
				r.whole()
			})
		})
	}
}
