// Package execution is the sheet of one run of a skill.
package execution

import (
	"fmt"

	"swarmdeck/engine/skill"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/executions"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "execution"

// Pane shows one execution.
type Pane struct {
	*pane.Detail[skill.Execution]
}

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewDetail(pane.DetailSpec[skill.Execution]{
		Name: Name, Fetch: pane.World.Execution, Text: text, Item: executions.Item, Live: true,
		Settled: func(e *skill.Execution) bool { return e.Status != skill.StatusPending },
		Title: func(env pane.Env, e *skill.Execution) string {
			return e.SkillName + " " + pane.ExecutionState(e).Label(env.Glyphs)
		},
	})}
}

func text(env pane.Env, e *skill.Execution, out *pane.Paras) {
	st := pane.ExecutionState(e)
	out.Add("status", st.Label(env.Glyphs), st.Role())
	if e.Error != "" {
		out.Exact("error", e.Error, screen.Bad)
	}
	ref := e.SkillName + "@" + e.SkillVersion
	out.Link("skill", ref, screen.Accent, pane.Item{Kind: "skill", ID: ref})
	if e.Step != e.SkillName {
		out.Add("step", e.Step, screen.Text)
	}
	took := executions.Took(&env, e)
	switch {
	case e.Status == skill.StatusPending:
		took += " so far"
	case e.RetryCount == 1:
		took += ", 1 retry"
	case e.RetryCount > 1:
		took += fmt.Sprintf(", %d retries", e.RetryCount)
	}
	out.Add("took", took, screen.Text)
	if e.Interrupted {
		out.Add("", "ended from outside; runs again with its task", screen.Warn)
	}
	out.Add("started", pane.When(env.Now, e.StartedAt), screen.Text)
	out.Add("ended", pane.When(env.Now, e.CompletedAt), screen.Text)
	out.Link("subagent", e.AgentID, screen.Accent, pane.Item{Kind: "subagent", ID: e.AgentID})
	out.Link("task", e.TaskID, screen.Accent, pane.Item{Kind: "task", ID: e.TaskID})
	out.Add("runner", e.Kind, screen.Text)
	out.Add("digest", e.Digest, screen.Dim)
	out.Add("trace", e.TraceID, screen.Dim)
	if len(e.Result) > 0 {
		out.Head("result")
		out.JSON("", e.Result)
	}
	out.Head("parameters")
	out.JSON("", e.Parameters)
}
