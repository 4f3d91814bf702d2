package judge_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

func TestACanaryRunsNothingAndIsMarked(t *testing.T) {
	f := setup(t)
	f.Own(judge.GateCanary, judge.CanarySettler{})
	ctx := context.Background()
	if _, err := f.Canary(ctx, robot, judge.Low); !errors.Is(err, core.Kind(core.Denied)) {
		t.Errorf("an agent's canary: %v", err)
	}
	if _, err := f.Canary(ctx, alice, judge.Critical); !errors.Is(err, core.Kind(core.InvalidInput)) {
		t.Errorf("a critical canary: %v", err)
	}
	place := func() string {
		a, err := f.Canary(ctx, alice, judge.Medium)
		if err != nil || a.Gate != judge.GateCanary || a.TaskID != "" || a.RequestedKind != core.Engine || a.ReasonCode != "canary" {
			t.Fatalf("%+v, %v", a, err)
		}
		return a.ApprovalID
	}
	missed, noticed, own, edited := place(), place(), place(), place()
	if _, err := f.Answer(ctx, bob, edited, judge.Answer{Approve: true, Edit: core.Raw(`{"argv":["ls"]}`)}); err == nil {
		t.Error("a canary was edited")
	}
	if _, err := f.Answer(ctx, bob, edited, judge.Answer{Approve: true, Always: &judge.Always{For: "anyone", Expires: time.Hour, MaxUses: 1}}); err == nil {
		t.Error("a canary became a rule")
	}
	for _, a := range []struct {
		by      core.Caller
		id      string
		approve bool
	}{{bob, missed, true}, {bob, noticed, false}, {alice, own, true}} {
		if _, err := f.Answer(ctx, a.by, a.id, judge.Answer{Approve: a.approve, Reason: "so"}); err != nil {
			t.Fatal(err)
		}
	}
	all, whole, err := f.Figures(ctx, acme, time.Time{})
	if err != nil || !whole || len(all) != 1 || all[0].Operator != "bob" || all[0].Canaries != 2 || all[0].CanariesMissed != 1 || all[0].Answered != 0 {
		t.Errorf("%+v, %v, %v", all, whole, err)
	}
	for typ, n := range map[string]int{"canary.placed": 4, "canary.missed": 2, "canary.noticed": 1} {
		if page, err := f.ledger.List(ctx, acme, core.Filter{Kind: typ}); err != nil || len(page.Items) != n {
			t.Errorf("%s: %d, %v", typ, len(page.Items), err)
		}
	}
	if len(f.owner.outcomes) != 0 {
		t.Error("the owner of another gate was told")
	}
	f.healthy()
}

func TestFiguresTellHowOperatorsAnswer(t *testing.T) {
	f := setup(t)
	ctx := context.Background()
	since := f.clock.Now()
	answer := func(by core.Caller, shown time.Duration, ans judge.Answer) {
		t.Helper()
		ans.Reason = "read it"
		a := f.opened(execBy(robot, rmBuild))
		f.clock.pass(time.Minute)
		if shown > 0 {
			if err := f.Shown(ctx, by, a.ApprovalID); err != nil {
				t.Fatal(err)
			}
			f.clock.pass(shown)
		}
		if _, err := f.Answer(ctx, by, a.ApprovalID, ans); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		answer(bob, time.Duration(i+1)*time.Second, judge.Answer{Approve: i < 8})
	}
	answer(alice, 0, judge.Answer{Approve: true})
	answer(alice, 20*time.Second, judge.Answer{Approve: true, Edit: core.Raw(`{"argv":["ls"]}`)})
	all, whole, err := f.Figures(ctx, acme, since)
	if err != nil || !whole || len(all) != 2 || all[0].Operator != "alice" {
		t.Fatalf("%+v, %v, %v", all, whole, err)
	}
	a, b := all[0], all[1]
	if a.Answered != 2 || a.Timed != 1 || a.Edited != 1 || *a.MedianS != 20 || a.ApprovedShare != 1 {
		t.Errorf("%+v", a)
	}
	if b.Answered != 10 || b.Approved != 8 || b.Denied != 2 || len(b.Reasons) != 2 || b.Reasons[0] != "read it" || b.ApprovedShare != 0.8 ||
		*b.MedianS != 5 || *b.P90S != 9 || b.Hasty != 1 {
		t.Errorf("%+v, median %v, 90 %% %v", b, *b.MedianS, *b.P90S)
	}
	if later, _, err := f.Figures(ctx, acme, f.clock.Now().Add(time.Second)); err != nil || len(later) != 0 {
		t.Errorf("%+v, %v", later, err)
	}
}
