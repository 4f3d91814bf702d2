package acp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"swarmdeck/drivers/drivertest/model"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// limit gives the agent a budget in tokens.
func (d *desk) limit(tokens int64) {
	d.t.Helper()
	expect.Of(d.eng.Swarm.Budgets.Set(d.t.Context(), d.by, budget.Budget{Subject: "agent:" + d.name, Tokens: tokens}))(d.t)
}

// denyMore denies more of a budget once it is used up, and reports whether it was.
func (d *desk) denyMore() bool {
	d.t.Helper()
	over := d.open(func(a judge.Approval) bool { return a.Gate == judge.GateBudget })
	if over == nil {
		return false
	}
	expect.Of(d.eng.Judge.Answer(d.t.Context(), d.by, over.ApprovalID, judge.Answer{Reason: "enough"}))(d.t)
	return true
}

// spendAll approves what a task asks for until its budget is used up, denies more, and
// waits for the task to end.
func (d *desk) spendAll(id string) story {
	d.t.Helper()
	expect.Await(d.t, "the budget is used up", func() bool {
		if d.denyMore() {
			return true
		}
		if call := d.open(func(a judge.Approval) bool { return a.TaskID == id }); call != nil {
			expect.Of(d.eng.Judge.Answer(d.t.Context(), d.by, call.ApprovalID, judge.Answer{Approve: true, Reason: "fine"}))(d.t)
		}
		return false
	})
	return d.story(id)
}

// TestABudgetEndsATurnOfARealAgent has each ask its model seven times in one turn, with a
// budget of less than three.
func TestABudgetEndsATurnOfARealAgent(t *testing.T) {
	const steps, most = 6, 300
	for name, agent := range realAgents() {
		t.Run(name, func(t *testing.T) {
			d := newRealDesk(t, agent)
			d.limit(most)
			var script []string
			for i := range steps {
				script = append(script, fmt.Sprintf("RUN: echo %d > %s", i, d.file(fmt.Sprint("step", i))))
			}
			s := d.spendAll(d.begin(strings.Join(script, "\nTHEN "), 0))
			t.Logf("%+v", s)
			whole := int64((steps + 1) * (model.TokensIn + model.TokensOut))
			expect.True(t, s.status == task.Cancelled && len(s.prompts) == 1 && s.spent >= most && s.spent < whole && len(s.calls) != 0 && s.unbroken,
				"of %d tokens: %+v", whole, s)
			expect.True(t, d.exists("step0") && !d.exists(fmt.Sprint("step", steps-1)), "it began nothing, or was done")
			n := len(d.model.Requests())
			expect.True(t, int64(n) < steps+1, "its model was asked %d times", n)
			all, err := d.eng.Swarm.Budgets.List(t.Context(), d.by.Tenant)
			expect.True(t, err == nil && len(all) == 1 && all[0].Used.Tokens == s.spent && all[0].Denied, "the budget: %+v %v", all, err)
		})
	}
}

// TestABudgetEndsATurnOfARecordedWire has those whose wire tells what a request took
// before what came of it is done: no model of theirs is seen. The end may come before
// the call does, so there is one that was canceled or none.
func TestABudgetEndsATurnOfARecordedWire(t *testing.T) {
	for _, name := range []string{"claude-agent-acp", "qwen-code"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(scenarios(), func(sc scenario) bool { return sc.name == "cancelled" }) // as the budget does
			d, _ := newPlayedDesk(t, name, playedAs()[name], scenarios()[i:i+1])
			d.limit(model.TokensIn)
			id := d.begin(scenarios()[i].message, 0)
			expect.Await(t, "the budget is used up", d.denyMore)
			s := d.story(id)
			if s.status != task.Cancelled || len(s.prompts) != 1 || s.spent != model.TokensIn+model.TokensOut || len(s.calls) > 1 || len(s.calls) == 1 && s.calls[0].status != "canceled" {
				t.Errorf("%+v", s)
			}
		})
	}
}
