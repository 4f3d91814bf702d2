package skill

import (
	"context"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/skill"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// NewExecution makes the sheet of one run of a skill.
func NewExecution(of Skills) *pane.Detail[skill.Execution] {
	return pane.NewDetail(pane.DetailSpec[skill.Execution]{
		Name: "execution", Fetch: of.Execution, Text: executionText, Item: executionItem, Live: true,
		Settled: func(e *skill.Execution) bool { return e.Status != skill.StatusPending },
		Title:   func(e *skill.Execution) string { return e.SkillName },
		State:   func(_ *pane.Env, e *skill.Execution) pane.State { return pane.ExecutionState(e) },
	})
}

func executionText(env pane.Env, e *skill.Execution, out *pane.Paras) {
	out.Fields(&env, e, "error,exact,bad")
	ref := e.SkillName + "@" + e.SkillVersion
	out.Link("skill", ref, screen.Accent, pane.Item{Kind: "skill", ID: ref})
	if e.Step != e.SkillName {
		out.Add("step", e.Step, screen.Text)
	}
	took := executionTook(&env, e) + retries(e)
	if e.Status == skill.StatusPending {
		took += " so far"
	}
	out.Add("took", took, screen.Text)
	if e.Interrupted {
		out.Add("", "ended from outside; runs again with its task", screen.Warn)
	}
	out.Fields(&env, e, "started:started_at ended:completed_at subagent:agent_id,opens task:task_id,opens runner:kind digest,dim trace:trace_id,dim")
	out.Document("result", e.Result)
	out.Document("parameters", e.Parameters)
}

// NewExecutions makes the pane of the runs of skills, newest first.
func NewExecutions(of Skills) *pane.Table[skill.Execution] {
	return pane.NewTable(pane.Spec[skill.Execution]{
		Name: "executions", Title: "executions", Empty: "no skill has run",
		Face: face.For[skill.Execution](),
		Cells: map[string]pane.Cell[skill.Execution]{
			"STATUS": pane.StateCell(pane.ExecutionState),
			"TOOK": func(env *pane.Env, e *skill.Execution) (string, screen.Role) {
				return executionTook(env, e), screen.Text
			},
			"OUTCOME": outcome,
		},
		Item: executionItem,
		// skill:NAME narrows a page to one skill's.
		Fetch: func(ctx context.Context, tenant string, f core.Filter) (core.Page[skill.Execution], error) {
			name := ""
			if names := pane.FilterWord(&f, "skill"); len(names) > 0 {
				name = names[len(names)-1]
			}
			return of.Executions(ctx, tenant, name, f)
		},
	})
}

// executionItem is an execution as a thing under the cursor.
func executionItem(e *skill.Execution) pane.Item {
	return pane.Item{Kind: "execution", ID: e.ExecutionID, Task: e.TaskID, Trace: e.TraceID}
}

// executionTook is how long it ran, or has been running.
func executionTook(env *pane.Env, e *skill.Execution) string {
	if e.Status == skill.StatusPending {
		return face.Took(env.Now.Sub(e.StartedAt))
	}
	return pane.Millis(e.DurationMS)
}

// retries says how often it was tried again, "" for never.
func retries(e *skill.Execution) string {
	switch e.RetryCount {
	case 0:
		return ""
	case 1:
		return ", 1 retry"
	}
	return fmt.Sprintf(", %d retries", e.RetryCount)
}

// outcomeShown is how much of a result stands in a row.
const outcomeShown = 300

func outcome(_ *pane.Env, e *skill.Execution) (string, screen.Role) {
	if e.Error != "" {
		return e.Error, screen.Bad
	}
	return string(e.Result[:min(len(e.Result), outcomeShown)]), screen.Dim
}

// linkExecution adds an execution to a sheet as a line that enter opens.
func linkExecution(env *pane.Env, out *pane.Paras, e *skill.Execution) {
	st := pane.ExecutionState(e)
	text := st.Label(env.Glyphs) + " " + e.SkillName + "@" + e.SkillVersion + " " + executionTook(env, e)
	text += retries(e)
	if e.Error != "" {
		text += ": " + e.Error
	}
	out.Link(pane.Age(env.Now, e.StartedAt), text, st.Role(), executionItem(e))
}
