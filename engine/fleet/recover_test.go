package fleet_test

import (
	"context"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestCrashWhileWorkingLeavesAnIdleAgent(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(hang)
	w.create("bob")
	tk := w.assign("bob", "x")
	w.awaitStatus("bob", fleet.Busy)
	w.crash()
	w.Open()
	w.rt.does(done)
	w.run()
	w.awaitStatus("bob", fleet.Idle) // it is free meanwhile
	w.sendAgain(tk.TaskID, judge.Answer{Approve: true})
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded, "the task was not sent again: %+v %+v", r, r.Error)
	now, err := w.tasks.Get(t.Context(), home, tk.TaskID)
	expect.True(t, err == nil && now.Attempt == 0 && !now.Sent, "%+v %v", now, err)
	a := w.awaitStatus("bob", fleet.Idle)
	expect.True(t, a.TaskID == "", "recovered: %+v", a)
	w.consistent()
}

// TestWhatAnAgentMayHaveDoneIsNotSentAgainUnasked, however often engines die, and
// whatever would let it pass: a no ends the task, and nobody hears of it again.
func TestWhatAnAgentMayHaveDoneIsNotSentAgainUnasked(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(hang)
	w.create("bob")
	tk := w.assign("bob", "x")
	w.awaitStatus("bob", fleet.Busy)
	sent := 0
	var first judge.Approval
	for i := range 3 {
		w.crash()
		w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
			sent++ // one agent, one prompt at a time
			return done(ctx, h, p)
		})
		w.Open()
		w.run()
		w.awaitStatus("bob", fleet.Idle)
		ap := w.approval()
		if i == 0 {
			first = ap
		}
		expect.True(t, ap.ApprovalID == first.ApprovalID && ap.TaskID == tk.TaskID && ap.ReasonCode == swarm.ReasonSent && ap.Gate == judge.GateStart,
			"%+v, want that of before", ap)
	}
	other := w.assign("bob", "another") // it is not held up
	r := w.result(other.TaskID)
	expect.True(t, r.Status == task.Succeeded && sent == 1, "%+v, sent %d times", r, sent)
	w.sendAgain(tk.TaskID, judge.Answer{Reason: "it did it"})
	r = w.result(tk.TaskID)
	expect.True(t, r.Status == task.Blocked && sent == 1, "%s %+v, sent %d times", r.Status, r.Error, sent)
	w.consistent()
}

// TestWhatAnAgentDiedUnderIsNotSentAgainUnasked: an effect of it may have happened. What it
// was not told is sent unasked, and costs no attempt.
func TestWhatAnAgentDiedUnderIsNotSentAgainUnasked(t *testing.T) {
	w := newWorld(t).run()
	sent, refused := 0, 0
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		if p.Message == "y" {
			if refused++; refused <= 3 {
				out := killed
				out.Unsent = true
				return out, nil
			}
		} else if sent++; sent == 1 {
			return killed, nil
		}
		return done(ctx, h, p)
	})
	w.create("bob")
	tk := w.assign("bob", "x")
	ap := w.approval()
	expect.True(t, ap.TaskID == tk.TaskID && ap.ReasonCode == swarm.ReasonSent && ap.DeadlineAt.IsZero() && sent == 1, "%+v, sent %d times", ap, sent)
	w.awaitStatus("bob", fleet.Idle)
	other := w.assign("bob", "y")
	r := w.result(other.TaskID)
	now := expect.Of(w.tasks.Get(t.Context(), home, other.TaskID))(t)
	expect.True(t, r.Status == task.Succeeded && now.Attempt == 0 && refused == 4, "%+v, %+v", r, now)
	w.sendAgain(tk.TaskID, judge.Answer{Approve: true})
	r = w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded && sent == 2, "%+v, sent %d times", r, sent)
	w.consistent()
}

// TestWhatNoAgentHasHeardOfIsSentUnasked: its agent had another task when the engine
// died.
func TestWhatNoAgentHasHeardOfIsSentUnasked(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(hang)
	w.create("bob")
	held := w.assign("bob", "x")
	w.awaitStatus("bob", fleet.Busy)
	tk := w.waiting()
	w.crash()
	w.Open()
	w.rt.does(done)
	w.run()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	now, err := w.tasks.Get(t.Context(), home, tk.TaskID)
	expect.True(t, err == nil && !now.Sent, "%+v, %v", now, err)
	expect.Of(w.swarm.Sessions.Start(t.Context(), alice, tk.SessionID))(t)
	expect.Of(w.tasks.Wait(ctx, home, tk.TaskID, ""))(t)
	w.sendAgain(held.TaskID, judge.Answer{Approve: true})
	w.result(held.TaskID)
}

func TestAnAgentWorksWhoseEngineRunsElsewhere(t *testing.T) {
	w, _ := asking(t, write)
	w.assign("bob", "x")
	ap := w.approval()
	w.crash()
	asked := 0
	w.elsewhere = func(tenant string) bool {
		asked++
		return tenant == home
	}
	w.Open() // as one who only reads
	a := w.agent("bob")
	expect.True(t, a.State() == "waiting for you" && a.Waiting == ap.ApprovalID && a.TaskID != "", "its engine is elsewhere: %+v", a)
	asked = 0
	live := w.fleet.Live(home)
	expect.True(t, len(live) == 1 && live[0].State() == "waiting for you" && asked == 1, "%+v, asked %d times", live, asked)
}

func TestWithoutAnEngineNoAgentWorks(t *testing.T) {
	w, _ := asking(t, write)
	task := w.assign("bob", "x")
	ap := w.approval()
	w.Await("that it shows it", func() bool {
		a := w.agent("bob")
		return a.State() == "waiting for you" && a.Waiting == ap.ApprovalID
	})
	w.crash()
	w.Open()
	a := w.agent("bob")
	expect.True(t, a.State() == "offline" && a.Status == fleet.Offline && a.Waiting == "" && a.TaskID == "" && a.PID == 0 && a.Reason != "",
		"its engine is dead: %+v", a)
	expect.Is(t, a.LastTaskID, task.TaskID, "what it had in hand", a)
	page, err := w.fleet.Agents(t.Context(), home, core.Filter{Status: string(fleet.Offline)})
	expect.True(t, err == nil && len(page.Items) == 1, "listed as %+v, %v", page.Items, err)
	w.rt.does(done)
	w.run()
	w.sendAgain(task.TaskID, judge.Answer{Approve: true})
	w.result(task.TaskID)
	a = w.awaitStatus("bob", fleet.Idle)
	expect.True(t, a.State() == "idle", "with an engine: %+v", a)
	old, err := w.judge.Approval(t.Context(), home, ap.ApprovalID)
	expect.True(t, err == nil && old.Status == judge.Voided, "the question: %+v %v", old, err)
	w.consistent()
}

func TestCrashWhileAskingVoidsTheQuestion(t *testing.T) {
	w, _ := asking(t, write)
	task := w.assign("bob", "x")
	ap := w.approval()
	w.crash()
	w.Open()
	// Nobody would act on an answer, so even before Run none is taken.
	_, err := w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true, Reason: "late"})
	expect.True(t, err != nil, "approved a call of a dead run")
	answers := make(chan fleet.ToolAnswer, 1)
	w.rt.does(call(write, answers))
	w.run()
	w.sendAgain(task.TaskID, judge.Answer{Approve: true})
	again := w.approval()
	expect.True(t, again.ApprovalID != ap.ApprovalID && again.TaskID == task.TaskID, "asked again: %+v", again)
	old, _ := w.judge.Approval(t.Context(), home, ap.ApprovalID)
	expect.True(t, old.Status == judge.Voided, "the old question: %+v", old)
	expect.Of(w.judge.Answer(t.Context(), alice, again.ApprovalID, judge.Answer{Approve: true, Reason: "yes"}))(t)
	a := <-answers
	expect.True(t, a.Decision == "approve", "answer: %+v", a)
	w.result(task.TaskID)
	w.consistent()
}

func TestClosingTheEngineHandsTheTaskBack(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(hang)
	w.create("bob")
	tk := w.assign("bob", "x")
	w.awaitStatus("bob", fleet.Busy)
	w.Close()
	w.Open()
	a := w.agent("bob")
	expect.True(t, a.Status != fleet.Busy && a.TaskID == "", "closed in order, yet: %+v", a)
	now, err := w.tasks.Get(t.Context(), home, tk.TaskID)
	expect.True(t, err == nil && now.Status == task.Queued && now.Attempt == 0, "task: %+v, %v", now, err)
	w.consistent()
}

func TestRuntimePanicFailsOneTaskOnly(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		if p.Message == "boom" {
			panic("boom")
		}
		return done(ctx, h, p)
	})
	w.create("bob")
	once := 0
	tk, err := w.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{
		Kind: fleet.KindPrompt, MaxAttempts: &once, Input: core.Raw(`{"agent":"bob","message":"boom"}`),
	})
	expect.No(t, err)
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Failed && r.Error.Message == "the runtime panicked: boom", "%+v %+v", r, r.Error)
	r = w.result(w.assign("bob", "fine").TaskID)
	expect.True(t, r.Status == task.Succeeded, "%+v", r)
}

func FuzzInput(f *testing.F) {
	for _, s := range []string{`{"agent":"bob","message":"x"}`, `{"agent":"b","message":"\u202e","uri":"u"}`, `{`, `{"agent":{},"message":[]}`, `null`} {
		f.Add([]byte(s))
	}
	fl := &fleet.Fleet{}
	f.Fuzz(func(t *testing.T, data []byte) {
		target := fl.Runner().(interface{ Target(core.Raw) string }).Target(data)
		expect.True(t, len(target) <= 20, "target %q", target)
	})
}

// TestAnOrderlyEndIsNoReasonToSendATaskAgain: an agent that was interrupted may have done
// it. One that had not heard of it yet is given it unasked.
func TestAnOrderlyEndIsNoReasonToSendATaskAgain(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(hang)
	w.create("bob")
	held := w.assign("bob", "x")
	w.awaitStatus("bob", fleet.Busy)
	next := w.waiting()
	w.Close()
	w.rt.reset()
	w.Open()
	w.rt.does(done)
	w.run()
	w.awaitStatus("bob", fleet.Idle)
	now, err := w.tasks.Get(t.Context(), home, next.TaskID)
	expect.True(t, err == nil && !now.Sent, "%+v, %v", now, err)
	now, err = w.tasks.Get(t.Context(), home, held.TaskID)
	expect.True(t, err == nil && now.Status == task.Queued && now.Sent && now.Attempt == 0, "%+v, %v", now, err)
	w.sendAgain(held.TaskID, judge.Answer{Approve: true})
	r := w.result(held.TaskID)
	expect.True(t, r.Status == task.Succeeded, "%+v %+v", r, r.Error)
	w.consistent()
}
