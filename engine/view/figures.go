package view

import (
	"time"

	"swarmdeck/engine/task"
	"swarmdeck/engine/trend"
)

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
