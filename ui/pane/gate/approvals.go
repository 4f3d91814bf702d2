// Package gate has the panes of what the judge decides, and a person in its
// place: approvals, decisions and policies.
package gate

import (
	"cmp"
	"time"

	"swarmdeck/engine/face"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// ApprovalsName is the pane's name and keymap scope.
const ApprovalsName = "approvals"

// NewApprovals makes the inbox: what waits for a person, the shortest time left
// first. It never pops up over what has the focus.
func NewApprovals() *pane.Table[*judge.Approval] {
	return pane.NewTable(pane.Spec[*judge.Approval]{
		Name: ApprovalsName, Title: "approvals", Empty: "nothing waits for you",
		Face: face.For[judge.Approval](),
		Cells: map[string]pane.Cell[*judge.Approval]{
			"RISK": func(env *pane.Env, p **judge.Approval) (string, screen.Role) {
				return string((*p).Risk), pane.RiskRole((*p).Risk)
			},
			"LEFT": func(env *pane.Env, p **judge.Approval) (string, screen.Role) {
				return approvalLeft(env, *p)
			},
			"WHAT": func(env *pane.Env, p **judge.Approval) (string, screen.Role) {
				return pane.Headline(*p), screen.Text
			},
			"AGENT": func(env *pane.Env, p **judge.Approval) (string, screen.Role) {
				return approvalAgent(*p)
			},
			"STATUS": func(env *pane.Env, p **judge.Approval) (string, screen.Role) {
				return pane.ApprovalState(*p).Cell(env)
			},
		},
		ID:    func(a **judge.Approval) string { return (*a).ApprovalID },
		Item:  func(a **judge.Approval) pane.Item { return ApprovalItem(*a) },
		Rows:  func(env pane.Env) []*judge.Approval { return env.Snap.Approvals },
		Since: func(a **judge.Approval) time.Time { return (*a).CreatedAt },
		// The snapshot has them in order.
		Order: func(*pane.Env, []*judge.Approval) {},
	})
}

// ApprovalItem is an approval as a thing under the cursor.
func ApprovalItem(a *judge.Approval) pane.Item {
	return pane.Item{
		Kind: "approval", ID: a.ApprovalID, Approval: a.ApprovalID, Task: a.TaskID, Agent: a.Agent.Name,
		Session: a.Session, Trace: a.TraceID, Digest: a.Digest,
	}
}

// approvalLeft is how long there is to answer; the last quarter stands out.
func approvalLeft(env *pane.Env, a *judge.Approval) (string, screen.Role) {
	ends, _ := a.Ends()
	if !ends.IsZero() && ends.Sub(env.Now) < ends.Sub(a.CreatedAt)/4 {
		return pane.Left(env.Now, ends), screen.Bad
	}
	return pane.Left(env.Now, ends), screen.Text
}

// approvalAgent is who asks; an agent that reaches all of the machine stands out.
func approvalAgent(a *judge.Approval) (string, screen.Role) {
	who := cmp.Or(a.Agent.Name, a.RequestedBy)
	if reach, how := pane.Profile(a.Agent.Profile); how == screen.Danger {
		return who + " " + reach, how
	}
	return who, screen.Accent
}
