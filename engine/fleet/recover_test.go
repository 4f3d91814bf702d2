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
	if r := w.result(tk.TaskID); r.Status != task.Succeeded {
		t.Errorf("the task was not sent again: %+v %+v", r, r.Error)
	}
	if now, err := w.tasks.Get(t.Context(), home, tk.TaskID); err != nil || now.Attempt != 0 || now.Sent {
		t.Errorf("%+v %v", now, err)
	}
	if a := w.awaitStatus("bob", fleet.Idle); a.TaskID != "" {
		t.Errorf("recovered: %+v", a)
	}
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
		if ap.ApprovalID != first.ApprovalID || ap.TaskID != tk.TaskID || ap.ReasonCode != swarm.ReasonSent || ap.Gate != judge.GateStart {
			t.Errorf("%+v, want that of before", ap)
		}
	}
	other := w.assign("bob", "another") // it is not held up
	if r := w.result(other.TaskID); r.Status != task.Succeeded || sent != 1 {
		t.Errorf("%+v, sent %d times", r, sent)
	}
	w.sendAgain(tk.TaskID, judge.Answer{Reason: "it did it"})
	if r := w.result(tk.TaskID); r.Status != task.Blocked || sent != 1 {
		t.Errorf("%s %+v, sent %d times", r.Status, r.Error, sent)
	}
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
	if now, err := w.tasks.Get(t.Context(), home, tk.TaskID); err != nil || now.Sent {
		t.Errorf("%+v, %v", now, err)
	}
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
	if a := w.agent("bob"); a.State() != "waiting for you" || a.Waiting != ap.ApprovalID || a.TaskID == "" {
		t.Errorf("its engine is elsewhere: %+v", a)
	}
	asked = 0
	if live := w.fleet.Live(home); len(live) != 1 || live[0].State() != "waiting for you" || asked != 1 {
		t.Errorf("%+v, asked %d times", live, asked)
	}
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
	if a.State() != "offline" || a.Status != fleet.Offline || a.Waiting != "" || a.TaskID != "" || a.PID != 0 || a.Reason == "" {
		t.Errorf("its engine is dead: %+v", a)
	}
	expect.Is(t, a.LastTaskID, task.TaskID, "what it had in hand", a)
	page, err := w.fleet.Agents(t.Context(), home, core.Filter{Status: string(fleet.Offline)})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("listed as %+v, %v", page.Items, err)
	}
	w.rt.does(done)
	w.run()
	w.sendAgain(task.TaskID, judge.Answer{Approve: true})
	w.result(task.TaskID)
	if a := w.awaitStatus("bob", fleet.Idle); a.State() != "idle" {
		t.Errorf("with an engine: %+v", a)
	}
	if old, err := w.judge.Approval(t.Context(), home, ap.ApprovalID); err != nil || old.Status != judge.Voided {
		t.Errorf("the question: %+v %v", old, err)
	}
	w.consistent()
}

func TestCrashWhileAskingVoidsTheQuestion(t *testing.T) {
	w, _ := asking(t, write)
	task := w.assign("bob", "x")
	ap := w.approval()
	w.crash()
	w.Open()
	// Nobody would act on an answer, so even before Run none is taken.
	if _, err := w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true, Reason: "late"}); err == nil {
		t.Error("approved a call of a dead run")
	}
	answers := make(chan fleet.ToolAnswer, 1)
	w.rt.does(call(write, answers))
	w.run()
	w.sendAgain(task.TaskID, judge.Answer{Approve: true})
	again := w.approval()
	if again.ApprovalID == ap.ApprovalID || again.TaskID != task.TaskID {
		t.Errorf("asked again: %+v", again)
	}
	if old, _ := w.judge.Approval(t.Context(), home, ap.ApprovalID); old.Status != judge.Voided {
		t.Errorf("the old question: %+v", old)
	}
	expect.Of(w.judge.Answer(t.Context(), alice, again.ApprovalID, judge.Answer{Approve: true, Reason: "yes"}))(t)
	if a := <-answers; a.Decision != "approve" {
		t.Errorf("answer: %+v", a)
	}
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
	if a := w.agent("bob"); a.Status == fleet.Busy || a.TaskID != "" {
		t.Errorf("closed in order, yet: %+v", a)
	}
	now, err := w.tasks.Get(t.Context(), home, tk.TaskID)
	if err != nil || now.Status != task.Queued || now.Attempt != 0 {
		t.Errorf("task: %+v, %v", now, err)
	}
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
	if r := w.result(tk.TaskID); r.Status != task.Failed || r.Error.Message != "the runtime panicked: boom" {
		t.Errorf("%+v %+v", r, r.Error)
	}
	if r := w.result(w.assign("bob", "fine").TaskID); r.Status != task.Succeeded {
		t.Errorf("%+v", r)
	}
}

func FuzzInput(f *testing.F) {
	for _, s := range []string{`{"agent":"bob","message":"x"}`, `{"agent":"b","message":"\u202e","uri":"u"}`, `{`, `{"agent":{},"message":[]}`, `null`} {
		f.Add([]byte(s))
	}
	fl := &fleet.Fleet{}
	f.Fuzz(func(t *testing.T, data []byte) {
		target := fl.Runner().(interface{ Target(core.Raw) string }).Target(data)
		if len(target) > 20 {
			t.Errorf("target %q", target)
		}
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
	if now, err := w.tasks.Get(t.Context(), home, next.TaskID); err != nil || now.Sent {
		t.Errorf("%+v, %v", now, err)
	}
	if now, err := w.tasks.Get(t.Context(), home, held.TaskID); err != nil || now.Status != task.Queued || !now.Sent || now.Attempt != 0 {
		t.Errorf("%+v, %v", now, err)
	}
	w.sendAgain(held.TaskID, judge.Answer{Approve: true})
	if r := w.result(held.TaskID); r.Status != task.Succeeded {
		t.Errorf("%+v %+v", r, r.Error)
	}
	w.consistent()
}
