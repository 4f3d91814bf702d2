package swarm_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/session"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func (r *rig) session(name string) session.Session {
	r.T.Helper()
	ses := expect.Of(r.swarm.Sessions.Create(r.T.Context(), alice, name))(r.T)
	ses = expect.Of(r.swarm.Sessions.Start(r.T.Context(), alice, ses.SessionID))(r.T)
	return ses
}

// oneOfEach puts a task of every kind of waiting into a session.
func (r *rig) oneOfEach(session string) []string {
	r.T.Helper()
	in := func(d *swarm.Dispatch) { d.Session = session }
	held, retried, worked := r.dispatch(`{"held":1}`, in), r.dispatch(`{"retried":1}`, in), r.dispatch(`{"worked":1}`, in)
	sure := 0.8
	r.complete(r.claim(), task.Outcome{Status: task.Succeeded, Confidence: &sure})
	r.complete(r.claim(), failure(true))
	r.claim()
	queued, asked := r.dispatch(`{"queued":1}`, in), r.dispatch(`{"ask":1}`, in)
	after := r.dispatch(`{"after":1}`, in, func(d *swarm.Dispatch) { d.After = []string{queued.TaskID} })
	return []string{held.TaskID, retried.TaskID, worked.TaskID, queued.TaskID, asked.TaskID, after.TaskID}
}

func TestStoppingASessionByItsNameEndsEverythingInIt(t *testing.T) {
	r := newRig(t)
	r.session("day")
	other := r.session("night")
	ids := r.oneOfEach("day")
	r.dispatch(`{}`, func(d *swarm.Dispatch) { d.Session = "night" })
	expect.Of(r.swarm.Sessions.Stop(t.Context(), alice, "day", "over"))(t)
	for _, id := range ids {
		got := r.task(id)
		expect.True(t, got.Status.Terminal() && got.Waiting == "" && !got.CompletedAt.IsZero(), "%s is %s (%q)", got.Input, got.Status, got.Waiting)
	}
	open, err := r.judge.Open(t.Context(), acme)
	expect.True(t, err == nil && len(open) == 0, "approvals still open: %v %v", open, err)
	page, _ := r.tasks.List(t.Context(), acme, core.Filter{Session: other.SessionID, Status: "queued"})
	expect.True(t, page.Info.Total == 1, "the other session has %d queued tasks, want 1", page.Info.Total)
	again, err := r.swarm.Sessions.Create(t.Context(), alice, "day")
	expect.True(t, err == nil && again.Name == "day", "the name of a stopped session: %v", err)
	r.whole()
}

func TestAStopCutShortIsFinishedByTheScheduler(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart=", restart), func(t *testing.T) {
			r := newRig(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ses := r.session("day")
			ids := r.oneOfEach("day")
			r.change = func(c core.Change) {
				if c.Kind == "session" {
					cancel()
				}
			}
			_, err := r.swarm.Sessions.Stop(ctx, alice, ses.SessionID, "over")
			expect.Must(t, err != nil, "the stop was not cut short")
			if restart {
				r.Close()
				r.Open()
			}
			r.run()
			for _, id := range ids {
				r.Await(id+" to end", func() bool { return r.task(id).Status.Terminal() })
			}
			r.whole()
		})
	}
}

func TestOfTwoSessionsAtOnceOneGetsTheName(t *testing.T) {
	r := newRig(t)
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		wg.Go(func() { _, errs[i] = r.swarm.Sessions.Create(t.Context(), alice, "day") })
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else if !hasCode(err, core.Conflict) {
			t.Errorf("%v, want CONFLICT", err)
		}
	}
	expect.Is(t, made, 1, "sessions have the name")
	_, err := r.swarm.Sessions.Create(t.Context(), alice, core.NewID(core.SessionPrefix, acme, 77))
	expect.True(t, hasCode(err, core.InvalidInput), "a name that reads like an id: %v", err)
	r.whole()
}

func TestDispatchingWhileASessionStopsLeavesNothingBehind(t *testing.T) {
	r := newRig(t)
	r.run()
	go func() {
		for w := range r.runner.started {
			w.end(ok(`{}`))
		}
	}()
	ses := r.session("day")
	var wg sync.WaitGroup
	some := make(chan struct{}, 1)
	for p := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				_, err := r.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "test.run", Input: core.Raw(fmt.Sprintf(`{"p":%d,"i":%d}`, p, i)), Session: ses.SessionID})
				if hasCode(err, core.Conflict) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if i == 3 {
					select {
					case some <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	<-some
	expect.Of(r.swarm.Sessions.Stop(t.Context(), alice, ses.SessionID, ""))(t)
	wg.Wait()
	for _, st := range []string{"queued", "running"} {
		r.Await("no task to be "+st, func() bool {
			page, err := r.tasks.List(t.Context(), acme, core.Filter{Session: ses.SessionID, Status: st})
			return err == nil && page.Info.Total == 0
		})
	}
	r.whole()
	r.Close()
	close(r.runner.started)
}

// lateFreezer takes its time and fails.
type lateFreezer struct{}

func (lateFreezer) Freeze(ctx context.Context, _ string) []string {
	<-ctx.Done()
	return []string{"stuck-agent"}
}
func (lateFreezer) Thaw(context.Context, string) {}

func TestAnEmergencyStopSaysAfterTwoSecondsWhatHasNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.swarm.EStops.Freezer(lateFreezer{})
		r.run()
		tk := r.dispatch(`{}`)
		w := <-r.runner.started
		w.with(func(w *fakeWork) { w.stuck = 1000 })
		start := time.Now()
		st, err := r.swarm.EStops.Press(t.Context(), alice, "smoke")
		took := time.Since(start)
		expect.True(t, err == nil && took <= 20*time.Second, "took %s, %v", took, err)
		expect.Is(t, fmt.Sprint(st.Waiting), fmt.Sprint([]string{tk.TaskID, "stuck-agent"}), "waiting", st.Waiting)
		w.with(func(w *fakeWork) { w.stuck = 0 })
		r.Await("the late acknowledgement", w.isPaused)
		w.with(func(w *fakeWork) { w.stuck = 2 }) // resuming fails twice, too
		expect.Of(r.swarm.EStops.Thaw(t.Context(), alice, "false alarm"))(t)
		r.Await("the work to go on", func() bool { return !w.isPaused() })
		w.end(ok(`{}`))
		r.status(tk.TaskID, task.Succeeded)
	})
}

func TestAPauseThatIsTakenBackBeforeItIsAcknowledgedEnds(t *testing.T) {
	r := newRig(t)
	r.run()
	tk := r.dispatch(`{}`)
	w := <-r.runner.started
	w.with(func(w *fakeWork) { w.silent = true })
	expect.Of(r.swarm.PauseTask(t.Context(), alice, tk.TaskID, "look"))(t)
	r.Await("the pause", w.isPaused)
	expect.Of(r.swarm.ResumeTask(t.Context(), alice, tk.TaskID))(t)
	r.Await("the work to go on", func() bool { return !w.isPaused() })
	w.end(ok(`{}`))
	r.status(tk.TaskID, task.Succeeded)
}

func TestAnEmergencyStopReachesWorkThatGoesOnWithoutSayingSo(t *testing.T) {
	r := newRig(t)
	r.run()
	tk, w := r.pausedWork()
	w.with(func(w *fakeWork) { w.silent = true })
	expect.Of(r.swarm.ResumeTask(t.Context(), alice, tk.TaskID))(t)
	r.Await("the work to go on", func() bool { return !w.isPaused() })
	expect.Of(r.swarm.EStops.Press(t.Context(), alice, "smoke"))(t)
	r.Await("the stop", w.isPaused)
	w.end(ok(`{}`))
	r.status(tk.TaskID, task.Succeeded)
}

func TestNothingStartsUnderAnEmergencyStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.slots = 64
		r.Close()
		r.Open()
		r.run()
		for round := range 10 {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { r.dispatch(`{}`) })
			}
			expect.Of(r.swarm.EStops.Press(t.Context(), alice, "drill"))(t)
			wg.Wait()
			for len(r.runner.started) > 0 {
				if w := <-r.runner.started; !w.isPaused() {
					t.Fatalf("round %d: work goes on after the stop was acknowledged", round)
				} else {
					w.end(ok(`{}`))
				}
			}
			time.Sleep(20 * time.Millisecond)
			n := len(r.runner.started)
			expect.Must(t, n == 0, "round %d: %d tasks started under the stop", round, n)
			expect.Of(r.swarm.EStops.Thaw(t.Context(), alice, "drill over"))(t)
			r.Await("the rest to start and end", func() bool {
				for len(r.runner.started) > 0 {
					(<-r.runner.started).end(ok(`{}`))
				}
				c, err := r.tasks.Counts(t.Context(), acme)
				return err == nil && c.ByStatus[task.Succeeded] == int64(8*(round+1))
			})
		}
		r.whole()
	})
}

func TestTheEmergencyStopOutlivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		expect.Of(r.swarm.EStops.Press(t.Context(), alice, "smoke"))(t)
		r.Close()
		r.Open()
		var f countFreezer
		f.frozen = make(chan string, 1)
		r.swarm.EStops.Freezer(f)
		r.run()
		expect.Is(t, <-f.frozen, acme, "froze")
		r.swarm.Wake() // an agent was made under the stop
		<-f.frozen
		r.dispatch(`{}`)
		st := r.swarm.EStops.State(acme)
		expect.True(t, st.On && st.Reason == "smoke", "%+v", st)
		time.Sleep(50 * time.Millisecond)
		expect.Is(t, len(r.runner.started), 0, "a task started")
	})
}

type countFreezer struct{ frozen chan string }

func (f countFreezer) Freeze(_ context.Context, tenant string) []string {
	f.frozen <- tenant
	return nil
}
func (countFreezer) Thaw(context.Context, string) {}
