// Package workflows is the pane of the runs of scenarios and goals, newest
// first.
package workflows

import (
	"fmt"
	"strings"

	"swarmdeck/engine/cad"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "workflows"

// Pane lists workflows.
type Pane struct{ *pane.Table[cad.Workflow] }

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewTable(pane.Spec[cad.Workflow]{
		Name: Name, Title: "workflows", Empty: "no workflows: press + to run a scenario",
		Cols: []grid.Column{
			{Title: "STATE", Min: 17},
			{Title: "DONE", Min: 16, Priority: 2},
			{Title: "SCENARIO", Min: 16, Weight: 3, Key: true, Middle: true},
			{Title: "TASKS", Min: 6, Right: true},
			{Title: "FAILED", Min: 6, Right: true},
			{Title: "AGENTS", Min: 6, Priority: 3, Right: true},
			{Title: "OPS", Min: 4, Priority: 4, Right: true},
			{Title: "ROUNDS", Min: 6, Priority: 5, Right: true},
			{Title: "TOOK", Min: 6, Priority: 3, Right: true},
			{Title: "AGE", Min: 4, Priority: 1, Right: true},
		},
		ID: func(w *cad.Workflow) string { return w.WorkflowID }, Item: Item,
		Fetch: pane.World.Workflows,
		Row: func(env *pane.Env, w *cad.Workflow, set func(int, string, screen.Role)) {
			st := State(w)
			set(0, st.Label(env.Glyphs), st.Role())
			set(1, pane.Bar(w.Completion, 10, env.ASCII()), st.Role())
			set(2, Label(w), screen.Accent)
			m := &w.Metrics
			set(3, fmt.Sprintf("%d/%d", m.Completed, m.Tasks), screen.Text)
			role := screen.Dim
			if m.FailedNow > 0 {
				role = screen.Bad
			}
			set(4, fmt.Sprint(m.FailedNow), role)
			set(5, fmt.Sprint(m.AgentsUsed), screen.Text)
			set(6, fmt.Sprint(m.TotalOperations), screen.Dim)
			set(7, fmt.Sprint(m.Rounds), screen.Dim)
			set(8, Took(env, w), screen.Text)
			set(9, pane.Age(env.Now, w.CreatedAt.Time()), screen.Dim)
		},
	})}
}

// Item is a workflow as a thing under the cursor.
func Item(w *cad.Workflow) pane.Item {
	return pane.Item{Kind: "workflow", ID: w.WorkflowID, Session: w.SessionID, Trace: w.TraceID}
}

// Label is what a workflow is a run of.
func Label(w *cad.Workflow) string {
	if w.ScenarioName != "" {
		return w.ScenarioName
	}
	return w.Goal
}

// State is how far a workflow is.
func State(w *cad.Workflow) pane.State {
	word := strings.ReplaceAll(string(w.State), "_", " ")
	state := screen.StateOf(string(w.State))
	switch {
	case w.Cancelled != "":
		state, word = screen.Cancelled, "cancelled"
	case w.State == cad.Initializing:
		state = screen.Queued
	case w.State == cad.PartialFailure:
		state = screen.Blocked
	}
	return pane.State{State: state, Word: word}
}

// Took is how long a workflow ran, or has been running.
func Took(env *pane.Env, w *cad.Workflow) string {
	switch {
	case w.StartedAt == 0:
		return ""
	case w.CompletedAt == 0:
		return pane.Took(env.Now.Sub(w.StartedAt.Time()))
	}
	return pane.Took(w.CompletedAt.Time().Sub(w.StartedAt.Time()))
}
