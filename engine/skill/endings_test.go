package skill_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// TestHoweverATaskEndsItsSubagentDoes: in the same transaction, with a reason.
func TestHoweverATaskEndsItsSubagentDoes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*skill.Invoke)
		do     func(*testing.T, *world, skill.Subagent) // as soon as it is invoked
		idle   bool                                     // nothing runs
		error  string
		status task.Status
	}{
		"cancelled": {do: func(t *testing.T, w *world, a skill.Subagent) {
			w.state(a.AgentID, skill.Running)
			expect.Of(w.swarm.Cancel(t.Context(), alice, a.TaskID, "enough"))(w.T)
		}, error: "cancelled: enough", status: task.Cancelled},
		"cancelled in the queue": {do: func(t *testing.T, w *world, a skill.Subagent) {
			expect.Of(w.swarm.Cancel(t.Context(), alice, a.TaskID, ""))(w.T)
		}, idle: true, error: "cancelled by alice", status: task.Cancelled},
		"undone": {do: func(t *testing.T, w *world, a skill.Subagent) {
			expect.Of(w.swarm.Undo(t.Context(), alice, a.TaskID))(w.T)
		}, idle: true, error: "cancelled: dispatch undone by alice", status: task.Cancelled},
		"out of time": {change: func(v *skill.Invoke) { v.Timeout = time.Second }, error: "the attempt ran longer than timeout_s", status: task.TimedOut},
		"its session stopped": {change: func(v *skill.Invoke) { v.Session = "day" }, do: func(t *testing.T, w *world, a skill.Subagent) {
			w.state(a.AgentID, skill.Running)
			expect.Of(w.swarm.Sessions.Stop(t.Context(), alice, a.SessionID, "over"))(w.T)
		}, error: "cancelled: session stopped: over", status: task.Cancelled},
		"denied by a rule": {change: func(v *skill.Invoke) { v.Skill = "forbidden" }, idle: true, error: "denied by rule never", status: task.Blocked},
		"denied by a person": {change: func(v *skill.Invoke) { v.Skill = "asked" }, do: func(t *testing.T, w *world, a skill.Subagent) {
			expect.Of(w.judge.Answer(t.Context(), alice, a.Waiting, judge.Answer{Reason: "no"}))(w.T)
		}, idle: true, error: "denied by alice: no", status: task.Blocked},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(w *world) {
				w.policy = []byte(`
schema: 1
name: test
rules:
  - {id: never, gates: [task.start], when: 'action.tool == "forbidden"', decision: deny, reason_code: no, risk: low}
  - {id: ask, gates: [task.start], when: 'action.tool == "asked"', decision: hitl, reason_code: ask, risk: low}
  - {id: ok, gates: [task.start, skill.step, result], when: 'true', decision: approve, reason_code: ok, risk: low}
`)
			})
			w.load(skill.Skill{Name: "work"}, skill.Skill{Name: "forbidden"}, skill.Skill{Name: "asked"})
			w.fake.on("work", func(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
				return nil, hold.Sleep(ctx, time.Minute)
			})
			ses := expect.Of(w.swarm.Sessions.Create(t.Context(), alice, "day"))(w.T)
			expect.Of(w.swarm.Sessions.Start(t.Context(), alice, ses.SessionID))(w.T)
			if !c.idle {
				w.run()
			}
			v := skill.Invoke{Skill: "work"}
			if c.change != nil {
				c.change(&v)
			}
			a := expect.Of(w.skills.Invoke(t.Context(), alice, v))(w.T)
			if c.do != nil {
				c.do(t, w, a)
			}
			a = w.over(a.AgentID)
			expect.True(t, a.State == skill.Failed && strings.HasPrefix(a.Error, c.error) && !a.CompletedAt.IsZero() && a.StartedAt.IsZero() == c.idle,
				"subagent %+v", a)
			tk, err := w.tasks.Get(t.Context(), home, a.TaskID)
			expect.True(t, err == nil && tk.Status == c.status && tk.CompletedAt == a.CompletedAt,
				"task %s at %s, %v; subagent at %s", tk.Status, tk.CompletedAt, err, a.CompletedAt)
			for _, e := range w.executions(a.AgentID) {
				expect.True(t, e.Status != skill.StatusPending, "execution %+v", e)
			}
			w.whole()
		})
	}
}

func TestErrorsAreKeptShort(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "wordy"})
	w.fake.on("wordy", func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) {
		return nil, errors.New(strings.Repeat("é", 5000))
	})
	w.run()
	a := w.over(w.invoke("wordy", `{}`).AgentID)
	e := w.executions(a.AgentID)[0]
	for _, text := range []string{a.Error, e.Error} {
		n := len(text)
		expect.True(t, n >= 990 && n <= 1000, "%d bytes: %.40s", n, text)
	}
	w.whole()
}

func TestAnExecutionIsOfAnExistingSubagent(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	gone := w.invoke("navigate", `{"location":"x"}`)
	expect.Of(w.skills.Cancel(t.Context(), alice, gone.AgentID, ""))(w.T)
	for name, id := range map[string]string{"unknown": core.NewUUID(home, 99, nil), "over": gone.AgentID} {
		_, err := w.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{
			Kind: skill.KindInvoke, Input: core.MustEncode(map[string]any{"skill": "navigate", "params": map[string]string{"location": "x"}, "agent_id": id}),
		})
		expect.True(t, isCode(err, core.NotFound) && strings.Contains(err.Error(), "agent_id"), "%s: %v", name, err)
	}
	for name, input := range map[string]string{
		"no skill": `{}`, "unknown field": `{"skill":"navigate","colour":1}`, "bad params": `{"skill":"navigate","params":3}`, "bad id": `{"skill":"navigate","agent_id":"bob"}`,
	} {
		_, err := w.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: skill.KindInvoke, Input: core.Raw(input)})
		expect.True(t, isCode(err, core.InvalidInput), "%s: %v", name, err)
	}
}
