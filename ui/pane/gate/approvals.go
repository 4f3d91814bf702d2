// Package gate has the panes of what the judge decides, and a person in its
// place: approvals, decisions and policies.
package gate

import (
	"swarmdeck/engine/judge"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// ApprovalsName is the pane's name and keymap scope.
const ApprovalsName = "approvals"

// NewApprovals makes the inbox: what waits for a person, most urgent first
// (risk × time left). It never pops up over what has the focus.
func NewApprovals() *pane.Table[*judge.Approval] {
	return pane.NewTable(pane.Spec[*judge.Approval]{
		Name: ApprovalsName, Title: "approvals", Empty: "nothing waits for you",
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
		Row:  approvalRow,
		Item: func(a **judge.Approval) pane.Item { return ApprovalItem(*a) },
		Rows: func(env pane.Env) []*judge.Approval { return env.Snap.Approvals },
	})
}

// ApprovalItem is an approval as a thing under the cursor.
func ApprovalItem(a *judge.Approval) pane.Item {
	return pane.Item{
		Kind: "approval", ID: a.ApprovalID, Approval: a.ApprovalID, Task: a.TaskID, Agent: a.Agent.Name,
		Session: a.Session, Trace: a.TraceID, Digest: a.Digest,
	}
}

func approvalRow(env *pane.Env, p **judge.Approval, set func(int, string, screen.Role)) {
	a := *p
	set(0, string(a.Risk), pane.RiskRole(a.Risk))
	role := screen.Text
	ends, _ := a.Ends()
	if ends.Sub(env.Now) < ends.Sub(a.CreatedAt)/4 {
		role = screen.Bad
	}
	set(1, pane.Left(env.Now, ends), role)
	set(2, pane.Headline(a), screen.Text)
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
