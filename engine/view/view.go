// Package view is what a cockpit draws its live parts from: the engine makes it,
// and who draws needs no engine.
package view

import (
	"time"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/cluster"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/presence"
	"swarmdeck/engine/session"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/task"
	"swarmdeck/engine/trend"
)

// Snapshot is what the cockpit draws its live parts from. It must not be
// modified. Revision grows with every change of the tenant.
type Snapshot struct {
	Tenant    string
	Tenants   []string
	Revision  uint64
	Sessions  []*session.Session // those that are not stopped, newest first
	Agents    []*fleet.Agent     // by name
	Subagents []*skill.Subagent  // those that are not over, oldest first; without results
	CADAgents []*cad.Agent       // those that are not terminated, by id
	Approvals []*judge.Approval  // open ones: the riskiest and soonest due first
	Counts    task.Counts
	EStop     estop.State
	Budgets   []budget.Budget
	Bus       bus.Figures
	AuditSeq  uint64             // events so far
	LogRev    uint64             // grows when any log stream grew
	Visitors  []presence.Visitor // who has a cockpit open, in the order that they came
	Cluster   cluster.Cluster    // which engines work on the data
	Troubles  []health.Trouble   // what is wrong with the tenant or the whole engine
	Err       error              // why the snapshot is not complete; the rest is the last good one
}

// Figures are how the tenant is doing at a time.
func (s *Snapshot) Figures(at time.Time) (now trend.Now, err error) {
	for _, a := range s.Agents {
		now.Count(a.State())
		now.Agents = append(now.Agents, trend.Spent{Name: a.Name, Project: a.Project, State: a.State(), Tasks: a.Usage.Tasks, Tokens: a.Usage.Tokens, CostUSD: a.Usage.CostUSD})
	}
	for _, a := range s.Subagents {
		now.Count(a.Shown())
	}
	for _, a := range s.CADAgents {
		now.Count(a.Shown())
	}
	by := s.Counts.ByStatus
	now.Queued, now.Done, now.Failed = by[task.Queued], by[task.Succeeded], by[task.Failed]+by[task.TimedOut]+by[task.Blocked]
	now.Asking = len(s.Approvals)
	for _, a := range s.Approvals {
		now.WaitS = max(now.WaitS, int64(at.Sub(a.CreatedAt)/time.Second))
	}
	return now, s.Err
}
