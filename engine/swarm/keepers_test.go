package swarm_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// keeper is a runner whose agents are those with a prefix, each free when it
// says so.
type keeper struct {
	agentRunner
	prefix string
	busy   string
}

func (k keeper) Slot(_, agent string) (bool, string) {
	switch {
	case !strings.HasPrefix(agent, k.prefix):
		return false, "not mine"
	case agent == k.busy:
		return false, "it is busy"
	}
	return true, ""
}

func to(kind, agent string) func(*swarm.Dispatch) {
	return func(d *swarm.Dispatch) {
		d.Kind, d.Input = kind, core.MustEncode(map[string]string{"agent": agent})
	}
}

func TestEachRunnerKeepsItsOwnAgents(t *testing.T) {
	r := newRig(t)
	sub := core.NewUUID(acme, 1, nil)
	r.swarm.Runner("agent.prompt", keeper{agentRunner{r.runner}, "a-", "a-busy"})
	r.swarm.Runner("skill.invoke", keeper{agentRunner{r.runner}, sub, ""})
	first := r.dispatch("", to("agent.prompt", "a-free"))
	second := r.dispatch("", to("skill.invoke", sub))
	waits := r.dispatch("", to("agent.prompt", "a-busy"))
	nobodys := r.dispatch("", to("skill.invoke", "stranger"))
	r.run()
	got := map[string]*fakeWork{}
	for range 2 {
		w := <-r.runner.started
		got[w.job.Task.TaskID] = w
	}
	expect.Must(t, got[first.TaskID] != nil && got[second.TaskID] != nil, "started %v", got)
	for id, want := range map[string]string{waits.TaskID: "it is busy", nobodys.TaskID: "not mine"} {
		why, err := r.swarm.Why(t.Context(), acme, id)
		expect.True(t, err == nil && why.Kind == "capacity" && strings.Contains(why.Text, want), "why: %+v, %v, want %q", why, err, want)
	}
	for _, w := range got {
		w.end(ok(`{}`))
	}
	r.status(second.TaskID, task.Succeeded)
	if list, err := r.tasks.List(t.Context(), acme, core.Filter{Agent: sub}); err != nil || list.Info.Total != 1 {
		t.Errorf("by agent: %+v, %v", list.Info, err)
	}
	_, err := r.swarm.Budgets.Set(t.Context(), alice, budget.Budget{Subject: "agent:" + sub, Tasks: 5})
	expect.No(t, err, "a subagent's budget")
	r.whole()
}

func TestAnAgentHasANameThatAnAgentCanHave(t *testing.T) {
	r := newRig(t)
	for _, agent := range []string{"a b", "a/b", "ä", strings.Repeat("a", 65)} {
		_, err := r.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "agent.prompt", Input: core.MustEncode(map[string]string{"agent": agent})})
		expect.True(t, hasCode(err, core.InvalidInput), "%s: %v", agent, err)
	}
}
