package swarm

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// Names that users have of what is in package task now.
type (
	Task      = task.Task
	Status    = task.Status
	Result    = task.Result
	TaskError = task.Error
	Outcome   = task.Outcome
	LogLine   = task.LogLine
	Counts    = task.Counts
	Follower  = task.Follower
	Leaver    = task.Leaver
)

const (
	Queued    = task.Queued
	Running   = task.Running
	Succeeded = task.Succeeded
	Failed    = task.Failed
	Cancelled = task.Cancelled
	Blocked   = task.Blocked
	TimedOut  = task.TimedOut
)

func Statuses() []Status                            { return task.Statuses() }
func TaskSpan(tenant, id string) string             { return task.Span(tenant, id) }
func RunSpan(tenant, id string, attempt int) string { return task.RunSpan(tenant, id, attempt) }
func (s *Swarm) Leaver(l Leaver)                    { s.tasks.Leaver(l) }
func (s *Swarm) Task(ctx context.Context, tenant, id string) (Task, error) {
	return s.tasks.Get(ctx, tenant, id)
}
func (s *Swarm) Tasks(ctx context.Context, tenant string, f core.Filter) (core.Page[Task], error) {
	return s.tasks.List(ctx, tenant, f)
}
func (s *Swarm) Result(ctx context.Context, tenant, id string) (Result, error) {
	return s.tasks.Result(ctx, tenant, id)
}
func (s *Swarm) Results(ctx context.Context, tenant string, f core.Filter) (core.Page[Result], error) {
	return s.tasks.Results(ctx, tenant, f)
}
func (s *Swarm) Tree(ctx context.Context, tenant, id string) ([]Task, error) {
	return s.tasks.Tree(ctx, tenant, id)
}
func (s *Swarm) Counts(ctx context.Context, tenant string) (Counts, error) {
	return s.tasks.Counts(ctx, tenant)
}
func (s *Swarm) Wait(ctx context.Context, tenant, id string, status Status) (Task, error) {
	return s.tasks.Wait(ctx, tenant, id, status)
}
func (s *Swarm) Log(ctx context.Context, tenant, stream string, from uint64, n int) ([]LogLine, uint64, error) {
	return s.tasks.Log(ctx, tenant, stream, from, n)
}
func (s *Swarm) AppendLog(ctx context.Context, by core.Caller, stream string, lines []LogLine) error {
	return s.tasks.AppendLog(ctx, by, stream, lines)
}
func (s *Swarm) LogFirst(ctx context.Context, tenant, stream string) (uint64, error) {
	return s.tasks.LogFirst(ctx, tenant, stream)
}
func (s *Swarm) StatusIn(tx *audit.Tx, id string) (Status, error) { return s.tasks.StatusIn(tx, id) }
func (s *Swarm) TaskIn(tx *audit.Tx, id string) (Task, error)     { return s.tasks.In(tx, id) }
func (s *Swarm) ResultIn(tx *audit.Tx, id string) (Result, error) { return s.tasks.ResultIn(tx, id) }
func (s *Swarm) PruneTasks(ctx context.Context, by core.Caller, limit record.Limit, from []byte) ([]byte, error) {
	return s.tasks.Prune(ctx, by, limit, from)
}
func (s *Swarm) PruneLogs(ctx context.Context, by core.Caller, limit record.Limit, from []byte) ([]byte, error) {
	return s.tasks.PruneLogs(ctx, by, limit, from)
}
func (s *Swarm) ReconcileSpill(ctx context.Context, tenant string) ([]audit.Delta, error) {
	return s.tasks.ReconcileSpill(ctx, tenant)
}
