package cad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
)

// execution is one operation being carried out. One goroutine has it.
type execution struct {
	c  *Controller
	by core.Caller
	t  *tenant
	m  *member
	op Operation

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
	maxStale     = 20               // how often one is judged again because the rules changed just then
)

// Execute carries out an operation of an agent: its role must allow it, the
// judge must let it pass, a worker computes it, and what it changed, what it
// counts and what the log says of it are stored at once. A failure is an
// *OpError; nothing but the agent's counters has changed then.
func (c *Controller) Execute(ctx context.Context, by core.Caller, op Operation) (Done, error) {
	if len(op.Mark) > 200 {
		return Done{}, core.Invalid("mark", op.Mark, "at most 200 bytes")
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
	began := c.ledger.Clock().Now()
	done, err := x.run(ctx)
	var failed *OpError
	if !errors.As(err, &failed) {
		return done, err
	}
	return done, errors.Join(err, x.failed(ctx, failed, c.ledger.Clock().Now().Sub(began)))
}

func terminated(id string) error {
	return core.Errorf(core.Conflict, "agent %s is terminated: it carries nothing out any more", id).With("field", "agent_id").With("value", id)
}

func (x *execution) run(ctx context.Context) (Done, error) {
	if err := x.resolve(ctx); err != nil {
		return Done{}, err
	}
	for tries := 0; ; tries++ {
		if err := x.permit(ctx); err != nil {
			return Done{}, err
		}
		done, err := x.carryOut(ctx)
		if !errors.Is(err, judge.ErrStale) || tries == maxStale {
			return done, err
		}
	}
}

// invalid is a parameter that the controller itself refuses.
func invalid(field string, value core.Raw, why string) *OpError {
	return &OpError{Class: InvalidParameters, Code: codeInvalidParameter, Name: "INVALID_PARAMETER", Message: why, Field: field, Value: value}
}

// resolve checks what can be checked without a worker: that the role allows the
// method, what the parameters say about workspaces and time, and what the
// operation will do.
func (x *execution) resolve(ctx context.Context) error {
	agent := x.m.rec.Load()
	x.params = x.op.Params
	if len(x.params) == 0 {
		x.params = core.Raw(`{}`)
	}
	bad := core.CheckObject("params", x.params, core.MaxInput/2)
	if err := x.allowed(agent.Role); err != nil {
		return err
	}
	if bad != nil {
		return invalid("params", nil, bad.Error())
	}
	if err := x.common(agent); err != nil {
		return err
	}
	if err := x.places(ctx, agent); err != nil {
		return err
	}
	x.effects = []Effect{x.method.Effect}
	if x.method.Effect != Reads && x.method.Effect != Creates && x.space.WorkspaceID != agent.WorkspaceID {
		x.effects = append(x.effects, Elsewhere)
	}
	if x.method.Effect == Exports {
		return x.target(ctx)
	}
	return nil
}

// allowed holds the method against the agent's role. The allow-list rules: what
// is on neither list, or is no method at all, is refused like what is forbidden.
func (x *execution) allowed(name string) error {
	role, err := x.c.Role(x.by.Tenant, name)
	if err != nil {
		return err
	}
	m, known := FindMethod(x.op.Method)
	if x.method = m; known {
		x.call, x.method = m.Name, m.variant(x.params)
	}
	if known && role.Allows(x.method.Name) {
		return nil
	}
	why := "it is on neither list of the role"
	switch {
	case !known:
		why = "there is no such method"
		x.method = Method{Name: clip(x.op.Method, 100)}
	case slices.Contains(role.ForbiddenOperations, x.method.Name) || slices.Contains(role.ForbiddenOperations, x.method.Of):
		why = "the role forbids it"
	}
	return &OpError{
		Class: RoleViolation, Name: string(RoleViolation), Field: "method", Value: core.MustEncode(x.method.Name),
		Message:    fmt.Sprintf("agent %s, a %s, can't carry out %s: %s", x.m.id, name, x.method.Name, why),
		Suggestion: "it may: " + strings.Join(role.AllowedOperations, ", "),
	}
}

// common reads the parameters that every method has.
func (x *execution) common(agent *Agent) error {
	if given := memberOf(x.params, "agent_id"); given != nil && x.method.Name != "agent.metrics" && textOf(x.params, "agent_id") != agent.AgentID {
		return invalid("agent_id", given, "agent_id: an agent acts in its own name, "+agent.AgentID)
	}
	x.limit = defaultLimit
	if given := memberOf(x.params, "deadline_ms"); given != nil {
		ms, err := strconv.Atoi(string(given))
		if err != nil || ms < 1 || time.Duration(ms)*time.Millisecond > longestLimit {
			return invalid("deadline_ms", given, "deadline_ms: want a whole number of milliseconds, 1-600000")
		}
		x.limit = time.Duration(ms) * time.Millisecond
	}
	return nil
}

// What names workspaces in parameters, beside workspace_id.
var (
	sourceParams = []string{"source_workspace_id", "source_workspace"}
	targetParams = []string{"target_workspace_id", "target_workspace"}
	otherParams  = []string{"base_workspace_id", "other_workspace_id", "with_workspace_id"}
)

// places finds the workspaces of the operation.
func (x *execution) places(ctx context.Context, agent *Agent) error {
	own, err := x.named("workspace_id")
	if err != nil {
		return err
	}
	source, errSource := x.named(sourceParams...)
	target, errTarget := x.named(targetParams...)
	other, errOther := x.named(otherParams...)
	for _, err := range []error{errSource, errTarget, errOther} {
		if err != nil {
			return err
		}
	}
	if x.method.Effect == Merges {
		for _, need := range []struct{ name, value string }{{sourceParams[0], source}, {targetParams[0], target}} {
			if need.value == "" {
				return invalid(need.name, nil, need.name+": is missing; it names a workspace")
			}
		}
		own = target
	}
	if x.method.Local { // about no content of a workspace
		own = agent.WorkspaceID
	}
	if x.space, err = x.find(ctx, cmp.Or(own, agent.WorkspaceID)); err != nil || x.method.Local {
		return err
	}
	x.others = nil
	for _, id := range []string{source, target, other} {
		if id == "" || id == x.space.WorkspaceID || slices.Contains(x.others, id) {
			continue
		}
		if _, err := x.find(ctx, id); err != nil {
			return err
		}
		x.others = append(x.others, id)
	}
	return nil
}

// named is the text under the first of some names that is there.
func (x *execution) named(names ...string) (string, error) {
	for _, name := range names {
		if given := memberOf(x.params, name); given != nil {
			id := textOf(x.params, name)
			if id == "" {
				return "", invalid(name, given, name+": want the id of a workspace")
			}
			return id, nil
		}
	}
	return "", nil
}

func (x *execution) find(ctx context.Context, id string) (*Workspace, error) {
	w, err := x.c.space(ctx, x.by, id)
	if err == nil || errors.Is(err, core.ErrForeign) {
		return w, err
	}
	return nil, &OpError{
		Class: WorkspaceError, Code: codeEntityNotFound, Name: "ENTITY_NOT_FOUND", Message: core.AsError(err).Message, Field: "workspace_id",
		Value: core.MustEncode(id), Suggestion: "workspace.list tells which there are",
	}
}

// target looks at the file that an export writes.
func (x *execution) target(ctx context.Context) error {
	path := textOf(x.params, "file_path")
	dir := x.c.directory(x.space)
	if path == "" || dir == "" {
		return nil // the environment says what is wrong with it
	}
	x.file = dir + "\x00" + path
	if !overwrites(dir, path) {
		return nil
	}
	if mine, err := x.c.intended(ctx, x.by.Tenant, x.op.Mark, x.file); err != nil || mine {
		return err
	}
	x.effects = append(x.effects, Overwrite)
	return nil
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
			cancel(swarm.ErrStopped)
		case <-over:
		}
	}()
	return ctx, func() { close(over); cancel(nil) }
}

// still waits while the operation is to stand still. What belongs to no task is
// refused under an emergency stop, unless it only reads.
func (x *execution) still(ctx context.Context) error {
	if x.op.Held == nil {
		stop, err := x.c.opt.Swarm.EStop(ctx, x.by.Tenant)
		if err == nil && stop.On && x.method.Effect != Reads {
			err = core.Errorf(core.Unavailable, "%s: the emergency stop is on: %s", x.method.Name, stop.Reason)
		}
		return err
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
			x.beat()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

const beat = 250 * time.Millisecond // keeps a lease of 1 s well alive

// moved tells the watchers that an agent begins or ends an operation.
func (c *Controller) moved(m *member) {
	c.ledger.Notify(core.Change{Tenant: m.tenant, Kind: "cad.agent", ID: m.id, Record: m.shown()})
}

// compute has a worker carry the operation out, and stores it. The workspaces
// are the caller's.
func (x *execution) compute(ctx context.Context) (Done, error) {
	ctx, cancel := context.WithTimeout(ctx, x.limit)
	defer cancel()
	worker, err := x.c.opt.Pool.Lease(ctx, Site{x.by.Tenant, x.space.WorkspaceID, x.space.Kernel})
	if err != nil {
		return Done{}, x.lost(ctx, err)
	}
	defer worker.Release()
	for _, id := range append([]string{x.space.WorkspaceID}, x.others...) {
		if err := x.c.sync(ctx, worker, x.by, id, x.method.Effect == Imports || x.method.Effect == Exports); err != nil {
			return Done{}, x.lost(ctx, err)
		}
	}
	params, err := x.full()
	if err != nil {
		return Done{}, err
	}
	began := x.c.ledger.Clock().Now()
	reply, err := worker.Call(ctx, Call{Method: x.call, Params: params, Progress: x.op.Progress})
	if err != nil {
		return Done{}, x.lost(ctx, err)
	}
	if reply.Elapsed == 0 {
		reply.Elapsed = x.c.ledger.Clock().Now().Sub(began)
	}
	done, err := x.store(context.WithoutCancel(ctx), reply)
	if err != nil && reply.Entry != nil {
		// The worker has what the store has not. One that can't forget it is
		// lost; what it has of the workspace is then known to be too much.
		forget, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
		defer cancel()
		if bad := worker.Unload(forget, x.space.WorkspaceID); bad != nil {
			err = errors.Join(err, fmt.Errorf("unload workspace %s: %w", x.space.WorkspaceID, bad))
		}
	}
	return done, err
}

// full are the parameters as the environment is told.
func (x *execution) full() (core.Raw, error) {
	return withMembers(x.params, []string{"workspace_id", "agent_id", "deadline_ms"}, []core.Raw{
		core.MustEncode(x.space.WorkspaceID), core.MustEncode(x.m.id), core.MustEncode(x.limit.Milliseconds()),
	})
}

// lost says what a failed call is: a refusal, a deadline, or a worker that has
// gone.
func (x *execution) lost(ctx context.Context, err error) error {
	var refused *Fault
	var known *core.Error
	switch {
	case errors.As(err, &refused):
		return failure(refused)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &OpError{
			Class: TimedOut, Code: codeTimeout, Name: "TIMEOUT", Message: fmt.Sprintf("%s did not end within %s", x.method.Name, x.limit),
			Field: "deadline_ms", Suggestion: "give it more time, at most 600000 ms", Retryable: true,
		}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &known) && known.Code != core.Internal:
		return &OpError{Class: SubprocessError, Message: x.method.Name + ": " + known.Message, Retryable: known.Code == core.Unavailable}
	}
	return &OpError{
		Class: SubprocessError, Message: fmt.Sprintf("%s: the CAD environment was lost: %v", x.method.Name, err), Retryable: true,
	}
}

// sync brings a worker to the newest entry of a workspace. Files tells it anew
// where the workspace's files lie, and makes that directory.
func (c *Controller) sync(ctx context.Context, w Worker, by core.Caller, id string, files bool) error {
	space, err := c.space(ctx, by, id)
	if err != nil {
		return err
	}
	dir := c.directory(space)
	if files && dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return core.Errorf(core.Unavailable, "make the directory of workspace %s: %v", id, err)
		}
	}
	if w.Seq(id) > space.Seq { // it has what was never stored
		if err := w.Unload(ctx, id); err != nil {
			return err
		}
	}
	for w.Seq(id) < space.Seq || files {
		l := Load{WorkspaceID: id, From: w.Seq(id) + 1, Directory: dir}
		err := c.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) (err error) {
			l.Entries, err = journalFrom(tx, id, l.From)
			return err
		})
		if err != nil {
			return err
		}
		before := w.Seq(id)
		if err := w.Load(ctx, l); err != nil {
			return fmt.Errorf("load workspace %s from entry %d: %w", id, l.From, err)
		}
		if files = false; w.Seq(id) == before && before < space.Seq {
			return fmt.Errorf("load workspace %s: the worker stays at entry %d of %d", id, before, space.Seq)
		}
	}
	return nil
}

func clip(s string, n int) string {
	if len(s) <= n {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:n], "\uFFFD") + "…"
}
