package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestAssignedTaskRunsAndFreesTheAgent(t *testing.T) {
	w := newWorld(t).run()
	release := make(chan struct{})
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		return beatUntil(ctx, h, p, release)
	})
	w.create("bob")
	tk := w.assign("bob", "count the files\nin here")
	a := w.awaitStatus("bob", fleet.Busy)
	expect.True(t, a.TaskID == tk.TaskID && a.LastTask == "count the files\nin here" && a.State() == "working", "busy: %+v", a)
	expect.True(t, tk.Agent == "bob" && tk.Title == "count the files" && tk.Kind == fleet.KindPrompt, "task: %+v", tk)
	close(release)
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded && string(r.Output) == `{"ok":true}`, "result: %+v", r)
	a = w.agent("bob")
	expect.True(t, a.Status == fleet.Idle && a.TaskID == "" && a.Usage.Tasks == 1, "the agent is not free when its task is over: %+v", a)
	w.consistent()
}

func TestOnlyAnIdleAgentTakesATask(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(hang)
	for _, name := range []string{"busy", "paused", "stopped", "broken", "next"} {
		w.create(name)
	}
	w.assign("busy", "x")
	w.awaitStatus("busy", fleet.Busy)
	expect.Of(w.fleet.Pause(t.Context(), alice, "paused"))(t)
	expect.Of(w.fleet.Stop(t.Context(), alice, "stopped"))(t)
	w.rt.handle("broken").notify(fleet.Health{Status: fleet.Failed, Reason: "crashed 5 times"})
	w.awaitStatus("broken", fleet.Failed)
	for _, name := range []string{"busy", "paused", "stopped", "broken"} {
		_, err := w.fleet.Assign(t.Context(), alice, name, "y", "")
		refused(t, err, core.Conflict, "error", "AgentBusyError")
	}
	// Two at once: one wins, though neither has started yet.
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			_, err := w.fleet.Assign(t.Context(), alice, "next", "y", "")
			errs <- err
		}()
	}
	won := 0
	for range cap(errs) {
		if err := <-errs; err == nil {
			won++
		} else {
			refused(t, err, core.Conflict, "error", "AgentBusyError")
		}
	}
	expect.True(t, won == 1, "%d of %d assignments were taken", won, cap(errs))
	w.consistent()
}

func TestARejectedResultIsTriedAgainWithTheFeedback(t *testing.T) {
	w := newWorld(t).run()
	unsure, sure := 0.4, 0.95
	asked := make(chan string, 2)
	w.rt.does(func(_ context.Context, _ *handle, p fleet.Prompt) (task.Outcome, error) {
		asked <- p.Message
		out := task.Outcome{Status: task.Succeeded, Output: core.Raw(`{"n":1}`), Confidence: &unsure}
		if len(asked) == 2 {
			out.Confidence = &sure
		}
		return out, nil
	})
	w.create("bob")
	tk := w.assign("bob", "guess")
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded, "result: %+v", r)
	expect.Is(t, <-asked, "guess", "first asked")
	second := <-asked
	expect.True(t, strings.HasPrefix(second, "guess\n\nYour last result was rejected: say what you are sure of"), "then asked %q", second)
}

func TestAssignChecksItsInput(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	for name, c := range map[string]struct{ message, uri, field string }{
		"empty":           {"", "", "message"},
		"white space":     {" \t\n\u00a0", "", "message"},
		"not text":        {"a\xff", "", "message"},
		"too long":        {strings.Repeat("x", core.MaxInput+1), "", "message"},
		"uri with escape": {"x", "file:///\x1b]52;c;aGk=\a", "uri"},
		"long uri":        {"x", strings.Repeat("u", 3000), "uri"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.fleet.Assign(t.Context(), alice, "bob", c.message, c.uri)
			refused(t, err, core.InvalidInput, "field", c.field)
		})
	}
	for _, input := range []string{
		`{"agent":"bob"}`, `{"agent":"bob","message":" "}`, `{"agent":"bob","message":"x","extra":1}`, `{"agent":"b b","message":"x"}`,
		`{"agent":"bob","agent":"bob","message":"x"}`, `{"agent":"bob","message":7}`, `{"message":"x"}`,
	} {
		_, err := w.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: fleet.KindPrompt, Input: core.Raw(input)})
		refused(t, err, core.InvalidInput, "", "")
	}
}

func TestCancelFreesTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t).run()
		w.rt.does(hang)
		w.create("bob")
		_, err := w.fleet.CancelTask(t.Context(), alice, "bob")
		refused(t, err, core.Conflict, "field", "agent")
		tk := w.assign("bob", "x")
		w.awaitStatus("bob", fleet.Busy)
		begin := time.Now()
		a := expect.Of(w.fleet.CancelTask(t.Context(), alice, "bob"))(t)
		took := time.Since(begin)
		expect.True(t, a.Status == fleet.Idle && took <= 5*time.Second, "after %v: %+v", took, a)
		r := w.result(tk.TaskID)
		expect.True(t, r.Status == task.Cancelled && strings.Contains(r.Error.Message, "alice"), "result: %+v", r)
		w.consistent()
	})
}

func TestCancelEndsAnAgentThatIgnoresTheInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t).run()
		w.rt.does(hang)
		w.create("bob")
		h := w.rt.handle("bob")
		h.is(func() bool { h.stubborn = true; return true })
		w.assign("bob", "x")
		w.awaitStatus("bob", fleet.Busy)
		begin := time.Now()
		a := expect.Of(w.fleet.CancelTask(t.Context(), alice, "bob"))(t)
		took := time.Since(begin)
		expect.True(t, a.Status != fleet.Busy && took <= 5500*time.Millisecond, "after %v: %+v", took, a)
	})
}

func TestHistoryIsNewestFirstAndPaged(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		if p.Message == "task 3" {
			_, _ = p.Emit(ctx, fleet.Event{Type: "attention", Text: "which branch?"})
		}
		return done(ctx, h, p)
	})
	w.create("bob")
	empty, err := w.fleet.History(t.Context(), home, "bob", core.Filter{})
	expect.Must(t, err == nil && len(empty.Items) == 0 && empty.Info.Total == 0 && empty.Info.PageSize == 20, "empty history: %+v, %v", empty, err)
	for i := range 5 {
		tk := expect.Of(w.fleet.Assign(t.Context(), alice, "bob", fmt.Sprintf("task %d", i), fmt.Sprintf("file:///%d", i)))(t)
		w.result(tk.TaskID)
	}
	page := expect.Of(w.fleet.History(t.Context(), home, "bob", core.Filter{Size: 3}))(t)
	expect.Must(t, page.Info.Total == 5 && page.Info.Next && !page.Info.Previous && len(page.Items) == 3, "page: %+v", page)
	for i, item := range page.Items {
		n := 4 - i
		expect.True(t, item.Message == fmt.Sprintf("task %d", n) && item.URI == fmt.Sprintf("file:///%d", n) && item.Status == task.Succeeded,
			"item %d: %+v", i, item)
		expect.Is(t, item.NeedsUserAttention, n == 3, "task", n, "needs attention")
	}
	past, err := w.fleet.History(t.Context(), home, "bob", core.Filter{Page: 9})
	expect.True(t, err == nil && len(past.Items) == 0 && past.Info.Total == 5, "past the end: %+v, %v", past, err)
	for _, f := range []core.Filter{{Size: 101}, {Page: -1}} {
		_, err := w.fleet.History(t.Context(), home, "bob", f)
		refused(t, err, core.InvalidInput, "", "")
	}
}

func TestFirstTaskIsGivenOnCreate(t *testing.T) {
	w := newWorld(t).run()
	ran := make(chan string, 1)
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		ran <- p.Message
		return done(ctx, h, p)
	})
	a, err := w.fleet.Create(t.Context(), alice, fleet.Create{Name: "bob", Project: "P", Task: "look around", Command: []string{"x"}})
	expect.Must(t, err == nil && a.LastTask == "look around", "%+v, %v", a, err)
	expect.Is(t, <-ran, "look around", "was told")
	w.awaitStatus("bob", fleet.Idle)
}

func TestRefusedFirstTaskLeavesTheAgent(t *testing.T) {
	w := newWorld(t).run()
	over := w.session()
	expect.Of(w.swarm.Sessions.Stop(t.Context(), alice, over, "it is over"))(t)
	a, err := w.fleet.Create(t.Context(), alice, fleet.Create{Name: "bob", Project: "P", Task: "x", Session: over, Command: []string{"x"}})
	refused(t, err, core.Conflict, "", "")
	expect.True(t, a.Name == "bob" && strings.Contains(err.Error(), "was created"), "%+v, %v", a, err)
	w.awaitStatus("bob", fleet.Idle)
	w.consistent()
}

func TestAnAgentWorksInASessionOfItsOwnTenant(t *testing.T) {
	w := newWorld(t)
	expect.Of(w.swarm.CreateTenant(t.Context(), alice, "t_other"))(t)
	there := alice
	there.Tenant = "t_other"
	foreign := expect.Of(w.swarm.Sessions.Create(t.Context(), there, ""))(t)
	make := fleet.Create{Name: "bob", Project: "P", Session: foreign.SessionID, Command: []string{"x"}}
	_, err := w.fleet.Create(t.Context(), alice, make)
	refused(t, err, core.Denied, "", "")
	expect.Is(t, len(w.events("tenant.violation")), 1, "violations in the log")
	make.Session = "nosuch"
	_, err = w.fleet.Create(t.Context(), alice, make)
	refused(t, err, core.NotFound, "", "")
	make.Session = w.session()
	a, err := w.fleet.Create(t.Context(), alice, make)
	expect.Must(t, err == nil && a.SessionID == make.Session, "%+v, %v", a, err)
	make.Session = foreign.SessionID
	_, err = w.fleet.Update(t.Context(), alice, "bob", make)
	refused(t, err, core.Denied, "", "")
	expect.True(t, w.agent("bob").SessionID != foreign.SessionID, "the agent moved into another tenant's session")
}

func TestTasksOfOneAgentRunOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t).run()
		running := make(chan struct{}, 1)
		w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
			select {
			case running <- struct{}{}:
			default:
				return task.Outcome{}, fmt.Errorf("two prompts at once")
			}
			defer func() { <-running }()
			time.Sleep(5 * time.Millisecond)
			return done(ctx, h, p)
		})
		w.create("bob")
		var ids []string
		for i := range 12 {
			d := swarm.Dispatch{Kind: fleet.KindPrompt, Input: core.MustEncode(map[string]string{"agent": "bob", "message": fmt.Sprint(i)})}
			if i%3 > 0 { // two sessions beside the tasks without one
				s := expect.Of(w.swarm.Sessions.Create(t.Context(), alice, ""))(t)
				expect.Of(w.swarm.Sessions.Start(t.Context(), alice, s.SessionID))(t)
				d.Session = s.SessionID
			}
			tk := expect.Of(w.swarm.Dispatch(t.Context(), alice, d))(t)
			ids = append(ids, tk.TaskID)
		}
		for _, id := range ids {
			r := w.result(id)
			expect.True(t, r.Status == task.Succeeded, "%s: %+v %+v", id, r, r.Error)
		}
		w.consistent()
	})
}

func TestCancelIsHeardWheneverItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t).run()
		w.rt.does(hang)
		w.create("bob")
		for i := range 30 {
			tk := w.assign("bob", "x")
			time.Sleep(time.Duration(i*i) * 10 * time.Microsecond)
			expect.Of(w.swarm.Cancel(t.Context(), alice, tk.TaskID, "enough"))(t)
			r := w.result(tk.TaskID)
			expect.Must(t, r.Status == task.Cancelled, "result: %+v", r)
			w.Await("bob is free", func() bool { ok, _ := w.fleet.Runner().Slot(home, "bob"); return ok })
		}
		w.consistent()
	})
}

func TestAnAgentThatIsStartingIsWaitedForOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		expect.Of(w.fleet.Create(t.Context(), alice, fleet.Create{Name: "bob", Project: "p", Command: []string{"true"}}))(t)
		w.run() // its agents start at some moment from here on
		tk, err := w.fleet.AssignWhenReady(t.Context(), alice, "bob", "x", "", 10*time.Second)
		expect.No(t, err, "right after the engine's start")
		r := w.result(tk.TaskID)
		expect.True(t, r.Status == task.Succeeded, "result: %+v", r)
		w.rt.handle("bob").notify(fleet.Health{Status: fleet.Starting, Restarts: 1})
		w.awaitStatus("bob", fleet.Starting)
		begun := time.Now()
		_, err = w.fleet.AssignWhenReady(t.Context(), alice, "bob", "y", "", 50*time.Millisecond)
		refused(t, err, core.Conflict, "error", "AgentBusyError")
		waited := time.Since(begun)
		expect.True(t, waited >= 50*time.Millisecond, "gave up after %s", waited)
		expect.True(t, expect.Fault(w.fleet.Assign(t.Context(), alice, "bob", "y", "")) != nil, "an agent that is starting took a task")
		expect.Of(w.fleet.Stop(t.Context(), alice, "bob"))(t)
		_, err = w.fleet.AssignWhenReady(t.Context(), alice, "bob", "y", "", time.Hour)
		refused(t, err, core.Conflict, "error", "AgentBusyError")
		w.consistent()
	})
}

func TestBeforeAnEngineRunsATaskWaitsForItsAgentToStart(t *testing.T) {
	w := newWorld(t)
	expect.Of(w.fleet.Create(t.Context(), alice, fleet.Create{Name: "bob", Project: "p", Command: []string{"true"}}))(t)
	tk, err := w.fleet.Assign(t.Context(), alice, "bob", "x", "")
	expect.No(t, err, "the agent was made, nothing runs")
	expect.Is(t, tk.Status, task.Queued, "task", tk)
	w.Close()
	w.Open()
	w.run()
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded, "result: %+v", r)
	w.consistent()
}
