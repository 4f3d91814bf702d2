package judge_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
	"swarmdeck/store"
)

var always = judge.Always{For: "anyone", Expires: time.Hour, MaxUses: 3}

// approveAlways opens an approval for ask and approves it with a rule.
func (f *fixture) approveAlways(ask judge.Ask, w judge.Always) (judge.Approval, error) {
	f.t.Helper()
	a := f.opened(ask)
	return f.Answer(f.t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "routine", Always: &w})
}

func (f *fixture) rule() judge.Rule {
	f.t.Helper()
	rules, err := f.Rules(f.t.Context(), acme)
	if err != nil || len(rules) == 0 {
		f.t.Fatalf("rules %v, %v", rules, err)
	}
	return rules[0]
}

func TestAlwaysStandsInForThePersonUntilUsedUp(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, argv("make build"))
	expect.Of(f.approveAlways(ask, always))(t)
	r := f.rule()
	if r.Owner != "alice" || r.Uses != 0 || r.MaxUses != 3 || r.Risk != judge.Medium || r.ExpiresAt.Sub(r.CreatedAt) != time.Hour {
		t.Errorf("rule %+v", r)
	}
	for i := range 3 {
		d, a := f.commit(ask)
		if a != nil || d.Decision != judge.Approve || d.ReasonCode != "always.rule" || d.RuleID != r.RuleID {
			t.Fatalf("use %d: %+v", i+1, d)
		}
		expect.Is(t, f.rule().Uses, i+1)
	}
	if d, _ := f.commit(ask); d.Decision != judge.HITL {
		t.Errorf("after the last use: %s %s", d.Decision, d.ReasonCode)
	}
	f.healthy()
}

func TestReconcileFindsARuleOrApprovalWidenedBehindTheLog(t *testing.T) {
	f := setup(t)
	expect.Of(f.approveAlways(execBy(robot, argv("make build")), always))(t)
	f.healthy()
	for _, c := range []struct {
		bucket   store.Bucket
		from, to string
	}{
		{"always", `"max_uses":3`, `"max_uses":9`},
		{"approval", `"digest":"`, `"digest":"0`},
		{"approval", `make build`, `make world`},
		{"approval", `"make"`, `"fake"`},
	} {
		err := f.ledger.Update(t.Context(), alice, func(tx *audit.Tx) error {
			first := []byte{0, 0, 0, 0, 0, 0, 0, 1}
			old, err := tx.Get(c.bucket, first)
			if err != nil {
				return err
			}
			return tx.Derived().Put(c.bucket, first, bytes.Replace(bytes.Clone(old), []byte(c.from), []byte(c.to), 1))
		})
		expect.No(t, err)
		deltas := expect.Of(f.ledger.Reconcile(t.Context(), acme))(t)
		if !slices.ContainsFunc(deltas, func(d audit.Delta) bool { return d.Subject == string(c.bucket) && d.Field == "row" }) {
			t.Errorf("%s: %+v", c.bucket, deltas)
		}
	}
}

// What Evaluate saw may be used up when Commit comes.
func TestAlwaysIsCountedInTheTransaction(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, argv("make build"))
	if _, err := f.approveAlways(ask, judge.Always{For: "anyone", Expires: time.Hour, MaxUses: 10}); err != nil {
		t.Fatal(err)
	}
	v := f.Evaluate(t.Context(), acme, ask)
	if v.Decision != judge.Approve {
		t.Fatal(v.ReasonCode)
	}
	var mu sync.Mutex
	approved, asked := 0, 0
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			d, a, err := f.tryCommit(ask)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case d.Decision == judge.Approve:
				approved++
			case a != nil:
				asked++
			}
		})
	}
	wg.Wait()
	if approved != 10 || asked != 30 {
		t.Errorf("%d approved and %d asked, with 10 uses for 40", approved, asked)
	}
	err := f.ledger.Update(t.Context(), robot, func(tx *audit.Tx) error {
		_, _, err := f.Commit(tx, ask, v)
		return err
	})
	expect.Err(t, err, judge.ErrStale, "committing an old verdict")
	f.healthy()
}

func TestAlwaysEnds(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, argv("make build"))
	if _, err := f.approveAlways(ask, always); err != nil {
		t.Fatal(err)
	}
	stale := f.Evaluate(t.Context(), acme, ask)
	f.clock.pass(time.Hour)
	if v := f.Evaluate(t.Context(), acme, ask); v.Decision != judge.HITL {
		t.Errorf("expired, and %s", v.ReasonCode)
	}
	err := f.ledger.Update(t.Context(), robot, func(tx *audit.Tx) error {
		_, _, err := f.Commit(tx, ask, stale)
		return err
	})
	expect.Err(t, err, judge.ErrStale, "expired between evaluation and commit")
	expect.Of(f.approveAlways(ask, always))(t)
	if v := f.Evaluate(t.Context(), acme, ask); v.Decision != judge.Approve {
		t.Fatalf("a new rule: %s", v.ReasonCode)
	}
	for range 2 { // twice is no error
		if r, err := f.RevokeRule(t.Context(), bob, f.rule().RuleID); err != nil || !r.Revoked {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if v := f.Evaluate(t.Context(), acme, ask); v.Decision != judge.HITL {
		t.Errorf("revoked, and %s", v.ReasonCode)
	}
	_, err = f.RevokeRule(t.Context(), robot, f.rule().RuleID)
	expect.Is(t, code(err), core.Denied, "an agent revoked")
	_, err = f.RevokeRule(t.Context(), bob, core.NewID(core.RulePrefix, acme, 99))
	expect.Is(t, code(err), core.NotFound, "a rule that is not there")
	f.healthy()
}

func TestAlwaysSurvivesARestart(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, argv("make build"))
	expect.Of(f.approveAlways(ask, always))(t)
	f.commit(ask)
	again := expect.Of(judge.New(judge.Options{Ledger: f.ledger}))(t)
	f.Judge = again
	if d, _ := f.commit(ask); d.ReasonCode != "always.rule" || f.rule().Uses != 2 {
		t.Errorf("%s, %d uses", d.ReasonCode, f.rule().Uses)
	}
}

// No always rule is stronger than a deny rule, nor stands for what only a
// person may decide.
func TestR5AlwaysHasLimits(t *testing.T) {
	f := setup(t)
	for want, w := range map[string]judge.Always{
		"agent, run":        {For: "everything", Expires: time.Hour, MaxUses: 1},
		"30 days":           {For: "anyone", Expires: 31 * 24 * time.Hour, MaxUses: 1},
		"1s-720h":           {For: "anyone", MaxUses: 1},
		"1-1000":            {For: "anyone", Expires: time.Hour, MaxUses: 1001},
		"max_uses: 0":       {For: "anyone", Expires: time.Hour},
		"always: session":   {For: "session", Expires: time.Hour, MaxUses: 1},
		"always: project":   {For: "project", Expires: time.Hour, MaxUses: 1},
		"at high risk":      {For: "anyone", Any: []string{"argv.1"}, Expires: time.Hour, MaxUses: 1},
		"after its program": {For: "anyone", Any: []string{"argv.0"}, Expires: time.Hour, MaxUses: 1},
		"places":            {For: "anyone", Any: make([]string, 17), Expires: time.Hour, MaxUses: 1},
		"printable":         {For: "anyone", Any: []string{"a\nb"}, Expires: time.Hour, MaxUses: 1},
	} {
		ask := execBy(robot, argv("make all"))
		if want == "at high risk" {
			ask = execBy(robot, rmBuild)
		}
		_, err := f.approveAlways(ask, w)
		if code(err) != core.InvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	ask := execBy(robot, `{}`)
	ask.Gate = judge.GateBudget
	_, err := f.approveAlways(ask, always)
	expect.Is(t, code(err), core.InvalidInput, "a rule for a budget")
	ask = execBy(robot, argv("make"))
	ask.Risk = judge.Critical
	_, err = f.approveAlways(ask, always)
	expect.Is(t, code(err), core.InvalidInput, "a rule at critical risk")
	if rules, _ := f.Rules(t.Context(), acme); len(rules) != 0 {
		t.Errorf("%d rules were made", len(rules))
	}
	f.healthy()
}

func TestDenyFloorStandsAboveAlways(t *testing.T) {
	rules := func(extra ...string) func(*judge.Options) {
		return withPolicy(policy(append(extra, ruleLine("ask", "true", "hitl"))...))
	}
	f := setup(t, rules())
	ask := execBy(robot, `{"argv":["deploy"],"n":1}`)
	expect.Of(f.approveAlways(ask, judge.Always{For: "anyone", Expires: time.Hour, MaxUses: 5}))(t)
	strict, err := judge.New(judge.Options{Ledger: f.ledger, Policy: []byte(policy(ruleLine("ask", "true", "hitl"), ruleLine("no", "action.args.n == 1", "deny")))})
	expect.No(t, err)
	if v := strict.Evaluate(t.Context(), acme, ask); v.Decision != judge.Deny {
		t.Errorf("an always rule beat a deny rule: %s %s", v.Decision, v.ReasonCode)
	}
	faulty, err := judge.New(judge.Options{Ledger: f.ledger, Policy: []byte(policy(ruleLine("ask", "action.args.nope == 1", "hitl")))})
	expect.No(t, err)
	if v := faulty.Evaluate(t.Context(), acme, ask); v.ReasonCode != "policy.error" {
		t.Errorf("an always rule stood in for a faulty policy: %s", v.ReasonCode)
	}
	// An approval from before the deny rule can't become an always rule.
	f.Judge = strict
	f.Own(judge.GateStart, f.owner)
	ask.Action.Args = core.Raw(`{"argv":["other"],"n":2}`)
	a := f.opened(ask)
	edit := judge.Answer{Approve: true, Reason: "x", Edit: core.Raw(`{"argv":["other"],"n":1}`), Always: &always}
	_, err = f.Answer(t.Context(), alice, a.ApprovalID, edit)
	expect.Is(t, code(err), core.Denied, "edited into a denial, always")
}

func TestBacktestCountsWhatTheRuleWouldFlip(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, argv("make build"))
	for i := range 5 {
		a := f.opened(ask)
		ans := judge.Answer{Approve: i < 3, Reason: fmt.Sprint(i)}
		expect.Of(f.Answer(t.Context(), alice, a.ApprovalID, ans))(t)
	}
	f.opened(execBy(robot, argv("make test")))
	a := f.opened(ask)
	expect.Of(f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Always: &always}))(t)
	expect.Is(t, f.rule().Backtest, judge.Backtest{Checked: 5, Flips: 2}, "the rule keeps")
}
