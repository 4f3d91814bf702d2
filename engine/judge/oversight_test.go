package judge_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// critical is an ask at critical risk.
func critical(by core.Caller) judge.Ask {
	ask := execBy(by, rmBuild)
	ask.Risk = judge.Critical
	return ask
}

// Two persons for the top risk, and who asked is neither.
func TestR7CriticalNeedsTwoOthers(t *testing.T) {
	f := setup(t)
	ask := critical(alice)
	a := f.opened(ask)
	carol := bob
	carol.Name = "carol"
	yes := judge.Answer{Approve: true, Reason: "agreed"}
	_, err := f.Answer(t.Context(), alice, a.ApprovalID, yes)
	expect.Is(t, code(err), core.Denied, "who asked approved")
	got, err := f.Answer(t.Context(), bob, a.ApprovalID, yes)
	if err != nil || got.Status != judge.Open || !slices.Equal(got.Consenting(), []string{"bob"}) {
		t.Fatalf("the first: %+v, %v", got, err)
	}
	if d := f.decision(got.DecisionID); d.Decision != judge.HITL || d.ReasonCode != "operator.consents" || d.DecidedBy != "bob" {
		t.Errorf("the first is recorded as %+v", d)
	}
	if len(f.owner.outcomes) != 0 || f.start(a.ApprovalID, ask) {
		t.Error("one of two was enough")
	}
	_, err = f.Answer(t.Context(), bob, a.ApprovalID, yes)
	expect.Is(t, code(err), core.Denied, "the same operator twice")
	got, err = f.Answer(t.Context(), carol, a.ApprovalID, yes)
	if err != nil || got.Status != judge.Approved || !slices.Equal(got.Consenting(), []string{"bob"}) || got.AnsweredBy != "carol" {
		t.Fatalf("the second: %+v, %v", got, err)
	}
	if !f.start(a.ApprovalID, ask) {
		t.Error("two were not enough")
	}
	expect.Is(t, count(f.events(), "approval.refused"), 2)
	f.healthy()
}

// One person is one, whatever names they choose.
func TestNamesAddNoPersons(t *testing.T) {
	f := setup(t)
	at := func(by core.Caller, name, person string) core.Caller {
		by.Name, by.Person = name, person
		return by
	}
	a := f.opened(critical(at(alice, "alice", "uid:1")))
	yes := judge.Answer{Approve: true, Reason: "agreed"}
	for _, c := range []struct {
		name, person string
		code         core.Code
		status       judge.ApprovalStatus
	}{
		{"boss", "uid:1", core.Denied, ""}, // who asked
		{"bob", "uid:2", "", judge.Open},
		{"chief", "uid:2", core.Denied, ""},
		{"bob", "SHA256:x", core.Denied, ""},
		{"bobby", "SHA256:z uid:2", core.Denied, ""}, // bob's user, with a key
		{"carol", "SHA256:y", "", judge.Approved},
	} {
		got, err := f.Answer(t.Context(), at(bob, c.name, c.person), a.ApprovalID, yes)
		if code(err) != c.code || err == nil && got.Status != c.status {
			t.Errorf("%s (%s): %s, %v", c.name, c.person, got.Status, err)
		}
	}
	f.healthy()

	own := f.opened(execBy(at(alice, "alice", "uid:1"), rmBuild))
	if got, err := f.Answer(t.Context(), at(bob, "boss", "uid:1"), own.ApprovalID, yes); err != nil || !got.SelfApproved {
		t.Errorf("an approval of one's own under another name: %+v, %v", got, err)
	}
}

// Nobody makes the second person out of nothing once it was asked.
func TestAtCriticalRiskWhoAnswersWasKnownBefore(t *testing.T) {
	f := setup(t)
	a := f.opened(critical(alice))
	late, early := bob, bob
	early.Name, early.Person, early.Known = "carol", "SHA256:c", a.CreatedAt.Add(-time.Second)
	late.Name, late.Person, late.Known = "new", "SHA256:n", a.CreatedAt.Add(time.Second)
	yes := judge.Answer{Approve: true, Reason: "agreed"}
	for _, by := range []core.Caller{late, early, late, bob} {
		got, err := f.Answer(t.Context(), by, a.ApprovalID, yes)
		if want := core.Code(""); by == late && code(err) != core.Denied || by != late && code(err) != want {
			t.Errorf("%s: %s, %v", by.Name, got.Status, err)
		}
	}
	if got, err := f.Approval(t.Context(), "t_acme", a.ApprovalID); err != nil || got.Status != judge.Approved || !slices.Equal(got.Consenting(), []string{"carol"}) {
		t.Errorf("%+v, %v", got, err)
	}
	f.healthy()
}

func TestOneCanDenyTheCritical(t *testing.T) {
	f := setup(t)
	a := f.opened(critical(alice))
	expect.Of(f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Reason: "fine"}))(t)
	got, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Reason: "my mistake", Abort: true})
	if err != nil || got.Status != judge.Refused || !got.Abort {
		t.Errorf("%+v, %v", got, err)
	}
	if out := f.owner.last(t); out.Approved || !out.Abort || out.Decision.ReasonCode != "operator.aborted" || !out.Decision.Abort {
		t.Errorf("settled %+v", out)
	}
}

func TestOwnApprovalIsMarked(t *testing.T) {
	f := setup(t)
	a := f.opened(execBy(alice, rmBuild))
	got, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "mine"})
	if err != nil || !got.SelfApproved || !f.decision(got.DecisionID).SelfApproved {
		t.Errorf("%+v, %v", got, err)
	}
	// An agent of the same name is somebody else.
	namesake := robot
	namesake.Name = "alice"
	a = f.opened(execBy(namesake, rmBuild))
	if got, err = f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "ok"}); err != nil || got.SelfApproved {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOnlyOperatorsAnswer(t *testing.T) {
	f := setup(t)
	a := f.opened(execBy(robot, rmBuild))
	nobody := alice
	nobody.Name = ""
	for _, by := range []core.Caller{robot, core.Self(acme, "judge"), {Tenant: acme, Name: "x"}, nobody} {
		_, err := f.Answer(t.Context(), by, a.ApprovalID, judge.Answer{Approve: true, Reason: "ok"})
		expect.Is(t, code(err), core.Denied, by.Kind, by.Name, "approved")
		_, err = f.Defer(t.Context(), by, a.ApprovalID, time.Hour)
		expect.Is(t, code(err), core.Denied, by.Kind, by.Name, "deferred")
		_, err = f.Escalate(t.Context(), by, a.ApprovalID, "bob", "")
		expect.Is(t, code(err), core.Denied, by.Kind, by.Name, "escalated")
		expect.Is(t, code(f.Shown(t.Context(), by, a.ApprovalID)), core.Denied, by.Kind, by.Name, "was shown it")
	}
	if got := f.approval(a.ApprovalID); got.Status != judge.Open || !got.ShownAt.IsZero() || !got.DeadlineAt.Equal(a.DeadlineAt) {
		t.Errorf("changed: %+v", got)
	}
	expect.Is(t, count(f.events(), "approval.refused"), 16, "refusals audited, want 16")
	f.healthy()
}

func TestAnotherTenantsApprovalIsRefusedAndAudited(t *testing.T) {
	f := setup(t)
	foreign := core.NewID(core.ApprovalPrefix, "t_other", 1)
	if _, err := f.Answer(t.Context(), alice, foreign, judge.Answer{Reason: "no"}); code(err) != core.Denied || !errors.Is(err, core.ErrForeign) {
		t.Errorf("answered: %v", err)
	}
	_, err := f.Approval(t.Context(), acme, foreign)
	expect.Err(t, err, core.ErrForeign, "read")
	_, err = f.Decision(t.Context(), acme, core.NewID(core.DecisionPrefix, "t_other", 1))
	expect.Err(t, err, core.ErrForeign, "read a decision")
	_, err = f.RevokeRule(t.Context(), alice, core.NewID(core.RulePrefix, "t_other", 1))
	expect.Err(t, err, core.ErrForeign, "revoked")
	expect.Is(t, count(f.events(), "tenant.violation"), 4)
	_, err = f.Answer(t.Context(), alice, "ap_bogus", judge.Answer{Reason: "no"})
	expect.Is(t, code(err), core.InvalidInput, "a malformed id")
	if _, err := f.Answer(t.Context(), alice, core.NewID(core.ApprovalPrefix, acme, 99), judge.Answer{Reason: "no"}); code(err) != core.NotFound {
		t.Errorf("an id that is not there: %v", err)
	}
}

func TestAnswersAreChecked(t *testing.T) {
	f := setup(t)
	a := f.opened(execBy(robot, rmBuild))
	for name, c := range map[string]struct {
		ans  judge.Answer
		want core.Code
	}{
		"a denial without a reason":          {judge.Answer{Reason: "  "}, core.InvalidInput},
		"a high risk without a reason":       {judge.Answer{Approve: true}, core.InvalidInput},
		"an approval that aborts":            {judge.Answer{Approve: true, Abort: true, Reason: "x"}, core.InvalidInput},
		"a denial that edits":                {judge.Answer{Edit: core.Raw(`{}`), Reason: "x"}, core.InvalidInput},
		"a denial always":                    {judge.Answer{Always: &always, Reason: "x"}, core.InvalidInput},
		"a reason without end":               {judge.Answer{Reason: strings.Repeat("x", 4097)}, core.InvalidInput},
		"a reason that is no text":           {judge.Answer{Reason: "\xff"}, core.InvalidInput},
		"an edit that is no object":          {judge.Answer{Approve: true, Reason: "x", Edit: core.Raw(`[1]`)}, core.InvalidInput},
		"an edit that loses digits":          {judge.Answer{Approve: true, Reason: "x", Edit: core.Raw(`{"n":9007199254740993.0}`)}, core.InvalidInput},
		"what was seen is not what is asked": {judge.Answer{Approve: true, Reason: "x", Digest: strings.Repeat("0", 64)}, core.Conflict},
	} {
		_, err := f.Answer(t.Context(), alice, a.ApprovalID, c.ans)
		expect.Is(t, code(err), c.want, name)
	}
	if got := f.approval(a.ApprovalID); got.Status != judge.Open {
		t.Errorf("it is %s", got.Status)
	}
	medium := f.opened(execBy(robot, argv("make")))
	_, err := f.Answer(t.Context(), alice, medium.ApprovalID, judge.Answer{Approve: true})
	expect.No(t, err, "a medium risk needs no reason")
}

func TestNothingIsApprovedThatNobodyCanCarryOut(t *testing.T) {
	f := setup(t)
	f.Own(judge.GateStart, nil)
	a := f.opened(execBy(robot, rmBuild))
	_, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "x"})
	expect.Is(t, code(err), core.Unavailable, "approved")
	_, err = f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Reason: "x"})
	expect.No(t, err, "denied")
}

func TestAFailingOwnerUndoesTheAnswer(t *testing.T) {
	f := setup(t)
	a := f.opened(execBy(robot, rmBuild))
	f.owner.broken = errors.New("no")
	if _, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "x"}); err == nil {
		t.Fatal("answered")
	}
	if got := f.approval(a.ApprovalID); got.Status != judge.Open {
		t.Errorf("it is %s", got.Status)
	}
	f.healthy()
}

func TestEditIsJudgedAgainAndKeepsBothDigests(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, rmBuild)
	a := f.opened(ask)
	edit := core.Raw(`{"argv":["rm","-r","build/tmp"]}`)
	got, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "only tmp", Edit: edit, Digest: a.Digest})
	expect.No(t, err)
	d := f.decision(got.DecisionID)
	if got.PriorDigest != a.Digest || got.Digest == a.Digest || d.PriorDigest != a.Digest || d.Digest != got.Digest || d.ReasonCode != "operator.edited" {
		t.Errorf("digests %.8s → %.8s, recorded %.8s → %.8s as %s", got.PriorDigest, got.Digest, d.PriorDigest, d.Digest, d.ReasonCode)
	}
	if out := f.owner.last(t); string(out.Args) != string(edit) || got.Intent != a.Intent+" (edited)" {
		t.Errorf("settled with %s, intent %q", out.Args, got.Intent)
	}
	if f.start(f.opened(ask).ApprovalID, ask) {
		t.Error("another approval let it start")
	}
	edited := ask
	edited.Action.Args = edit
	if !f.start(a.ApprovalID, edited) {
		t.Error("the edited effect may not start")
	}
	f.healthy()
}

// An edit is bound as it will run: after the owner filled its defaults in.
func TestEditIsBoundToTheFinalArguments(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, rmBuild)
	a := f.opened(ask)
	f.owner.final = core.Raw(`{"argv":["rm","x"],"dir":"/src"}`)
	_, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "x", Edit: core.Raw(`{"argv":["rm","x"]}`)})
	expect.No(t, err)
	if out := f.owner.last(t); string(out.Args) != string(f.owner.final) {
		t.Errorf("settled with %s", out.Args)
	}
	ask.Action.Args = f.owner.final
	if !f.start(a.ApprovalID, ask) {
		t.Error("the edited effect may not start")
	}
}

func TestEditsAreRefused(t *testing.T) {
	f := setup(t)
	a := f.opened(execBy(robot, rmBuild))
	edit := func(args string) error {
		_, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "x", Edit: core.Raw(args)})
		return err
	}
	if err := edit(`{"argv":["rm","-rf","/"]}`); code(err) != core.Denied || !strings.Contains(err.Error(), "catastrophe") {
		t.Errorf("a deny rule: %v", err)
	}
	f.owner.refuse = core.Invalid("argv", "", "a program")
	expect.Is(t, code(edit(`{"argv":[]}`)), core.InvalidInput, "the owner")
	if got := f.approval(a.ApprovalID); got.Status != judge.Open || got.Digest != a.Digest || string(got.Action.Args) != rmBuild {
		t.Errorf("changed: %+v", got)
	}
	if !slices.Contains(f.events(), "approval.edit_refused") {
		t.Error("the refused edit is not audited")
	}
	f.owner.refuse = nil
	expect.No(t, edit(`{"argv":["ls"]}`), "a good edit after bad ones")
	f.healthy()
}

// Who approved first approved the arguments as they were.
func TestAnEditAtCriticalRiskNeedsTwoAgain(t *testing.T) {
	f := setup(t)
	a := f.opened(critical(robot))
	expect.Of(f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "x"}))(t)
	got, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Reason: "less", Edit: core.Raw(`{"argv":["rm","x"]}`)})
	if err != nil || got.Status != judge.Open || !slices.Equal(got.Consenting(), []string{"bob"}) || got.PriorDigest != a.Digest {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "as it was", Digest: a.Digest}); code(err) != core.Conflict {
		t.Errorf("approved what she did not see: %v", err)
	}
	got, err = f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "fine", Digest: got.Digest})
	if err != nil || got.Status != judge.Approved || string(f.owner.last(t).Args) != `{"argv":["rm","x"]}` {
		t.Errorf("%+v, %v", got, err)
	}
	f.healthy()
}

func count(in []string, what string) int {
	n := 0
	for _, s := range in {
		if s == what {
			n++
		}
	}
	return n
}
