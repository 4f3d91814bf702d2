package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestStatusFollowsTheRuntime(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	h := w.rt.handle("bob")
	for _, s := range []fleet.Health{
		{Status: fleet.Failed, Reason: "exit status 1", Restarts: 5},
		{Status: fleet.Starting, Restarts: 6},
		{Status: fleet.Idle, PID: 4711, Restarts: 6},
		{Status: fleet.Offline, Reason: "connection lost", Restarts: 6},
		{Status: fleet.Idle, PID: 4712, Restarts: 7},
	} {
		h.notify(s)
		a := w.awaitStatus("bob", s.Status)
		expect.True(t, a.Reason == s.Reason && a.PID == s.PID && a.Restarts == s.Restarts, "%+v became %+v", s, a)
	}
	h.notify(fleet.Health{Status: "melting"})
	a := w.awaitStatus("bob", fleet.Failed)
	expect.True(t, a.Reason != "", "unknown status: %+v", a)
	w.consistent()
}

func TestSameHealthIsNotWrittenAgain(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	before := len(w.events("agent.*"))
	for range 100 {
		w.rt.handle("bob").notify(fleet.Health{Status: fleet.Idle, PID: 100})
	}
	w.rt.handle("bob").notify(fleet.Health{Status: fleet.Idle, PID: 200})
	w.Await("the new pid", func() bool { return w.agent("bob").PID == 200 })
	expect.Is(t, len(w.events("agent.*"))-before, 1, "events for one change")
}

func TestAgentThatCannotBeOpenedRecovers(t *testing.T) {
	w := newWorld(t).run()
	w.rt.breaks(errors.New("no such program"))
	expect.Of(w.fleet.Create(t.Context(), alice, fleet.Create{Name: "bob", Project: "P", Command: []string{"x"}}))(t)
	expect.Is(t, w.awaitStatus("bob", fleet.Failed).Reason, "can't open: no such program", "reason")
	w.rt.breaks(nil)
	w.awaitStatus("bob", fleet.Idle) // by itself
}

func TestStopLastsUntilStart(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(hang)
	w.create("bob")
	tk := w.assign("bob", "x")
	w.awaitStatus("bob", fleet.Busy)
	a, err := w.fleet.Stop(t.Context(), alice, "bob")
	expect.Must(t, err == nil && a.Status == fleet.Offline && a.Reason == "stopped by alice" && a.TaskID == "", "%+v, %v", a, err)
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Cancelled, "result: %+v", r)
	w.rt.handle("bob").notify(fleet.Health{Status: fleet.Idle}) // a runtime's word does not undo it
	w.Close()
	w.Open()
	w.run()
	w.create("other")
	a = w.agent("bob")
	expect.True(t, a.Status == fleet.Offline && a.Stopped, "after a restart of the engine: %+v", a)
	expect.Of(w.fleet.Start(t.Context(), alice, "bob"))(t)
	a = w.awaitStatus("bob", fleet.Idle)
	expect.True(t, !a.Stopped && a.Reason == "", "started: %+v", a)
	a, err = w.fleet.Start(t.Context(), alice, "bob")
	expect.True(t, err == nil && a.Status == fleet.Idle, "starting a running one: %+v, %v", a, err)
	w.consistent()
}

// TestATroubleIsOneItemUntilItIsMended: whatever states its agent goes through, it says why,
// is told once, and is tried again when an operator wants something of it.
func TestATroubleIsOneItemUntilItIsMended(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	h := w.rt.handle("bob")
	trouble := fleet.Trouble{Reason: "log in", Since: time.Now(), NextAt: time.Now().Add(time.Hour)}
	for i := range 3 {
		now := trouble
		now.Tries = i + 1
		for _, s := range []fleet.AgentStatus{fleet.Failed, fleet.Starting} {
			h.notify(fleet.Health{Status: s, Trouble: &now})
			a := w.awaitStatus("bob", s)
			expect.True(t, a.Reason == "log in" && a.Needs() == "log in" && a.State() == "waiting for you", "%+v", a)
		}
	}
	h.notify(fleet.Health{Status: fleet.Failed, Trouble: &trouble})
	w.awaitStatus("bob", fleet.Failed)
	news := 0
	for _, e := range w.events("agent.status") {
		if p := expect.Of(e.Data())(t); strings.Contains(string(p.Detail), `"to":"failed"`) && !strings.Contains(string(p.Detail), `"since"`) {
			news++
		}
	}
	expect.Is(t, news, 1, "told as new")
	_, err := w.fleet.Assign(t.Context(), alice, "bob", "x", "")
	expect.Err(t, err, core.Kind(core.Conflict))
	a := w.awaitStatus("bob", fleet.Idle)
	expect.True(t, a.Trouble == nil && a.Needs() == "", "%+v", a)
	w.consistent()
}

func TestRestartAsksWhetherTheTaskIsSentAgain(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(hang)
	w.create("bob")
	tk := w.assign("bob", "x")
	w.awaitStatus("bob", fleet.Busy)
	w.rt.does(done)
	expect.Of(w.fleet.Restart(t.Context(), alice, "bob"))(t)
	w.sendAgain(tk.TaskID, judge.Answer{Approve: true})
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded, "result: %+v %+v", r, r.Error)
	now, _ := w.tasks.Get(t.Context(), home, tk.TaskID)
	expect.True(t, now.Attempt == 1, "attempt %d", now.Attempt)
}

func TestPauseIsShownWhenAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t).run()
		w.rt.does(hang)
		w.create("bob")
		w.assign("bob", "x")
		w.awaitStatus("bob", fleet.Busy)
		h := w.rt.handle("bob")
		h.is(func() bool { h.deaf = true; return true })
		acked := expect.Later(func() fleet.Agent {
			a, err := w.fleet.Pause(t.Context(), alice, "bob")
			expect.Is(t, err, nil)
			return a
		})
		w.Await("pausing", func() bool { return w.agent("bob").State() == "pausing" })
		time.Sleep(50 * time.Millisecond)
		a := w.agent("bob")
		expect.True(t, !a.Paused, "shown as paused before it was")
		h.is(func() bool { h.deaf = false; return true })
		<-acked
		w.Await("paused", func() bool { return w.agent("bob").State() == "paused" })
		expect.True(t, h.is(func() bool { return h.paused }), "the process runs")
		a, err := w.fleet.Resume(t.Context(), alice, "bob")
		expect.True(t, err == nil && a.State() == "working" && !h.is(func() bool { return h.paused }), "resumed: %+v, %v", a, err)
		w.consistent()
	})
}

func TestAPauseThatIsTakenBackBeforeItIsAcknowledgedEnds(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	h := w.rt.handle("bob")
	h.is(func() bool { h.deaf = true; return true })
	asked := expect.Later(func() error {
		_, err := w.fleet.Pause(t.Context(), alice, "bob")
		return err
	})
	still := func() bool { return h.is(func() bool { return h.paused }) }
	w.Await("a try to pause", still)
	expect.Of(w.fleet.Resume(t.Context(), alice, "bob"))(t)
	expect.No(t, <-asked)
	w.Await("going on", func() bool { return !still() })
	w.Await("a free agent", func() bool { free, _ := w.fleet.Runner().Slot(home, "bob"); return free })
}

func TestPauseOutlastsTheEngine(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	if _, err := w.fleet.Pause(t.Context(), alice, "bob"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	w.Open()
	w.run()
	w.Await("paused again", func() bool {
		h := w.rt.handle("bob")
		return h != nil && h.is(func() bool { return h.paused }) && w.agent("bob").Paused
	})
	_, err := w.fleet.Assign(t.Context(), alice, "bob", "x", "")
	refused(t, err, core.Conflict, "error", "AgentBusyError")
	expect.Of(w.fleet.Resume(t.Context(), alice, "bob"))(t)
	w.awaitStatus("bob", fleet.Idle)
	w.result(w.assign("bob", "x").TaskID)
}

func TestSessionAndOperatorPauseAddUp(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(hang)
	w.create("bob")
	s := expect.Of(w.swarm.Sessions.Create(t.Context(), alice, "s"))(t)
	expect.Of(w.swarm.Sessions.Start(t.Context(), alice, s.SessionID))(t)
	input := core.Raw(`{"agent":"bob","message":"x"}`)
	expect.Of(w.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: fleet.KindPrompt, Session: s.SessionID, Input: input}))(t)
	w.awaitStatus("bob", fleet.Busy)
	h := w.rt.handle("bob")
	still := func() bool { return h.is(func() bool { return h.paused }) }
	expect.Of(w.swarm.Sessions.Pause(t.Context(), alice, s.SessionID, "lunch"))(t)
	w.Await("the session's pause", still)
	expect.Of(w.fleet.Pause(t.Context(), alice, "bob"))(t)
	expect.Of(w.fleet.Resume(t.Context(), alice, "bob"))(t)
	expect.True(t, still(), "resuming the agent resumed a paused session's work")
	expect.Of(w.swarm.Sessions.Resume(t.Context(), alice, s.SessionID))(t)
	w.Await("going on", func() bool { return !still() })
}

func TestEmergencyStopReachesEveryAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t).run()
		w.rt.does(hang)
		for i := range 20 {
			w.create(fmt.Sprint("a", i))
		}
		w.assign("a0", "x")
		w.awaitStatus("a0", fleet.Busy)
		begin := time.Now()
		expect.Of(w.swarm.EStops.Press(t.Context(), alice, "test"))(t)
		frozen := func() (n int) {
			for i := range 20 {
				if h := w.rt.handle(fmt.Sprint("a", i)); h.is(func() bool { return h.paused }) {
					n++
				}
			}
			return n
		}
		w.Await("all stand still", func() bool { return frozen() == 20 })
		took := time.Since(begin)
		expect.True(t, took <= 20*time.Second, "took %v", took)
		free, why := w.fleet.Runner().Slot(home, "a1")
		expect.True(t, !free && why != "", "a frozen agent takes tasks")
		expect.Of(w.swarm.EStops.Thaw(t.Context(), alice, "over"))(t)
		w.Await("all go on", func() bool { return frozen() == 0 })
	})
}

// countingFreezer counts how often it is asked to freeze.
type countingFreezer struct {
	estop.Freezer
	freezes atomic.Int64
}

func (c *countingFreezer) Freeze(ctx context.Context, tenant string) []string {
	c.freezes.Add(1)
	return c.Freezer.Freeze(ctx, tenant)
}

// A freeze wakes the scheduler, which freezes what came meanwhile.
func TestAnEmergencyStopFreezesOnceWhatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := &countingFreezer{Freezer: w.fleet}
		w.swarm.EStops.Freezer(c)
		w.run()
		w.create("bob")
		expect.Of(w.swarm.EStops.Press(t.Context(), alice, "test"))(t)
		h := w.rt.handle("bob")
		w.Await("it to stand still", func() bool { return h.is(func() bool { return h.paused }) })
		w.Await("a second without a freeze", func() bool {
			before := c.freezes.Load()
			time.Sleep(time.Second)
			return c.freezes.Load() == before
		})
	})
}

func TestUpdateOpensTheAgentAnew(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	old := w.rt.handle("bob")
	a, err := w.fleet.Update(t.Context(), alice, "bob", fleet.Create{Project: "Other", Role: "tester", Command: []string{"y"}})
	expect.Must(t, err == nil && a.Project == "Other" && a.Role == "tester" && a.Command[0] == "y", "%+v, %v", a, err)
	w.Await("opened anew", func() bool { h := w.rt.handle("bob"); return h != old && old.is(func() bool { return old.closed }) })
	w.awaitStatus("bob", fleet.Idle)
	opened := w.rt.opened
	before := len(w.events("agent.updated"))
	expect.Of(w.fleet.Update(t.Context(), alice, "bob", fleet.Create{Project: "Other", Role: "tester", Command: []string{"y"}}))(t)
	expect.True(t, w.rt.opened == opened && len(w.events("agent.updated")) == before, "an update that changes nothing did something")
	_, err = w.fleet.Update(t.Context(), alice, "bob", fleet.Create{Project: "Other", Role: "tester"})
	refused(t, err, core.InvalidInput, "field", "command")
	w.consistent()
}

func TestDeleteWorksInEveryState(t *testing.T) {
	for name, prepare := range map[string]func(w *world){
		"idle": func(*world) {},
		"busy": func(w *world) { w.assign("bob", "x"); w.awaitStatus("bob", fleet.Busy) },
		"failed": func(w *world) {
			w.rt.handle("bob").notify(fleet.Health{Status: fleet.Failed})
			w.awaitStatus("bob", fleet.Failed)
		},
		"paused and busy": func(w *world) {
			w.assign("bob", "x")
			w.awaitStatus("bob", fleet.Busy)
			expect.Of(w.fleet.Pause(w.T.Context(), alice, "bob"))(w.T)
		},
		"with a queue": func(w *world) {
			expect.Of(w.fleet.Pause(w.T.Context(), alice, "bob"))(w.T)
			for range 150 {
				expect.Of(w.swarm.Dispatch(w.T.Context(), alice, swarm.Dispatch{Kind: fleet.KindPrompt, Input: core.Raw(`{"agent":"bob","message":"x"}`)}))(w.T)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).run()
			w.rt.does(hang)
			w.create("bob")
			prepare(w)
			h := w.rt.handle("bob")
			expect.No(t, w.fleet.Delete(t.Context(), alice, "bob"))
			_, err := w.fleet.Agent(t.Context(), home, "bob")
			refused(t, err, core.NotFound, "value", "bob")
			expect.True(t, h.is(func() bool { return h.closed }), "not swept")
			tasks := expect.Of(w.tasks.List(t.Context(), home, core.Filter{Agent: "bob", Size: 100}))(t)
			for _, tk := range tasks.Items {
				r := w.result(tk.TaskID)
				expect.True(t, r.Status == task.Cancelled, "task %s: %+v", tk.TaskID, r)
			}
			refused(t, w.fleet.Delete(t.Context(), alice, "bob"), core.NotFound, "value", "bob")
			w.consistent()
		})
	}
}

func TestDeleteIsJudged(t *testing.T) {
	w := newWorld(t).run()
	w.create("keeper")
	refused(t, w.fleet.Delete(t.Context(), alice, "keeper"), core.Denied, "reason_code", "kept")
	w.create("bob")
	agent := core.Caller{Tenant: home, Name: "keeper", Kind: core.Agent, Door: core.DoorMCP}
	refused(t, w.fleet.Delete(t.Context(), agent, "bob"), core.Denied, "", "")
	expect.No(t, w.fleet.Delete(t.Context(), alice, "bob"))
	page, err := w.judge.Decisions(t.Context(), home, core.Filter{Agent: "bob"})
	expect.True(t, err == nil && len(page.Items) == 1 && page.Items[0].Gate == judge.GateAgent, "decisions: %+v, %v", page, err)
	w.awaitStatus("keeper", fleet.Idle)
}

func TestAnAgentIsPausedAtOnceWhenNoEngineRuns(t *testing.T) {
	w := newWorld(t)
	expect.Of(w.fleet.Create(t.Context(), alice, fleet.Create{Name: "bob", Project: "p", Command: []string{"true"}}))(t)
	a, err := w.fleet.Pause(t.Context(), alice, "bob")
	expect.True(t, err == nil && a.Paused && !a.Pausing, "paused: %+v, %v", a, err)
	a, err = w.fleet.Resume(t.Context(), alice, "bob")
	expect.True(t, err == nil && !a.Paused && !a.Pausing, "resumed: %+v, %v", a, err)
	w.consistent()
}
