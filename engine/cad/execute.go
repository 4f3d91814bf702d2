package cad

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/judge"
)

// execution is one operation being carried out. One goroutine has it.
type execution struct {
	c  *modelling
	by core.Caller
	t  *tenantState
	m  *member
	op Operation
	// fleet is the agent of the fleet that acts as the CAD agent, "" for a person.
	fleet string

	trace   string
	method  Method // with its variant
	call    string // the method's name as the environment is told
	params  core.Raw
	space   *Workspace // that it is about
	others  []string   // workspaces that it looks into beside that
	effects []Effect
	limit   time.Duration
	file    string // that it writes

	ask        judge.Ask
	verdict    judge.Verdict
	decision   core.Raw // of the judge, once it is on disk
	decisionID string
}

// Deadlines of an operation.
const (
	defaultLimit = time.Minute
	longestLimit = 10 * time.Minute
	storeWait    = 10 * time.Second // how long an operation that was carried out waits for the disk
)

// Execute carries out an operation of an agent, as which an agent of the fleet must
// be bound to act: its role must allow it, the
// judge must let it pass, a worker computes it, and what it changed, what it
// counts and what the log says of it are stored at once. A failure is an
// *OpError; nothing but the agent's counters has changed then.
func (c *modelling) Execute(ctx context.Context, by core.Caller, op Operation) (Done, error) {
	if len(op.Mark) > 200 {
		return Done{}, core.Invalid("mark", op.Mark, "at most 200 bytes")
	}
	who := by
	if op.For.Kind != "" {
		who = op.For
	}
	var err error
	if op.AgentID, err = c.Acting(ctx, who, op.AgentID, op.Method); err != nil {
		return Done{}, err
	}
	m, err := c.member(ctx, by, op.AgentID)
	if err != nil {
		return Done{}, err
	}
	if m.rec.Load().Status == Terminated {
		return Done{}, terminated(m.id)
	}
	if op.Mark != "" {
		if done, there, err := c.recorded(ctx, by.Tenant, op.Mark); err != nil || there {
			return done, err
		}
	}
	x := &execution{c: c, by: by, t: c.of(by.Tenant), m: m, op: op, trace: cmp.Or(op.TraceID, core.NewTrace(nil))}
	if who.Kind == core.Agent {
		x.fleet = who.Name
	}
	began := c.ledger.Clock().Now()
	done, err := x.run(ctx)
	if failed, ok := errors.AsType[*OpError](err); ok {
		err = errors.Join(err, x.failed(ctx, failed, c.ledger.Clock().Now().Sub(began)))
	}
	return done, err
}

func terminated(id string) error {
	return core.Errorf(core.Conflict, "agent %s is terminated: it carries nothing out any more", id).With("field", "agent_id").With("value", id)
}

func (x *execution) run(ctx context.Context) (Done, error) {
	if err := x.resolve(ctx); err != nil {
		return Done{}, err
	}
	var done Done
	err := judge.Decide(func() (err error) {
		done = Done{}
		if err = x.permit(ctx); err == nil {
			done, err = x.carryOut(ctx)
		}
		return err
	})
	return done, err
}

// carryOut waits for the agent's turn, a slot and the workspaces, has a worker
// compute, and stores what came of it.
func (x *execution) carryOut(ctx context.Context) (Done, error) {
	ctx, end := x.stoppable(ctx)
	defer end()
	select {
	case x.m.turn <- struct{}{}:
		defer func() { <-x.m.turn }()
	case <-ctx.Done():
		return Done{}, context.Cause(ctx)
	}
	if err := x.t.slots.take(ctx); err != nil {
		return Done{}, context.Cause(ctx)
	}
	defer x.t.slots.give()
	if err := x.still(ctx); err != nil {
		return Done{}, err
	}
	if x.m.rec.Load().Status == Terminated {
		return Done{}, terminated(x.m.id)
	}
	x.m.now.Store(&doing{x.method.Name, x.op.TaskID})
	x.c.moved(x.m)
	defer func() {
		x.m.now.Store(nil)
		x.c.moved(x.m)
	}()
	if x.method.Local {
		return x.local(ctx)
	}
	if x.c.opt.Pool == nil {
		return Done{}, &OpError{Class: SubprocessError, Message: x.method.Name + ": nothing here computes geometry: this engine has no CAD environment"}
	}
	spaces := append([]string{x.space.WorkspaceID}, x.others...)
	slices.Sort(spaces)
	leave, err := x.t.turns.take(ctx, spaces)
	if err != nil {
		return Done{}, context.Cause(ctx)
	}
	defer leave()
	return x.compute(ctx)
}

// stoppable is ctx until the work that the operation belongs to is to end.
func (x *execution) stoppable(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if x.op.Stop == nil {
		return ctx, func() { cancel(nil) }
	}
	over := make(chan struct{})
	go func() {
		select {
		case <-x.op.Stop:
			cancel(judge.ErrStopped)
		case <-over:
		}
	}()
	return ctx, func() { close(over); cancel(nil) }
}

// still waits while the operation is to stand still. What belongs to no task is
// refused under an emergency stop, unless it only reads.
func (x *execution) still(ctx context.Context) error {
	if x.op.Held == nil {
		if stop := x.c.opt.Swarm.EStops.State(x.by.Tenant); stop.On && x.method.Effect != Reads {
			return core.Errorf(core.Unavailable, "%s: the emergency stop is on: %s", x.method.Name, stop.Reason)
		}
		return nil
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		held, moved := x.op.Held()
		if !held {
			return nil
		}
		select {
		case <-moved:
		case <-tick.C:
			if x.op.Beat != nil {
				x.op.Beat()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

const beat = 250 * time.Millisecond // keeps a lease of 1 s well alive

// moved tells the watchers that an agent begins or ends an operation.
func (c *roster) moved(m *member) {
	c.ledger.Notify(core.Change{Tenant: m.tenant, Kind: "cad.agent", ID: m.id})
}

var _ estop.Freezer = (*Controller)(nil)

// freezeLook is how often Freeze looks whether operations have ended.
const freezeLook = 10 * time.Millisecond

// Freeze implements estop.Freezer. Nothing that changes something begins under
// an emergency stop (the controller asks the swarm each time); what is under way
// is waited for, and what does not end in time is named.
func (c *modelling) Freeze(ctx context.Context, tenant string) []string {
	for {
		busy := c.changing(tenant)
		if len(busy) == 0 || core.Within(ctx.Done(), freezeLook) {
			return busy
		}
	}
}

func (c *modelling) Thaw(context.Context, string) {}

// changing are the agents whose operation under way may change something.
func (c *modelling) changing(tenant string) (busy []string) {
	for _, m := range c.members(tenant) {
		if now := m.now.Load(); now != nil {
			if of, known := FindMethod(now.method); !known || of.Effect != Reads {
				busy = append(busy, m.id)
			}
		}
	}
	return busy
}

// Recorder is told what CAD agents do, in the transactions that store it.
type Recorder interface {
	// CADAgent tells that an agent was made, or terminated.
	CADAgent(tx *audit.Tx, a *Agent) error
	Operation(tx *audit.Tx, o Operated) error
}

// Operated is an operation that was carried out, or refused.
type Operated struct {
	AgentID, TaskID string
	Method          string
	Params          core.Raw
	Decision        core.Raw // the judge's; nil where it was not asked
	Data            core.Raw // that it answered
	Fault           *OpError // nil when it was carried out
	File            string   // that it wrote, absolute; "" for none
}

func (x *execution) recorded(tx *audit.Tx, o Operated) error {
	if x.c.opt.Record == nil {
		return nil
	}
	o.AgentID, o.TaskID, o.Method, o.Params = x.m.id, x.op.TaskID, x.method.Name, x.params
	if len(o.Params) == 0 {
		o.Params = x.op.Params
	}
	if x.file != "" && o.Fault == nil {
		dir, path, _ := strings.Cut(x.file, "\x00")
		if o.File = path; !filepath.IsAbs(path) {
			o.File = filepath.Join(dir, path)
		}
	}
	return x.c.opt.Record.Operation(tx, o)
}

func (c *roster) recordAgent(tx *audit.Tx, a *Agent) error {
	if c.opt.Record == nil {
		return nil
	}
	return c.opt.Record.CADAgent(tx, a)
}
