package judge_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

const rmBuild = `{"argv":["rm","-r","build"]}`

func TestApproveReleasesExactlyWhatWasAsked(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, rmBuild)
	a := f.opened(ask)
	if a.Status != judge.Open || a.Risk != judge.High || a.ReasonCode != "destructive" || a.RequestedBy != "robot" || a.AtDeadline != "deny" {
		t.Fatalf("opened %+v", a)
	}
	expect.Is(t, a.DeadlineAt.Sub(a.CreatedAt), 10*time.Minute, "deadline after")
	f.clock.pass(time.Minute)
	got, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{
		Approve: true, Reason: "it is rebuilt anyway", Digest: a.Digest, ShownAt: a.CreatedAt.Add(30 * time.Second),
	})
	expect.No(t, err)
	if got.Status != judge.Approved || got.AnsweredBy != "alice" || got.SelfApproved {
		t.Errorf("answered %+v", got)
	}
	out := f.owner.last(t)
	if !out.Approved || string(out.Args) != rmBuild || out.By != "alice" {
		t.Errorf("settled %+v", out)
	}
	d := f.decision(got.DecisionID)
	if d.Decision != judge.Approve || d.DecidedBy != "alice" || d.Door != core.DoorCLI || d.Digest != a.Digest ||
		d.RuleID != "exec.destructive" || d.ApprovalID != a.ApprovalID || d.Rationale != "it is rebuilt anyway" ||
		!d.ShownAt.Equal(a.CreatedAt.Add(30*time.Second)) || !d.CreatedAt.Equal(got.AnsweredAt) {
		t.Errorf("recorded %+v", d)
	}
	if !f.start(a.ApprovalID, ask) {
		t.Error("the approved effect may not start")
	}
	if f.start(a.ApprovalID, ask) {
		t.Error("an approval was used twice")
	}
	f.healthy()
}

func TestR2OneAnswerWins(t *testing.T) {
	f := setup(t)
	a := f.opened(execBy(robot, rmBuild))
	f.clock.pass(2*time.Minute + 11*time.Second)
	if _, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Reason: "not today"}); err != nil {
		t.Fatal(err)
	}
	_, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "fine"})
	if code(err) != core.Conflict || !strings.Contains(err.Error(), "already denied by bob at 14:02:11: not today") {
		t.Fatalf("the second answer: %v", err)
	}
	if out := f.owner.last(t); out.Approved || out.Reason != "not today" {
		t.Errorf("settled %+v", out)
	}
	f.healthy()
}

func TestRacingOperatorsHaveOneWinner(t *testing.T) {
	f := setup(t)
	for range 20 {
		a := f.opened(execBy(robot, rmBuild))
		before := len(f.owner.outcomes)
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			by := core.Caller{Tenant: acme, Name: "op" + string(rune('a'+i)), Kind: core.Operator, Door: core.DoorCLI}
			wg.Go(func() {
				_, errs[i] = f.Answer(t.Context(), by, a.ApprovalID, judge.Answer{Approve: i%2 == 0, Reason: "r"})
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case code(err) != core.Conflict:
				t.Errorf("a loser got %v", err)
			}
		}
		if settled := len(f.owner.outcomes) - before; won != 1 || settled != 1 {
			t.Fatalf("%d winners, %d settled", won, settled)
		}
	}
	f.healthy()
}
