package judge_test

import (
	"context"
	"slices"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func TestAProgramThatRulesNoMoreIsReleased(t *testing.T) {
	s := &scripted{reply: says("approve", "fine")}
	f := setup(t, withPrograms(s))
	ctx := context.Background()
	in := programOf("approve")
	in.Serve = true
	p := f.propose(alice, in)
	name := acme + "/" + p.Version
	releasedBy := func(what string, want bool) {
		t.Helper()
		expect.Is(t, slices.Contains(s.released, name), want, what, "released it")
		s.released = nil
	}
	_, _, err := f.TestPolicy(ctx, robot, p.PolicyID)
	expect.No(t, err)
	releasedBy("the end of its cases", true)
	expect.Of(f.BacktestPolicy(ctx, alice, p.PolicyID, 0))(t)
	releasedBy("the end of a backtest", true)
	expect.Of(f.Explain(ctx, acme, p.PolicyID, core.Raw(`{"name":"exec_fs.write"}`)))(t)
	releasedBy("the end of a question", true)
	expect.Of(f.Activate(ctx, alice, p.PolicyID))(t)
	f.commit(call("fs.write", `{"path":"a"}`))
	_, _, err = f.TestPolicy(ctx, robot, p.PolicyID)
	expect.No(t, err)
	releasedBy("its rule", false)
	expect.Of(f.Restore(ctx, alice, judge.BasePolicy))(t)
	releasedBy("the end of its rule", true)
	f.healthy()
}

// A decision that began before another policy was activated asks the old
// program once more: that must not keep its process for good.
func TestADecisionThatOutlivesItsPolicyReleasesIt(t *testing.T) {
	s := &scripted{reply: says("approve", "fine")}
	f := setup(t, withPrograms(s))
	in := programOf("approve")
	in.Serve = true
	p := f.activated(in)
	s.during = func() {
		s.during = nil
		if _, err := f.Restore(context.Background(), alice, judge.BasePolicy); err != nil {
			t.Error(err)
		}
		s.released = nil
	}
	f.Evaluate(context.Background(), acme, call("fs.write", `{"path":"a"}`))
	if !slices.Contains(s.released, acme+"/"+p.Version) {
		t.Errorf("released %v", s.released)
	}
}
