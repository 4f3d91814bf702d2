// Package decisions is the pane of the judge's decisions, newest first.
package decisions

import (
	"swarmdeck/engine/judge"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "decisions"

// Pane lists decisions.
type Pane struct {
	*pane.Table[judge.GateDecision]
}

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewTable(pane.Spec[judge.GateDecision]{
		Name: Name, Title: "decisions", Empty: "no decisions",
		Cols: []grid.Column{
			{Title: "TIME", Min: 8, Priority: 1},
			{Title: "DECISION", Min: 9},
			{Title: "GATE", Min: 10, Priority: 2},
			{Title: "WHY", Min: 16, Weight: 3},
			{Title: "BY", Min: 8, Weight: 1, Priority: 3},
			{Title: "TASK", Min: 19, Priority: 4},
			{Title: "ID", Min: 19, Priority: 5, Key: true},
		},
		ID: func(d *judge.GateDecision) string { return d.DecisionID },
		Row: func(env *pane.Env, d *judge.GateDecision, set func(int, string, screen.Role)) {
			set(0, pane.Clock(env.Now, d.CreatedAt), screen.Dim)
			st := pane.DecisionState(d)
			set(1, st.Label(env.Glyphs), st.Role())
			set(2, string(d.Gate), screen.Text)
			why := d.ReasonCode
			if d.Rationale != "" {
				why += ": " + d.Rationale
			}
			set(3, why, screen.Text)
			set(4, d.DecidedBy, screen.Accent)
			set(5, d.TaskID, screen.Accent)
			set(6, d.DecisionID, screen.Accent)
		},
		Item:  Item,
		Fetch: pane.World.Decisions,
	})}
}

// Item is a decision as a thing under the cursor.
func Item(d *judge.GateDecision) pane.Item {
	return pane.Item{
		Kind: "decision", ID: d.DecisionID, Task: d.TaskID, Agent: d.Agent, Session: d.Session,
		Trace: d.TraceID, Approval: d.ApprovalID,
	}
}
