package skill_test

import (
	"context"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// question waits for the one open approval.
func (w *world) question() judge.Approval {
	w.T.Helper()
	var open []judge.Approval
	w.Await("an approval", func() bool {
		var err error
		open, err = w.judge.Open(w.T.Context(), home)
		return err == nil && len(open) == 1
	})
	return open[0]
}

func (w *world) answer(id string, ans judge.Answer) {
	w.T.Helper()
	expect.Of(w.judge.Answer(w.T.Context(), alice, id, ans))(w.T)
}

// guarded is the model's workflow whose detect reaches over the network.
func guarded(w *world) {
	fetch(w, func(s *skill.Skill) {
		if s.Name == "detect" {
			s.Effects = []skill.Effect{skill.Network}
		}
	})
}

func TestTheStartGateShowsTheWholeChain(t *testing.T) {
	w := newWorld(t)
	guarded(w)
	w.run()
	a := w.invoke("grasp", toTheKitchen)
	expect.True(t, a.State == skill.Idle && a.Shown() == "waiting for you", "while it is asked about: %+v", a)
	ap := w.question()
	if ap.Gate != judge.GateStart || ap.Action.Tool != "grasp" || strings.Join(ap.Action.Effects, " ") != "network" || ap.Agent.Name != a.AgentID || ap.TaskID != a.TaskID {
		t.Errorf("approval %+v", ap)
	}
	detect := expect.Of(w.skills.Skill(home, "detect"))(t)
	for _, want := range []string{`"skill":"navigate@1.0.0"`, `"params":{"area":"kitchen"}`, detect.Digest, `"effects":["network"]`, `"kind":"builtin"`} {
		expect.True(t, strings.Contains(string(ap.Action.Args), want), "%s is missing in %s", want, ap.Action.Args)
	}
	w.answer(ap.ApprovalID, judge.Answer{Reason: "not today"})
	if a = w.over(a.AgentID); a.State != skill.Failed || !strings.Contains(a.Error, "not today") || !a.StartedAt.IsZero() || len(w.executions(a.AgentID)) != 0 {
		t.Errorf("denied: %+v", a)
	}
	w.whole()
}

// begun is a run of the guarded workflow that waits for detect's approval.
func begun(w *world) (skill.Subagent, judge.Approval) {
	w.T.Helper()
	guarded(w)
	w.run()
	a := w.invoke("grasp", toTheKitchen)
	w.answer(w.question().ApprovalID, judge.Answer{Approve: true})
	w.Await("navigate", func() bool { return len(w.executions(a.AgentID)) == 1 })
	return a, w.question()
}

func TestAStepWithAnEffectIsAskedAboutWithItsParameters(t *testing.T) {
	w := newWorld(t)
	defer w.reading()()
	a, ap := begun(w)
	expect.True(t, ap.Gate == judge.GateSkill && ap.Action.CallID == "detect" && strings.Contains(string(ap.Action.Args), `"params":{"area":"kitchen"}`),
		"approval %+v", ap)
	if a := w.agent(a.AgentID); a.State != skill.Running || a.Waiting != ap.ApprovalID {
		t.Errorf("while it waits: %+v", a)
	}
	w.Await("it is shown to wait", func() bool { a := w.agent(a.AgentID); return a.Shown() == "waiting for you" })
	w.answer(ap.ApprovalID, judge.Answer{Approve: true})
	a = w.over(a.AgentID)
	expect.True(t, a.State == skill.Completed && a.Waiting == "", "%+v", a)
	used, err := w.judge.Approval(t.Context(), home, ap.ApprovalID)
	expect.True(t, err == nil && !used.UsedAt.IsZero(), "the approval is not marked used: %+v, %v", used, err)
	w.whole()
}

func TestAStepRunsWithTheParametersThatWereApproved(t *testing.T) {
	w := newWorld(t)
	a, ap := begun(w)
	args := string(ap.Action.Args)
	for name, bad := range map[string]string{
		"another skill": strings.Replace(args, `{"skill":"detect@1.0.0"`, `{"skill":"grasp@1.0.0"`, 1),
		"another step":  strings.Replace(args, `"step":"detect"`, `"step":"grasp"`, 1),
		"a wrong type":  strings.Replace(args, `"kitchen"`, `7`, 1),
	} {
		_, err := w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true, Edit: core.Raw(bad)})
		expect.True(t, isCode(err, core.InvalidInput), "%s: %v in %s", name, err, bad)
	}
	w.answer(ap.ApprovalID, judge.Answer{Approve: true, Edit: core.Raw(`{"params":{"area":"hall"}}`)})
	a = w.over(a.AgentID)
	calls := w.fake.of("detect")
	expect.True(t, a.State == skill.Completed && len(calls) == 1 && string(calls[0].Params) == `{"area":"hall"}`, "%s %q: %+v", a.State, a.Error, calls)
	w.whole()
}

func TestADeniedStepBlocksTheRun(t *testing.T) {
	for name, ans := range map[string]judge.Answer{"deny": {Reason: "no cameras"}, "abort": {Reason: "no cameras", Abort: true}} {
		w := newWorld(t)
		a, ap := begun(w)
		w.answer(ap.ApprovalID, ans)
		a = w.over(a.AgentID)
		all := w.executions(a.AgentID)
		expect.True(t, a.State == skill.Failed && strings.Contains(a.Error, "no cameras") && len(a.Results) == 1 && len(w.fake.of("detect")) == 0,
			"%s: %+v", name, a)
		expect.True(t, len(all) == 2 && all[1].Status == skill.StatusFailed && all[1].Error == "denied: no cameras" && all[1].RetryCount == 0,
			"%s: %+v", name, all)
		res, err := w.tasks.Result(t.Context(), home, a.TaskID)
		expect.True(t, err == nil && res.Status == task.Blocked && len(res.Denials) == 1, "%s: result %+v, %v", name, res, err)
		w.whole()
		w.Close()
	}
}

func TestADeniedStepOfACompositeMayHaveAFallback(t *testing.T) {
	for name, c := range map[string]struct {
		abort bool
		want  skill.State
	}{"deny": {false, skill.Completed}, "abort": {true, skill.Failed}} {
		w := newWorld(t)
		w.load(skill.Skill{Name: "call", Effects: []skill.Effect{skill.Network}}, skill.Skill{Name: "guess"},
			skill.Skill{Name: "find", Runner: skill.Spec{Kind: "composite", Steps: []skill.Step{{ID: "a", Skill: "call", ErrorPolicy: skill.Fallback, Fallback: "guess"}}}})
		w.fake.gives("guess", `{}`)
		w.run()
		a := w.invoke("find", `{}`)
		w.answer(w.question().ApprovalID, judge.Answer{Approve: true})
		w.state(a.AgentID, skill.Running)
		w.answer(w.question().ApprovalID, judge.Answer{Reason: "no", Abort: c.abort})
		a = w.over(a.AgentID)
		expect.True(t, a.State == c.want, "%s: %s %q", name, a.State, a.Error)
		w.Close()
	}
}

func TestCancellingARunVoidsItsQuestion(t *testing.T) {
	w := newWorld(t)
	a, ap := begun(w)
	got, err := w.skills.Stop(t.Context(), alice, a.AgentID)
	expect.True(t, err == nil && got.State == skill.Failed && got.Error == "stopped", "stopped while it waits: %+v, %v", got, err)
	ap, err = w.judge.Approval(t.Context(), home, ap.ApprovalID)
	expect.True(t, err == nil && ap.Status == judge.Voided, "%+v, %v", ap, err)
	w.whole()
}

func TestTheInvokedSkillIsAskedAboutAgainOnlyWhenItIsFed(t *testing.T) {
	w := newWorld(t)
	w.load(
		skill.Skill{Name: "find", ParametersSchema: core.Raw(`{"type":"object","properties":{"what":{}}}`)},
		skill.Skill{
			Name: "send", Effects: []skill.Effect{skill.Network}, Dependencies: []string{"find"},
			ParametersSchema: core.Raw(`{"type":"object","properties":{"address":{"type":"string"}},"required":["address"]}`),
		},
	)
	w.fake.gives("find", `{"address":"there"}`)
	w.fake.gives("send", `{}`)
	w.run()
	a := w.invoke("send", `{"address":"here"}`)
	w.answer(w.question().ApprovalID, judge.Answer{Approve: true})
	a = w.over(a.AgentID)
	expect.True(t, a.State == skill.Completed, "with its own address: %s %q", a.State, a.Error)
	a = w.invoke("send", `{}`)
	w.answer(w.question().ApprovalID, judge.Answer{Approve: true})
	w.state(a.AgentID, skill.Running)
	ap := w.question()
	expect.True(t, ap.Gate == judge.GateSkill && strings.Contains(string(ap.Action.Args), `"address":"there"`), "%+v", ap)
	w.answer(ap.ApprovalID, judge.Answer{Approve: true})
	a = w.over(a.AgentID)
	expect.True(t, a.State == skill.Completed, "with the address that was found: %s %q", a.State, a.Error)
}

func TestASkillThatChangedAfterItsDispatchIsAskedAbout(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "lookup"})
	w.fake.on("lookup", func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) { return core.Raw(`{}`), nil })
	a := w.invoke("lookup", `{}`)                                               // approved: it does nothing
	w.load(skill.Skill{Name: "lookup", Effects: []skill.Effect{skill.Network}}) // now it does
	w.run()
	ap := w.question()
	expect.True(t, ap.Gate == judge.GateSkill && ap.TaskID == a.TaskID && len(w.fake.of("lookup")) == 0, "%+v", ap)
	w.answer(ap.ApprovalID, judge.Answer{Approve: true})
	a = w.over(a.AgentID)
	expect.True(t, a.State == skill.Completed, "%s %q", a.State, a.Error)
}
