package swarm_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
)

func TestAParkedResultTakesNoSecondOne(t *testing.T) {
	r := newRig(t)
	task := r.dispatch(`{}`)
	sure := 0.8
	r.complete(r.claim(), swarm.Outcome{Status: swarm.Succeeded, Output: core.Raw(`{"first":1}`), Confidence: &sure})
	if _, err := r.swarm.Complete(t.Context(), alice, task.TaskID, 0, ok(`{"second":1}`)); !hasCode(err, core.Conflict) {
		t.Errorf("a second result, under no lease: %v, want CONFLICT", err)
	}
	r.close()
	r.open() // it outlives a restart
	got := r.task(task.TaskID)
	r.answer(got.ApprovalID, judge.Answer{Approve: true})
	if res, err := r.swarm.Result(t.Context(), acme, task.TaskID); err != nil || string(res.Output) != `{"first":1}` || *res.Confidence != sure {
		t.Errorf("result %+v %v", res, err)
	}
	r.whole()
}

func TestARejectedParkedResultIsTriedAgainWithTheReason(t *testing.T) {
	r := newRig(t)
	task := r.dispatch(`{}`)
	sure := 0.8
	r.complete(r.claim(), swarm.Outcome{Status: swarm.Succeeded, Confidence: &sure})
	r.answer(r.task(task.TaskID).ApprovalID, judge.Answer{Reason: "name your sources"})
	got := r.task(task.TaskID)
	if got.Status != swarm.Queued || got.Attempt != 1 || !strings.Contains(got.Feedback, "name your sources") {
		t.Errorf("%+v", got)
	}
	r.whole()
}

func TestHostileOutcomesAreRefusedOrBounded(t *testing.T) {
	r := newRig(t)
	r.dispatch(`{}`)
	task := r.claim()
	bad := &swarm.TaskError{Code: "x", Message: "m"}
	for name, out := range map[string]swarm.Outcome{
		"a status of its own":  {Status: "done", Error: bad},
		"broken details":       {Status: swarm.Failed, Error: &swarm.TaskError{Code: "x", Details: core.Raw(`{"a":`)}},
		"huge details":         {Status: swarm.Failed, Error: &swarm.TaskError{Code: "x", Details: core.Raw(`{"a":"` + strings.Repeat("x", 100<<10) + `"}`)}},
		"denials that are not": {Status: swarm.Succeeded, Denials: []string{"\xff\x1b[31m"}},
		"many denials":         {Status: swarm.Succeeded, Denials: make([]string, 5000)},
	} {
		if _, err := r.swarm.Complete(t.Context(), alice, task.TaskID, task.Lease, out); !hasCode(err, core.InvalidInput) {
			t.Errorf("%s: %v, want INVALID_INPUT", name, err)
		}
	}
	long := &swarm.TaskError{Code: strings.Repeat("c", 100), Message: "\xff\xfe" + strings.Repeat("ä", 5000)}
	res := r.complete(task, swarm.Outcome{Status: swarm.Failed, Error: long, Text: "\xff"})
	if e := res.Error; len(e.Code) != 64 || len(e.Message) > 4096 || !utf8.ValidString(e.Message) {
		t.Errorf("code of %d bytes, message of %d", len(e.Code), len(e.Message))
	}
	r.whole()
}

func TestAnOutputWithNumbersThatAFloatCanNotHoldIsStillJudged(t *testing.T) {
	r := newRig(t)
	r.dispatch(`{}`)
	if res := r.complete(r.claim(), ok(`{"id":90071992547409931}`)); res.Status != swarm.Succeeded {
		t.Errorf("%+v", res)
	}
	r.whole()
}

func TestABadOutcomeFailsItsTaskAndNotTheEngine(t *testing.T) {
	r := newRig(t)
	r.run()
	a, b := r.dispatch(`{"a":1}`), r.dispatch(`{"b":1}`)
	for range 2 {
		w := <-r.runner.started
		if w.job.Task.TaskID == a.TaskID {
			w.end(swarm.Outcome{Status: swarm.Failed, Error: &swarm.TaskError{Code: "x", Message: "\xff", Details: core.Raw(`nonsense`)}})
		} else {
			w.end(ok(`{}`))
		}
	}
	if got := r.status(a.TaskID, swarm.Failed); got.ErrorCode != "bad_outcome" {
		t.Errorf("%+v", got)
	}
	r.status(b.TaskID, swarm.Succeeded)
	r.whole()
}

func TestTextThatIsNotUTF8IsMadeSo(t *testing.T) {
	r := newRig(t)
	r.session("day")
	task := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.Intent = "in\xfftent" })
	if _, err := r.swarm.Cancel(t.Context(), alice, task.TaskID, "rea\xffson"); err != nil {
		t.Errorf("cancel: %v", err)
	}
	if _, err := r.swarm.PauseSession(t.Context(), alice, "day", "rea\xffson"); err != nil {
		t.Errorf("pause: %v", err)
	}
	if _, err := r.swarm.StopSession(t.Context(), alice, "day", "rea\xffson"); err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, err := r.swarm.StopAll(t.Context(), alice, "rea\xffson"); err != nil {
		t.Errorf("estop: %v", err)
	}
	line := swarm.LogLine{Message: "a\xffb", Source: strings.Repeat("\xff", 100), TaskID: core.NewID("tk", "t_other", 3), Level: "LOUD"}
	if err := r.swarm.AppendLog(t.Context(), alice, task.TaskID, []swarm.LogLine{line, {Message: "x", TaskID: task.TaskID}}); err != nil {
		t.Fatal(err)
	}
	lines, last, err := r.swarm.Log(t.Context(), acme, task.TaskID, 0, 5)
	if err != nil || last != 2 || lines[0].TaskID != "" || lines[0].Level != "INFO" || lines[1].TraceID != task.TraceID {
		t.Errorf("%+v %d %v", lines, last, err)
	}
	r.whole()
}

func TestEditingMayNotChangeTheAgent(t *testing.T) {
	r := newRig(t)
	task, err := r.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "agent.prompt", Input: core.Raw(`{"agent":"ann","ask":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	edit := judge.Answer{Approve: true, Edit: core.Raw(`{"agent":"bob","ask":1}`)}
	if _, err := r.judge.Answer(t.Context(), alice, task.ApprovalID, edit); !hasCode(err, core.InvalidInput) || !strings.Contains(err.Error(), "agent") {
		t.Errorf("%v, want INVALID_INPUT naming the agent", err)
	}
	edit.Edit = core.Raw(`{"agent":"ann","ask":2}`)
	r.answer(task.ApprovalID, edit)
	r.run()
	w := <-r.runner.started
	if string(w.job.Task.Input) != `{"agent":"ann","ask":2}` {
		t.Errorf("ran %s", w.job.Task.Input)
	}
	w.end(ok(`{}`))
	r.status(task.TaskID, swarm.Succeeded)
	r.whole()
}

func TestForeignIdsAreRefusedAndAuditedEverywhere(t *testing.T) {
	r := newRig(t)
	ctx, s := t.Context(), r.swarm
	task, ses := core.NewID("tk", "t_other", 1), core.NewID("se", "t_other", 1)
	calls := map[string]func() error{
		"task":     func() error { _, err := s.Task(ctx, acme, task); return err },
		"result":   func() error { _, err := s.Result(ctx, acme, task); return err },
		"tree":     func() error { _, err := s.Tree(ctx, acme, task); return err },
		"why":      func() error { _, err := s.Why(ctx, acme, task); return err },
		"wait":     func() error { _, err := s.Wait(ctx, acme, task, ""); return err },
		"log":      func() error { _, _, err := s.Log(ctx, acme, task, 0, 1); return err },
		"append":   func() error { return s.AppendLog(ctx, alice, task, []swarm.LogLine{{Message: "x"}}) },
		"retry":    func() error { _, err := s.Retry(ctx, alice, task); return err },
		"undo":     func() error { _, err := s.Undo(ctx, alice, task); return err },
		"cancel":   func() error { _, err := s.Cancel(ctx, alice, task, ""); return err },
		"pause":    func() error { _, err := s.PauseTask(ctx, alice, task, ""); return err },
		"resume":   func() error { _, err := s.ResumeTask(ctx, alice, task); return err },
		"complete": func() error { _, err := s.Complete(ctx, alice, task, 1, ok(`{}`)); return err },
		"use":      func() error { return s.Use(ctx, alice, task, 1, 0) },
		"session":  func() error { _, err := s.Session(ctx, acme, ses); return err },
		"start":    func() error { _, err := s.StartSession(ctx, alice, ses); return err },
		"stop":     func() error { _, err := s.StopSession(ctx, alice, ses, ""); return err },
		"budget": func() error {
			_, err := s.SetBudget(ctx, alice, swarm.Budget{Subject: "session:" + ses, Tasks: 1})
			return err
		},
		"in session": func() error {
			_, err := s.Dispatch(ctx, alice, swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Session: ses})
			return err
		},
		"after": func() error {
			_, err := s.Dispatch(ctx, alice, swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), After: []string{task}})
			return err
		},
		"list by it":    func() error { _, err := s.Tasks(ctx, acme, core.Filter{Session: ses}); return err },
		"results of it": func() error { _, err := s.Results(ctx, acme, core.Filter{Task: task}); return err },
	}
	for name, call := range calls {
		if err := call(); !hasCode(err, core.Denied) {
			t.Errorf("%s: %v, want DENIED", name, err)
		}
	}
	if events, err := r.ledger.List(ctx, acme, core.Filter{Kind: "tenant.violation"}); err != nil || events.Info.Total != len(calls) {
		t.Errorf("%d violations audited, want %d (%v)", events.Info.Total, len(calls), err)
	}
	for name, call := range map[string]func() error{
		"status":      func() error { _, err := s.Tasks(ctx, acme, core.Filter{Status: "fail"}); return err },
		"state":       func() error { _, err := s.Sessions(ctx, acme, core.Filter{Status: "asleep"}); return err },
		"wait":        func() error { _, err := s.Wait(ctx, acme, r.dispatch(`{}`).TaskID, "done"); return err },
		"stream":      func() error { _, _, err := s.Log(ctx, acme, "agent:\x00", 0, 1); return err },
		"long stream": func() error { _, _, err := s.Log(ctx, acme, strings.Repeat("x", 1<<20), 0, 1); return err },
		"agent": func() error {
			_, err := s.Dispatch(ctx, alice, swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Agent: "ann"})
			return err
		},
		"agent name": func() error {
			_, err := s.Dispatch(ctx, alice, swarm.Dispatch{Kind: "agent.prompt", Input: core.Raw(`{"agent":"a\u0000b"}`)})
			return err
		},
		"subject": func() error {
			_, err := s.SetBudget(ctx, alice, swarm.Budget{Subject: "agent:\x00", Tasks: 1})
			return err
		},
	} {
		if err := call(); !hasCode(err, core.InvalidInput) {
			t.Errorf("%s: %v, want INVALID_INPUT", name, err)
		}
	}
	r.whole()
}
