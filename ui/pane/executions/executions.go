// Package executions is the pane of the runs of skills, newest first.
package executions

import (
	"context"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "executions"

// Pane lists executions.
type Pane struct{ *pane.Table[skill.Execution] }

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewTable(pane.Spec[skill.Execution]{
		Name: Name, Title: "executions", Empty: "no skill has run",
		Cols: []grid.Column{
			{Title: "STATE", Min: 11},
			{Title: "SKILL", Min: 16, Weight: 2, Key: true, Middle: true},
			{Title: "STEP", Min: 12, Weight: 2, Priority: 5, Middle: true},
			{Title: "TOOK", Min: 6, Priority: 1, Right: true},
			{Title: "TRIES", Min: 5, Priority: 4, Right: true},
			{Title: "AGE", Min: 4, Priority: 3, Right: true},
			{Title: "OUTCOME", Min: 16, Weight: 4, Priority: 2},
		},
		ID:    func(e *skill.Execution) string { return e.ExecutionID },
		Item:  Item,
		Fetch: fetch,
		Row: func(env *pane.Env, e *skill.Execution, set func(int, string, screen.Role)) {
			st := pane.ExecutionState(e)
			set(0, st.Label(env.Glyphs), st.Role())
			set(1, e.SkillName+"@"+e.SkillVersion, screen.Accent)
			set(2, e.Step, screen.Dim)
			set(3, Took(env, e), screen.Text)
			set(4, fmt.Sprint(e.RetryCount+1), screen.Dim)
			set(5, pane.Age(env.Now, e.StartedAt), screen.Dim)
			text, role := outcome(e)
			set(6, text, role)
		},
	})}
}

// fetch reads a page; skill:NAME narrows it to one skill's.
func fetch(w pane.World, ctx context.Context, tenant string, f core.Filter) (core.Page[skill.Execution], error) {
	name := ""
	if names := pane.FilterWord(&f, "skill"); len(names) > 0 {
		name = names[len(names)-1]
	}
	return w.Executions(ctx, tenant, name, f)
}

// Item is an execution as a thing under the cursor.
func Item(e *skill.Execution) pane.Item {
	return pane.Item{Kind: "execution", ID: e.ExecutionID, Task: e.TaskID, Trace: e.TraceID}
}

// Took is how long it ran, or has been running.
func Took(env *pane.Env, e *skill.Execution) string {
	if e.Status == skill.StatusPending {
		return pane.Took(env.Now.Sub(e.StartedAt))
	}
	return pane.Millis(e.DurationMS)
}

// shown is how much of a result stands in a row.
const shown = 300

func outcome(e *skill.Execution) (string, screen.Role) {
	if e.Error != "" {
		return e.Error, screen.Bad
	}
	return string(e.Result[:min(len(e.Result), shown)]), screen.Dim
}

// Link adds an execution to a sheet as a line that enter opens.
func Link(env *pane.Env, out *pane.Paras, e *skill.Execution) {
	st := pane.ExecutionState(e)
	text := st.Label(env.Glyphs) + " " + e.SkillName + "@" + e.SkillVersion + " " + Took(env, e)
	if e.RetryCount > 0 {
		text += fmt.Sprintf(", %d retries", e.RetryCount)
	}
	if e.Error != "" {
		text += ": " + e.Error
	}
	out.Link(pane.Age(env.Now, e.StartedAt), text, st.Role(), Item(e))
}
