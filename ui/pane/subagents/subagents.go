// Package subagents is the pane of all that ran or runs skills, newest first.
package subagents

import (
	"swarmdeck/engine/skill"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "subagents"

// Pane lists subagents.
type Pane struct{ *pane.Table[skill.Subagent] }

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewTable(pane.Spec[skill.Subagent]{
		Name: Name, Title: "subagents", Empty: "no subagents: invoke a skill in the skills pane",
		Cols: []grid.Column{
			{Title: "STATE", Min: 11},
			{Title: "NAME", Min: 12, Weight: 2, Key: true, Middle: true},
			{Title: "SKILL", Min: 14, Weight: 2, Priority: 1},
			{Title: "NOW", Min: 10, Weight: 1, Priority: 4, Middle: true},
			{Title: "AGE", Min: 4, Priority: 3, Right: true},
			{Title: "WHY", Min: 16, Weight: 3, Priority: 2},
		},
		ID: func(a *skill.Subagent) string { return a.AgentID },
		Row: func(env *pane.Env, a *skill.Subagent, set func(int, string, screen.Role)) {
			st := pane.SubagentState(env, a)
			set(0, st.Label(env.Glyphs), st.Role())
			set(1, a.Label(), screen.Accent)
			set(2, a.Skill, screen.Text)
			set(3, a.Step, screen.Dim)
			set(4, pane.Age(env.Now, a.CreatedAt), screen.Dim)
			text, role := Why(env, a)
			set(5, text, role)
		},
		Item:  Item,
		Fetch: pane.World.Subagents,
	})}
}

// Item is a subagent as a thing under the cursor.
func Item(a *skill.Subagent) pane.Item {
	return pane.Item{
		Kind: "subagent", ID: a.AgentID, Task: a.TaskID, Session: a.SessionID, Trace: a.TraceID, Approval: a.Waiting,
		Paused: a.State == skill.Paused,
	}
}

// Why is what a subagent waits for, or what it failed of.
func Why(env *pane.Env, a *skill.Subagent) (string, screen.Role) {
	if a.Waiting == "" {
		return a.Error, screen.Bad
	}
	for _, ask := range env.Snap.Approvals {
		if ask.ApprovalID == a.Waiting {
			return "asks: " + pane.Intent(ask), screen.Warn
		}
	}
	return "asks: " + a.Waiting, screen.Warn
}
