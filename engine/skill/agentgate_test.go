package skill_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// askFirst has a person asked before an agent is.
const askFirst = `{schema: 1, name: test, rules: [
  {id: ask, gates: [task.start], when: 'action.kind == "agent.prompt"', decision: hitl, reason_code: test.ask, risk: low, rationale: an agent is asked},
  {id: ok, gates: [task.start, result], when: 'true', decision: approve, reason_code: test.ok, risk: low}]}`

// lateAgent is the runner of kind agent over a swarm that is made after it.
type lateAgent struct{ w *world }

func (l lateAgent) Check(spec skill.Spec) error {
	return skill.NewAgentRunner(l.w.tasks, l.w.swarm).Check(spec)
}

func (l lateAgent) Start(ctx context.Context, call skill.Call) (swarm.Work, error) {
	return skill.NewAgentRunner(l.w.tasks, l.w.swarm).Start(ctx, call)
}

// prompted is the swarm's runner of agent.prompt tasks.
type prompted struct{ do skill.Func }

func (prompted) Check(_ string, input core.Raw) (string, judge.Action, error) {
	return "prompt", judge.Action{Kind: "agent.prompt", Args: input}, nil
}
func (prompted) Slot(_, _ string) (bool, string) { return true, "" }

func (p prompted) Start(ctx context.Context, job swarm.Job) (swarm.Work, error) {
	w := skill.RunFunc(ctx, skill.Call{}, p.do)
	go beat(job, w)
	return w, nil
}

// askedFirst is a world with one skill of kind agent and a second for each try,
// whose agent may only be asked once a person has agreed.
func askedFirst(t *testing.T, do skill.Func) (*world, skill.Subagent, judge.Approval) {
	w := newWorld(t, func(w *world) {
		w.policy = []byte(askFirst)
		w.kinds["agent"] = lateAgent{w}
	})
	w.swarm.Runner("agent.prompt", prompted{do})
	w.load(skill.Skill{Name: "review", Timeout: 1, MaxRetries: 3, Runner: skill.Spec{Kind: "agent", Agent: "reviewer", Prompt: "Review ${file}."}})
	w.run()
	a := w.invoke("review", `{"file":"a.go"}`)
	return w, a, w.question()
}

func TestWaitingForAPersonIsNoTimeOfTheSkill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a, ap := askedFirst(t, func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) {
			return core.Raw(`{"fine":true}`), nil
		})
		expect.True(t, ap.RequestedBy == "alice" && strings.Contains(string(ap.Action.Args), `"message":"Review a.go."`), "approval %+v", ap)
		time.Sleep(1500 * time.Millisecond) // longer than a try may run
		w.answer(ap.ApprovalID, judge.Answer{Approve: true})
		a = w.over(a.AgentID)
		expect.True(t, a.State == skill.Completed, "subagent %+v", a)
		all := w.executions(a.AgentID)
		expect.True(t, len(all) == 1 && all[0].RetryCount == 0 && string(all[0].Result) == `{"fine":true}`, "executions %+v", all)
		w.whole()
	})
}

func TestTheAgentsOwnTimeIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a, ap := askedFirst(t, busy)
		w.answer(ap.ApprovalID, judge.Answer{Approve: true})
		second := w.question() // of the next try
		w.Await("the end of the first child", func() bool {
			tk, err := w.tasks.Get(t.Context(), home, ap.TaskID)
			return err == nil && tk.Status == task.Cancelled
		})
		w.answer(second.ApprovalID, judge.Answer{Reason: "it hangs"})
		a = w.over(a.AgentID)
		expect.True(t, a.State == skill.Failed && strings.Contains(a.Error, "it hangs"), "subagent %+v", a)
	})
}

func TestADeniedAgentIsNotAskedAgain(t *testing.T) {
	w, a, ap := askedFirst(t, nil)
	w.answer(ap.ApprovalID, judge.Answer{Reason: "not this file"})
	a = w.over(a.AgentID)
	expect.True(t, a.State == skill.Failed && strings.Contains(a.Error, "not this file"), "subagent %+v", a)
	tk, err := w.tasks.Wait(t.Context(), home, a.TaskID, "")
	expect.True(t, err == nil && tk.Status == task.Blocked, "task %+v %v", tk, err)
	all := w.executions(a.AgentID)
	expect.True(t, len(all) == 1 && all[0].RetryCount == 0, "executions %+v", all)
	w.whole()
}
