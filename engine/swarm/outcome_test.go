package swarm_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestAParkedResultTakesNoSecondOne(t *testing.T) {
	r := newRig(t)
	tk := r.dispatch(`{}`)
	sure := 0.8
	r.complete(r.claim(), task.Outcome{Status: task.Succeeded, Output: core.Raw(`{"first":1}`), Confidence: &sure})
	_, err := r.swarm.Complete(t.Context(), alice, tk.TaskID, 0, ok(`{"second":1}`))
	expect.True(t, hasCode(err, core.Conflict), "a second result, under no lease: %v, want CONFLICT", err)
	r.Close()
	r.Open() // it outlives a restart
	got := r.task(tk.TaskID)
	r.answer(got.ApprovalID, judge.Answer{Approve: true})
	res, err := r.tasks.Result(t.Context(), acme, tk.TaskID)
	expect.True(t, err == nil && string(res.Output) == `{"first":1}` && *res.Confidence == sure, "result %+v %v", res, err)
	r.whole()
}

func TestARejectedParkedResultIsTriedAgainWithTheReason(t *testing.T) {
	r := newRig(t)
	tk := r.dispatch(`{}`)
	sure := 0.8
	r.complete(r.claim(), task.Outcome{Status: task.Succeeded, Confidence: &sure})
	r.answer(r.task(tk.TaskID).ApprovalID, judge.Answer{Reason: "name your sources"})
	got := r.task(tk.TaskID)
	expect.True(t, got.Status == task.Queued && got.Attempt == 1 && strings.Contains(got.Feedback, "name your sources"), "%+v", got)
	r.whole()
}

func TestHostileOutcomesAreRefusedOrBounded(t *testing.T) {
	r := newRig(t)
	r.dispatch(`{}`)
	tk := r.claim()
	bad := &task.Error{Code: "x", Message: "m"}
	for name, out := range map[string]task.Outcome{
		"a status of its own":  {Status: "done", Error: bad},
		"broken details":       {Status: task.Failed, Error: &task.Error{Code: "x", Details: core.Raw(`{"a":`)}},
		"huge details":         {Status: task.Failed, Error: &task.Error{Code: "x", Details: core.Raw(`{"a":"` + strings.Repeat("x", 100<<10) + `"}`)}},
		"denials that are not": {Status: task.Succeeded, Denials: []string{"\xff\x1b[31m"}},
		"many denials":         {Status: task.Succeeded, Denials: make([]string, 5000)},
	} {
		_, err := r.swarm.Complete(t.Context(), alice, tk.TaskID, tk.Lease, out)
		expect.True(t, hasCode(err, core.InvalidInput), "%s: %v, want INVALID_INPUT", name, err)
	}
	long := &task.Error{Code: strings.Repeat("c", 100), Message: "\xff\xfe" + strings.Repeat("ä", 5000)}
	res := r.complete(tk, task.Outcome{Status: task.Failed, Error: long, Text: "\xff"})
	e := res.Error
	expect.True(t, len(e.Code) == 64 && len(e.Message) <= 4096 && utf8.ValidString(e.Message), "code of %d bytes, message of %d", len(e.Code), len(e.Message))
	r.whole()
}

func TestAnOutputWithNumbersThatAFloatCanNotHoldIsStillJudged(t *testing.T) {
	r := newRig(t)
	r.dispatch(`{}`)
	res := r.complete(r.claim(), ok(`{"id":90071992547409931}`))
	expect.True(t, res.Status == task.Succeeded, "%+v", res)
	r.whole()
}

func TestABadOutcomeFailsItsTaskAndNotTheEngine(t *testing.T) {
	r := newRig(t)
	r.run()
	a, b := r.dispatch(`{"a":1}`), r.dispatch(`{"b":1}`)
	for range 2 {
		w := <-r.runner.started
		if w.job.Task.TaskID == a.TaskID {
			w.end(task.Outcome{Status: task.Failed, Error: &task.Error{Code: "x", Message: "\xff", Details: core.Raw(`nonsense`)}})
		} else {
			w.end(ok(`{}`))
		}
	}
	got := r.status(a.TaskID, task.Failed)
	expect.True(t, got.ErrorCode == "bad_outcome", "%+v", got)
	r.status(b.TaskID, task.Succeeded)
	r.whole()
}

func TestTextThatIsNotUTF8IsMadeSo(t *testing.T) {
	r := newRig(t)
	r.session("day")
	tk := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.Intent = "in\xfftent" })
	_, err := r.swarm.Cancel(t.Context(), alice, tk.TaskID, "rea\xffson")
	expect.No(t, err, "cancel")
	_, err = r.swarm.Sessions.Pause(t.Context(), alice, "day", "rea\xffson")
	expect.No(t, err, "pause")
	_, err = r.swarm.Sessions.Stop(t.Context(), alice, "day", "rea\xffson")
	expect.No(t, err, "stop")
	_, err = r.swarm.EStops.Press(t.Context(), alice, "rea\xffson")
	expect.No(t, err, "estop")
	line := task.LogLine{Message: "a\xffb", Source: strings.Repeat("\xff", 100), TaskID: core.NewID("tk", "t_other", 3), Level: "LOUD"}
	expect.No(t, r.tasks.AppendLog(t.Context(), alice, tk.TaskID, []task.LogLine{line, {Message: "x", TaskID: tk.TaskID}}))
	lines, last, err := r.tasks.Log(t.Context(), acme, tk.TaskID, 0, 5)
	expect.True(t, err == nil && last == 2 && lines[0].TaskID == "" && lines[0].Level == "INFO" && lines[1].TraceID == tk.TraceID,
		"%+v %d %v", lines, last, err)
	r.whole()
}

func TestEditingMayNotChangeTheAgent(t *testing.T) {
	r := newRig(t)
	tk, err := r.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "agent.prompt", Input: core.Raw(`{"agent":"ann","ask":1}`)})
	expect.No(t, err)
	edit := judge.Answer{Approve: true, Edit: core.Raw(`{"agent":"bob","ask":1}`)}
	_, err = r.judge.Answer(t.Context(), alice, tk.ApprovalID, edit)
	expect.True(t, hasCode(err, core.InvalidInput) && strings.Contains(err.Error(), "agent"), "%v, want INVALID_INPUT naming the agent", err)
	edit.Edit = core.Raw(`{"agent":"ann","ask":2}`)
	r.answer(tk.ApprovalID, edit)
	r.run()
	w := <-r.runner.started
	expect.Is(t, string(w.job.Task.Input), `{"agent":"ann","ask":2}`, "ran")
	w.end(ok(`{}`))
	r.status(tk.TaskID, task.Succeeded)
	r.whole()
}

func TestForeignIdsAreRefusedAndAuditedEverywhere(t *testing.T) {
	r := newRig(t)
	ctx, s, b := t.Context(), r.swarm, r.tasks
	tk, ses := core.NewID("tk", "t_other", 1), core.NewID("se", "t_other", 1)
	calls := map[string]func() error{
		"task":     func() error { _, err := b.Get(ctx, acme, tk); return err },
		"result":   func() error { _, err := b.Result(ctx, acme, tk); return err },
		"tree":     func() error { _, err := b.Tree(ctx, acme, tk); return err },
		"why":      func() error { _, err := s.Why(ctx, acme, tk); return err },
		"wait":     func() error { _, err := b.Wait(ctx, acme, tk, ""); return err },
		"log":      func() error { _, _, err := b.Log(ctx, acme, tk, 0, 1); return err },
		"append":   func() error { return b.AppendLog(ctx, alice, tk, []task.LogLine{{Message: "x"}}) },
		"retry":    func() error { _, err := s.Retry(ctx, alice, tk); return err },
		"undo":     func() error { _, err := s.Undo(ctx, alice, tk); return err },
		"cancel":   func() error { _, err := s.Cancel(ctx, alice, tk, ""); return err },
		"pause":    func() error { _, err := s.PauseTask(ctx, alice, tk, ""); return err },
		"resume":   func() error { _, err := s.ResumeTask(ctx, alice, tk); return err },
		"complete": func() error { _, err := s.Complete(ctx, alice, tk, 1, ok(`{}`)); return err },
		"use":      func() error { return s.Budgets.Use(ctx, alice, budget.Spender{}, tk, "", 1, 0) },
		"session":  func() error { _, err := s.Sessions.Get(ctx, acme, ses); return err },
		"start":    func() error { _, err := s.Sessions.Start(ctx, alice, ses); return err },
		"stop":     func() error { _, err := s.Sessions.Stop(ctx, alice, ses, ""); return err },
		"budget": func() error {
			_, err := s.Budgets.Set(ctx, alice, budget.Budget{Subject: "session:" + ses, Tasks: 1})
			return err
		},
		"in session": func() error {
			_, err := s.Dispatch(ctx, alice, swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Session: ses})
			return err
		},
		"after": func() error {
			_, err := s.Dispatch(ctx, alice, swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), After: []string{tk}})
			return err
		},
		"list by it":    func() error { _, err := b.List(ctx, acme, core.Filter{Session: ses}); return err },
		"results of it": func() error { _, err := b.Results(ctx, acme, core.Filter{Task: tk}); return err },
	}
	for name, call := range calls {
		err := call()
		expect.True(t, hasCode(err, core.Denied), "%s: %v, want DENIED", name, err)
	}
	expect.Is(t, expect.Of(r.Ledger.List(ctx, acme, core.Filter{Kind: "tenant.violation"}))(t).Info.Total, len(calls), "violations audited")
	for name, call := range map[string]func() error{
		"status":      func() error { _, err := b.List(ctx, acme, core.Filter{Status: "fail"}); return err },
		"state":       func() error { _, err := s.Sessions.List(ctx, acme, core.Filter{Status: "asleep"}); return err },
		"wait":        func() error { _, err := b.Wait(ctx, acme, r.dispatch(`{}`).TaskID, "done"); return err },
		"stream":      func() error { _, _, err := b.Log(ctx, acme, "agent:\x00", 0, 1); return err },
		"long stream": func() error { _, _, err := b.Log(ctx, acme, strings.Repeat("x", 1<<20), 0, 1); return err },
		"agent": func() error {
			_, err := s.Dispatch(ctx, alice, swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Agent: "ann"})
			return err
		},
		"agent name": func() error {
			_, err := s.Dispatch(ctx, alice, swarm.Dispatch{Kind: "agent.prompt", Input: core.Raw(`{"agent":"a\u0000b"}`)})
			return err
		},
		"subject": func() error {
			_, err := s.Budgets.Set(ctx, alice, budget.Budget{Subject: "agent:\x00", Tasks: 1})
			return err
		},
	} {
		err := call()
		expect.True(t, hasCode(err, core.InvalidInput), "%s: %v, want INVALID_INPUT", name, err)
	}
	r.whole()
}
