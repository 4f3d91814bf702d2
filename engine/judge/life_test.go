package judge_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// live runs a test with the fake clock of synctest and the judge's own loop.
func live(t *testing.T, test func(t *testing.T, f *fixture)) {
	liveAt(t, core.SystemClock{}, test)
}

// liveAt has the engine's clock show something else than the loop's timers.
func liveAt(t *testing.T, clock core.Clock, test func(t *testing.T, f *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		f := over(t, enginetest.Options{Clock: clock})
		f.world.Start(f.Run)
		test(t, f)
		f.healthy()
	})
}

// wall is a clock that is set.
type wall struct{ off atomic.Int64 }

func (w *wall) Now() time.Time { return time.Now().Add(time.Duration(w.off.Load())) }

func (w *wall) set(d time.Duration) { w.off.Store(int64(d)) }

// While the machine sleeps the clock goes on, and timers stand.
func TestDeadlineThatPassesWhileTheMachineSleeps(t *testing.T) {
	w := &wall{}
	liveAt(t, w, func(t *testing.T, f *fixture) {
		a := f.opened(execBy(robot, rmBuild)) // 10 min
		time.Sleep(6 * time.Minute)           // it was escalated: the next to do is at the deadline
		w.set(8 * time.Hour)
		time.Sleep(2 * time.Minute)
		if got := f.approval(a.ApprovalID); got.Status != judge.Expired {
			t.Errorf("2 min after the machine woke: %s", got.Status)
		}
	})
}

func TestDeadlineAfterTheClockWasSetBack(t *testing.T) {
	w := &wall{}
	liveAt(t, w, func(t *testing.T, f *fixture) {
		f.opened(execBy(robot, rmBuild))
		w.set(-3 * time.Hour)
		a := f.opened(execBy(robot, rmBuild)) // 10 min
		time.Sleep(11 * time.Minute)
		if got := f.approval(a.ApprovalID); got.Status != judge.Expired {
			t.Errorf("after its time: %s", got.Status)
		}
	})
}

func TestR3TheDeadlineDenies(t *testing.T) {
	live(t, func(t *testing.T, f *fixture) {
		a := f.opened(execBy(robot, rmBuild))
		time.Sleep(5*time.Minute - time.Second)
		if got := f.approval(a.ApprovalID); !got.EscalatedAt.IsZero() {
			t.Error("escalated before half of the time was over")
		}
		time.Sleep(2 * time.Second)
		got := f.approval(a.ApprovalID)
		if got.Status != judge.Open || got.EscalatedAt.Sub(a.CreatedAt).Round(time.Millisecond) != 5*time.Minute {
			t.Errorf("at half time: %s, escalated at %v", got.Status, got.EscalatedAt)
		}
		time.Sleep(5*time.Minute - 2*time.Second)
		if got := f.approval(a.ApprovalID); got.Status != judge.Open {
			t.Errorf("%s before the deadline", got.Status)
		}
		time.Sleep(2 * time.Second)
		got = f.approval(a.ApprovalID)
		if got.Status != judge.Expired || got.AnsweredBy != "policy" {
			t.Fatalf("after the deadline: %+v", got)
		}
		if out := f.owner.last(t); out.Approved || out.Decision.ReasonCode != "deadline" || out.Decision.Decision != judge.Deny {
			t.Errorf("settled %+v", out)
		}
		if d := f.decision(got.DecisionID); d.ReasonCode != "deadline" || d.DecidedBy != "policy" || d.Digest != a.Digest {
			t.Errorf("recorded %+v", d)
		}
		_, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "late"})
		expect.Is(t, code(err), core.Conflict, "a late answer")
		if f.start(a.ApprovalID, execBy(robot, rmBuild)) {
			t.Error("an expired approval let the effect start")
		}
		if got := f.events(); !slices.Contains(got, "approval.escalated") || !slices.Contains(got, "approval.expired") {
			t.Errorf("events %v", got)
		}
	})
}

func TestDeadlinesAreByRisk(t *testing.T) {
	live(t, func(t *testing.T, f *fixture) {
		medium := f.opened(execBy(robot, argv("make")))
		high := f.opened(execBy(robot, rmBuild))
		if medium.DeadlineAt.Sub(medium.CreatedAt) != 15*time.Minute || high.DeadlineAt.Sub(high.CreatedAt) != 10*time.Minute {
			t.Errorf("deadlines %v, %v", medium.DeadlineAt, high.DeadlineAt)
		}
		time.Sleep(10*time.Minute + time.Second)
		expect.Is(t, f.approval(high.ApprovalID).Status, judge.Expired, "high")
		expect.Is(t, f.approval(medium.ApprovalID).Status, judge.Open, "medium")
	})
}

// TestADeadlineOfTheEngineIsThatOfAllRisks, but for what a rule says and what holds up nobody.
func TestADeadlineOfTheEngineIsThatOfAllRisks(t *testing.T) {
	f := setup(t, func(o *judge.Options) { o.Deadline = 8 * time.Hour })
	for _, ask := range []judge.Ask{execBy(robot, argv("make")), execBy(robot, rmBuild)} {
		a := f.opened(ask)
		expect.Is(t, a.DeadlineAt.Sub(a.CreatedAt), 8*time.Hour)
	}
	own := f.opened(execBy(alice, rmBuild))
	expect.True(t, own.DeadlineAt.IsZero(), "an operator's own task ends at %v", own.DeadlineAt)
}

// TestWhatHoldsUpNobodyWaitsWithoutEnd: a task of an operator that has not begun, a result, a
// budget. A rule may give it a deadline all the same.
func TestWhatHoldsUpNobodyWaitsWithoutEnd(t *testing.T) {
	live(t, func(t *testing.T, f *fixture) {
		a := f.opened(execBy(alice, rmBuild))
		got := expect.Of(f.Defer(t.Context(), bob, a.ApprovalID, time.Hour))(t)
		if ends, _ := got.Ends(); !ends.IsZero() || got.AtDeadline != "" {
			t.Errorf("it ends: %+v", got)
		}
		time.Sleep(9 * 24 * time.Hour)
		got = f.approval(a.ApprovalID)
		if got.Status != judge.Open || !got.EscalatedAt.IsZero() || !got.DeferredUntil.IsZero() {
			t.Errorf("after nine days: %+v", got)
		}
		got = expect.Of(f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Reason: "I was away"}))(t)
		expect.Is(t, got.Status, judge.Approved)
	})
}

func TestDeadlinesThatPassedWhileNobodyRanAreEnforcedAtStart(t *testing.T) {
	f := setup(t)
	a := f.opened(execBy(robot, rmBuild))
	f.clock.pass(time.Hour)
	// A command line without the loop must not approve it either.
	got, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "late"})
	if code(err) != core.Conflict || got.Status != judge.Expired {
		t.Errorf("a late answer: %s, %v", got.Status, err)
	}
	if f.owner.last(t).Approved {
		t.Error("a late answer approved")
	}
	f.healthy()
}

func TestDeferHidesAndMovesTheDeadline(t *testing.T) {
	live(t, func(t *testing.T, f *fixture) {
		a := f.opened(execBy(robot, rmBuild))
		time.Sleep(time.Minute)
		for _, d := range []time.Duration{0, time.Second, 25 * time.Hour} {
			_, err := f.Defer(t.Context(), alice, a.ApprovalID, d)
			expect.Is(t, code(err), core.InvalidInput, "deferred by", d)
		}
		got := expect.Of(f.Defer(t.Context(), alice, a.ApprovalID, time.Hour))(t)
		if !got.DeadlineAt.Equal(a.DeadlineAt.Add(time.Hour)) || got.DeferredUntil.Sub(a.CreatedAt).Round(time.Second) != time.Hour+time.Minute {
			t.Errorf("deadline %v, until %v", got.DeadlineAt, got.DeferredUntil)
		}
		time.Sleep(30 * time.Minute)
		if got := f.approval(a.ApprovalID); got.Status != judge.Open || got.DeferredUntil.IsZero() || !got.EscalatedAt.IsZero() {
			t.Errorf("while deferred: %+v", got)
		}
		time.Sleep(31 * time.Minute)
		if got := f.approval(a.ApprovalID); got.Status != judge.Open || !got.DeferredUntil.IsZero() {
			t.Errorf("when it is back: %+v", got)
		}
		time.Sleep(10 * time.Minute)
		if got := f.approval(a.ApprovalID); got.Status != judge.Expired {
			t.Errorf("after the moved deadline: %s", got.Status)
		}
	})
}

func TestDeferHasAnEnd(t *testing.T) {
	f := setup(t)
	a := f.opened(execBy(robot, rmBuild))
	var err error
	n := 0
	for ; err == nil && n < 10; n++ {
		_, err = f.Defer(t.Context(), alice, a.ApprovalID, 24*time.Hour)
	}
	if code(err) != core.Conflict || n != 7 {
		t.Errorf("deferred %d times: %v", n, err)
	}
}

func TestEscalateNamesSomebodyAndKeepsTheDeadline(t *testing.T) {
	f := setup(t)
	a := f.opened(execBy(robot, rmBuild))
	got, err := f.Escalate(t.Context(), alice, a.ApprovalID, "carol", "she owns the build")
	if err != nil || got.EscalatedTo != "carol" || got.EscalatedAt.IsZero() || !got.DeadlineAt.Equal(a.DeadlineAt) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, to := range []string{"", strings.Repeat("x", 65), "a\xffb"} {
		_, err = f.Escalate(t.Context(), alice, a.ApprovalID, to, "")
		expect.Is(t, code(err), core.InvalidInput, "to", to)
	}
}

func TestShownIsTheFirstTime(t *testing.T) {
	f := setup(t)
	a := f.opened(execBy(robot, rmBuild))
	f.clock.pass(time.Minute)
	for range 2 {
		expect.No(t, f.Shown(t.Context(), bob, a.ApprovalID))
		f.clock.pass(time.Minute)
	}
	got, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Reason: "no", ShownAt: f.clock.Now()})
	if err != nil || got.ShownAt.Sub(a.CreatedAt) != time.Minute {
		t.Errorf("shown %v, %v", got.ShownAt, err)
	}
	n := 0
	for _, e := range f.events() {
		if e == "approval.shown" {
			n++
		}
	}
	expect.Is(t, n, 1, "events for one first look")
}

func TestShowingWhatWasAnsweredMeanwhileIsNoMistake(t *testing.T) {
	f := setup(t)
	a := f.opened(execBy(robot, rmBuild))
	expect.Of(f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Reason: "not today"}))(t)
	if err := f.Shown(t.Context(), alice, a.ApprovalID); err != nil { // she read it while it was open
		t.Errorf("shown: %v", err)
	}
	if got := f.approval(a.ApprovalID); got.Status != judge.Refused || !got.ShownAt.IsZero() {
		t.Errorf("now %+v", got)
	}
	f.healthy()
}

// An owner that fails to settle must not keep others from their deadline.
func TestAnUnsettledExpiryIsTriedAgain(t *testing.T) {
	live(t, func(t *testing.T, f *fixture) {
		broken := &owner{broken: errors.New("tool gate is broken")}
		f.Own(judge.GateTool, broken)
		stuck := f.opened(call("rm", `{}`))
		other := f.opened(execBy(robot, rmBuild))
		time.Sleep(10*time.Minute + 30*time.Second)
		expect.Is(t, f.approval(other.ApprovalID).Status, judge.Expired, "the other one")
		expect.Is(t, f.approval(stuck.ApprovalID).Status, judge.Open, "the stuck one")
		broken.mu.Lock()
		broken.broken = nil
		broken.mu.Unlock()
		time.Sleep(time.Minute)
		expect.Is(t, f.approval(stuck.ApprovalID).Status, judge.Expired, "once it can be settled")
		n := 0
		for _, e := range f.events() {
			if e == "approval.unsettled" {
				n++
			}
		}
		expect.Is(t, n, 1, "events about one trouble")
	})
}

func TestVoidedCanNotBeApproved(t *testing.T) {
	f := setup(t)
	mine := f.opened(execBy(robot, rmBuild))
	otherAsk := execBy(robot, rmBuild)
	otherAsk.TaskID = "tk_00000_0000000008"
	other := f.opened(otherAsk)
	err := f.ledger.Update(t.Context(), alice, func(tx *audit.Tx) error {
		return f.Void(tx, func(a *judge.Approval) bool { return a.TaskID == taskID }, "the task was cancelled")
	})
	expect.No(t, err)
	_, err = f.Answer(t.Context(), bob, mine.ApprovalID, judge.Answer{Approve: true, Reason: "ok"})
	if code(err) != core.Conflict || !strings.Contains(err.Error(), "void since 14:00:00: the task was cancelled") {
		t.Errorf("answering a void approval: %v", err)
	}
	if f.start(mine.ApprovalID, execBy(robot, rmBuild)) {
		t.Error("a void approval let the effect start")
	}
	if open, _ := f.Open(t.Context(), acme); len(open) != 1 || open[0].ApprovalID != other.ApprovalID {
		t.Errorf("open: %v", open)
	}
	f.healthy()
}

// Bound to exactly what was approved, checked when it starts.
func TestR1StartRefusesAnythingElse(t *testing.T) {
	for name, change := range map[string]func(*judge.Ask){
		"arguments": func(a *judge.Ask) { a.Action.Args = core.Raw(`{"argv":["rm","-r","src"]}`) },
		"attempt":   func(a *judge.Ask) { a.Attempt++ },
		"task":      func(a *judge.Ask) { a.TaskID += "0" },
		"agent":     func(a *judge.Ask) { a.Agent.Name = "other" },
		"kind":      func(a *judge.Ask) { a.Action.Kind = "other" },
		"tool":      func(a *judge.Ask) { a.Action.Tool = "other" },
		"server":    func(a *judge.Ask) { a.Action.Server = "other" },
		"call":      func(a *judge.Ask) { a.Action.CallID = "other" },
		"gate":      func(a *judge.Ask) { a.Gate = judge.GateTool },
		"digits":    func(a *judge.Ask) { a.Action.Args = core.Raw(`{"argv":[9007199254740993]}`) },
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			ask := execBy(robot, rmBuild)
			a := f.opened(ask)
			expect.Of(f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "ok"}))(t)
			other := ask
			change(&other)
			if f.start(a.ApprovalID, other) {
				t.Fatal("something else started")
			}
			if got := f.approval(a.ApprovalID); got.Status != judge.Voided || got.VoidReason == "" || got.UsedAt != (time.Time{}) {
				t.Errorf("the approval is %s", got.Status)
			}
			if f.start(a.ApprovalID, ask) {
				t.Error("the voided approval was used")
			}
			f.healthy()
		})
	}
}

func TestStartIgnoresHowArgumentsAreWritten(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, `{"dir":"/x","argv":["rm","b"]}`)
	a := f.opened(ask)
	expect.Of(f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "ok"}))(t)
	ask.Action.Args = core.Raw(`{ "argv": ["rm", "\u0062"], "dir": "/x" }`)
	if !f.start(a.ApprovalID, ask) {
		t.Error("the same arguments in another order did not start")
	}
}

func TestStartAsksAnewUnderAnotherPolicy(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, rmBuild)
	a := f.opened(ask)
	expect.Of(f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "ok"}))(t)
	later := expect.Of(judge.New(judge.Options{Ledger: f.ledger, Policy: []byte(policy(ruleLine("all", "true", "approve")))}))(t)
	f.Judge = later
	if f.start(a.ApprovalID, ask) {
		t.Error("an approval under other rules let the effect start")
	}
	// What the old rules said of their decisions stays readable.
	if d := f.decision(a.DecisionID); d.PolicyVersion != a.PolicyVersion || d.Rationale != a.Rationale || d.Rationale == "" {
		t.Errorf("the old decision reads %+v", d)
	}
	f.healthy()
}

// The answer is on disk before the effect, and after a crash an approved
// but unstarted effect is checked again.
func TestR4ApprovalsSurviveARestart(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, rmBuild)
	a, waiting := f.opened(ask), f.opened(ask)
	expect.Of(f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "ok"}))(t)
	f.world.Reopen()
	if open, err := f.Open(t.Context(), acme); err != nil || len(open) != 1 || open[0].ApprovalID != waiting.ApprovalID {
		t.Errorf("open after a restart: %v, %v", open, err)
	}
	other := ask
	other.Action.Args = core.Raw(argv("rm -r src"))
	if f.start(waiting.ApprovalID, ask) {
		t.Error("an open approval let the effect start")
	}
	if !f.start(a.ApprovalID, ask) || f.start(a.ApprovalID, other) {
		t.Error("the approval does not stand as it was given")
	}
	f.healthy()
}
