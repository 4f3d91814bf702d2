package pane

import (
	"context"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/session"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// World is what the cockpit reads of an engine: the bell and the snapshot for
// the small live world, pages and windows for the long lists. It changes
// nothing but one thing: Shown records when an operator first saw a card.
// Everything that changes state goes through a command line.
type World interface {
	// Watch and Snapshot as in engine.Engine. Neither blocks.
	Watch(ctx context.Context) <-chan struct{}
	Snapshot(tenant string) *engine.Snapshot

	Task(ctx context.Context, tenant, id string) (task.Task, error)
	Tasks(ctx context.Context, tenant string, f core.Filter) (core.Page[task.Task], error)
	Result(ctx context.Context, tenant, id string) (task.Result, error)
	Why(ctx context.Context, tenant, id string) (swarm.Reason, error)
	// Log returns up to n lines of a stream after seq from, oldest first,
	// and the stream's last seq.
	Log(ctx context.Context, tenant, stream string, from uint64, n int) ([]task.LogLine, uint64, error)
	Session(ctx context.Context, tenant, id string) (session.Session, error)
	Sessions(ctx context.Context, tenant string, f core.Filter) (core.Page[session.Session], error)

	Agent(ctx context.Context, tenant, name string) (fleet.Agent, error)
	History(ctx context.Context, tenant, name string, f core.Filter) (core.Page[fleet.HistoryItem], error)

	Approval(ctx context.Context, tenant, id string) (judge.Approval, error)
	Approvals(ctx context.Context, tenant string, f core.Filter) (core.Page[judge.Approval], error)
	Past(ctx context.Context, tenant string, a judge.Approval, n int) ([]judge.Approval, error)
	Shown(ctx context.Context, by core.Caller, id string) error
	Decision(ctx context.Context, tenant, id string) (judge.GateDecision, error)
	Decisions(ctx context.Context, tenant string, f core.Filter) (core.Page[judge.GateDecision], error)

	Event(ctx context.Context, tenant, id string) (audit.Event, error)
	Events(ctx context.Context, tenant string, f core.Filter) (core.Page[audit.Event], error)

	SkillWorld
	BusWorld
	FleetWorld
	CADWorld
	RecordWorld
}

// Of is the World of an engine.
func Of(e *engine.Engine) World { return world{e} }

type world struct{ *engine.Engine }

var _ World = world{}

func (w world) Task(ctx context.Context, tenant, id string) (task.Task, error) {
	return w.Engine.Tasks.Get(ctx, tenant, id)
}

func (w world) Tasks(ctx context.Context, tenant string, f core.Filter) (core.Page[task.Task], error) {
	return w.Engine.Tasks.List(ctx, tenant, f)
}

func (w world) Result(ctx context.Context, tenant, id string) (task.Result, error) {
	return w.Engine.Tasks.Result(ctx, tenant, id)
}

func (w world) Why(ctx context.Context, tenant, id string) (swarm.Reason, error) {
	return w.Engine.Swarm.Why(ctx, tenant, id)
}

func (w world) Log(ctx context.Context, tenant, stream string, from uint64, n int) ([]task.LogLine, uint64, error) {
	return w.Engine.Tasks.Log(ctx, tenant, stream, from, n)
}

func (w world) Session(ctx context.Context, tenant, id string) (session.Session, error) {
	return w.Engine.Swarm.Sessions.Get(ctx, tenant, id)
}

func (w world) Sessions(ctx context.Context, tenant string, f core.Filter) (core.Page[session.Session], error) {
	return w.Engine.Swarm.Sessions.List(ctx, tenant, f)
}

func (w world) Agent(ctx context.Context, tenant, name string) (fleet.Agent, error) {
	return w.Fleet.Agent(ctx, tenant, name)
}

func (w world) History(ctx context.Context, tenant, name string, f core.Filter) (core.Page[fleet.HistoryItem], error) {
	return w.Fleet.History(ctx, tenant, name, f)
}

func (w world) Approval(ctx context.Context, tenant, id string) (judge.Approval, error) {
	return w.Judge.Approval(ctx, tenant, id)
}

func (w world) Approvals(ctx context.Context, tenant string, f core.Filter) (core.Page[judge.Approval], error) {
	return w.Judge.Approvals(ctx, tenant, f)
}

func (w world) Past(ctx context.Context, tenant string, a judge.Approval, n int) ([]judge.Approval, error) {
	return w.Judge.Past(ctx, tenant, a, n)
}

func (w world) Shown(ctx context.Context, by core.Caller, id string) error {
	return w.Judge.Shown(ctx, by, id)
}

func (w world) Decision(ctx context.Context, tenant, id string) (judge.GateDecision, error) {
	return w.Judge.Decision(ctx, tenant, id)
}

func (w world) Decisions(ctx context.Context, tenant string, f core.Filter) (core.Page[judge.GateDecision], error) {
	return w.Judge.Decisions(ctx, tenant, f)
}

func (w world) Event(ctx context.Context, tenant, id string) (audit.Event, error) {
	return w.Audit.Get(ctx, tenant, id)
}

func (w world) Events(ctx context.Context, tenant string, f core.Filter) (core.Page[audit.Event], error) {
	return w.Audit.List(ctx, tenant, f)
}
