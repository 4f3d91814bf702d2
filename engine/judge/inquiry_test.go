package judge_test

import (
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func TestAPersonAsksBeforeTheyAnswer(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	a := f.opened(execBy(robot, rmBuild))
	_, err := f.Reply(ctx, robot, a.ApprovalID, "unasked")
	expect.Is(t, code(err), core.Conflict, "a reply that nobody waits for")
	_, err = f.Inquire(ctx, robot, a.ApprovalID, "why?")
	expect.Is(t, code(err), core.Denied, "an agent asks")
	got, err := f.Inquire(ctx, bob, a.ApprovalID, " why not in a branch? ")
	if err != nil || len(got.Inquiries) != 1 || got.Inquiries[0].Text != "why not in a branch?" || !got.DeadlineAt.Equal(a.DeadlineAt) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, by := range []core.Caller{alice, named(robot, "another")} {
		_, err = f.Reply(ctx, by, a.ApprovalID, "because")
		expect.Is(t, code(err), core.Denied, by.Name, "replies")
	}
	got, err = f.Reply(ctx, robot, a.ApprovalID, "there is none")
	if err != nil || got.Inquiries[0].Reply != "there is none" || got.Status != judge.Open || got.Digest != a.Digest {
		t.Fatalf("%+v, %v", got, err)
	}
	for range 9 {
		expect.Of(f.Inquire(ctx, bob, a.ApprovalID, "and?"))(t)
	}
	_, err = f.Inquire(ctx, bob, a.ApprovalID, "and?")
	expect.Is(t, code(err), core.Conflict, "the eleventh")
	for _, text := range []string{"", " ", strings.Repeat("x", 1025), "\xff"} {
		_, err = f.Inquire(ctx, bob, a.ApprovalID, text)
		expect.Is(t, code(err), core.InvalidInput, text)
	}
	for event, n := range map[string]int{"approval.inquired": 10, "approval.replied": 1} {
		expect.Is(t, count(f.events(), event), n, "of", event)
	}
	f.healthy()
}

func TestWhoAskedTakesItBack(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	a := f.opened(execBy(robot, rmBuild))
	for _, by := range []core.Caller{bob, named(robot, "another")} {
		_, err := f.Recall(ctx, by, a.ApprovalID, "mine")
		expect.Is(t, code(err), core.Denied, by.Name)
	}
	got, err := f.Recall(ctx, robot, a.ApprovalID, "it is done already")
	if err != nil || got.Status != judge.Voided || got.VoidReason != "withdrawn by robot: it is done already" || !got.AnsweredAt.IsZero() {
		t.Fatalf("%+v, %v", got, err)
	}
	if d := f.decision(got.DecisionID); d.Decision != judge.Deny || d.ReasonCode != "asker.withdrew" || d.DecidedBy != "robot" {
		t.Errorf("%+v", d)
	}
	if len(f.owner.outcomes) != 1 || f.owner.outcomes[0].Approved {
		t.Errorf("%+v", f.owner.outcomes)
	}
	if _, err := f.Answer(ctx, bob, a.ApprovalID, judge.Answer{Approve: true}); code(err) != core.Conflict || !strings.Contains(err.Error(), "withdrawn by robot") {
		t.Errorf("an answer after that: %v", err)
	}
	if !slices.Contains(f.events(), "approval.withdrawn") {
		t.Error("it is not on record")
	}
	f.healthy()
}
