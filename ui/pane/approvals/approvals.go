// Package approvals is the inbox: what waits for a person, most urgent first
// (risk × time left). It never pops up over what has the focus.
package approvals

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/judge"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "approvals"

// Pane lists open approvals.
type Pane struct {
	*pane.Table[*judge.Approval]
}

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewTable(pane.Spec[*judge.Approval]{
		Name: Name, Title: "approvals", Empty: "nothing waits for you",
		Cols: []grid.Column{
			{Title: "RISK", Min: 8},
			{Title: "LEFT", Min: 6, Priority: 1, Right: true},
			{Title: "WHAT", Min: 28, Weight: 5, Key: true},
			{Title: "AGENT", Min: 8, Weight: 1, Priority: 2},
			{Title: "STATE", Min: 10, Priority: 4},
			{Title: "AGE", Min: 4, Priority: 5, Right: true},
			{Title: "ID", Min: 19, Priority: 6, Middle: true},
		},
		ID:   func(a **judge.Approval) string { return (*a).ApprovalID },
		Row:  row,
		Item: func(a **judge.Approval) pane.Item { return Item(*a) },
	})}
}

// Refresh shows the snapshot's open approvals in the engine's order.
func (p *Pane) Refresh(env pane.Env) tea.Cmd {
	p.SetRows(env, env.Snap.Approvals)
	return nil
}

// Item is an approval as a thing under the cursor.
func Item(a *judge.Approval) pane.Item {
	return pane.Item{
		Kind: "approval", ID: a.ApprovalID, Approval: a.ApprovalID, Task: a.TaskID, Agent: a.Agent.Name,
		Session: a.Session, Trace: a.TraceID, Digest: a.Digest,
	}
}

func row(env *pane.Env, p **judge.Approval, set func(int, string, screen.Role)) {
	a := *p
	set(0, string(a.Risk), pane.RiskRole(a.Risk))
	role := screen.Text
	ends, _ := a.Ends()
	if ends.Sub(env.Now) < ends.Sub(a.CreatedAt)/4 {
		role = screen.Bad
	}
	set(1, pane.Left(env.Now, ends), role)
	set(2, pane.Intent(a), screen.Text)
	who := a.Agent.Name
	if who == "" {
		who = a.RequestedBy
	}
	reach, how := pane.Profile(a.Agent.Profile)
	if how != screen.Danger {
		how = screen.Accent
	} else {
		who += " " + reach
	}
	set(3, who, how)
	st := pane.ApprovalState(a)
	set(4, st.Label(env.Glyphs), st.Role())
	set(5, pane.Age(env.Now, a.CreatedAt), screen.Dim)
	set(6, a.ApprovalID, screen.Accent)
}
