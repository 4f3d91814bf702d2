package cad

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Pool hands out the processes that compute geometry. A process serves one
// tenant with one kernel, so that no two tenants ever share one.
type Pool interface {
	// Lease gives the worker that has the site's workspace loaded when there is
	// one, else another of its tenant and kernel, for the caller alone until
	// Release. It waits while all that may run are leased, until ctx ends. A
	// kernel that is not installed is an error with core.Unavailable, one that
	// nobody knows core.InvalidInput.
	Lease(ctx context.Context, at Site) (Worker, error)
	// Kernels tells which kernels there are, the default first.
	Kernels() []Kernel
}

// Site says what a worker is wanted for.
type Site struct {
	Tenant    string
	Workspace string // that the operation is about
	Kernel    string // embedded or occt; "" is the pool's default
	// Directory is where the workspace's files lie, for an operation that reads or
	// writes some; it is there. "" for one that does not.
	Directory string
}

// Kernel is one way to compute geometry.
type Kernel struct {
	Name    string `json:"kernel"`
	Version string `json:"kernel_version,omitempty"` // "" until it has run once
	Why     string `json:"why,omitempty"`            // why it can't be used; "" if it can
}

// Worker is one leased process: `swarmdeck cad env --journal`. Any error but a
// *Fault means that the process is lost: it will have been ended by the time
// the worker is released, and the next lease gives a fresh one.
type Worker interface {
	// Seq is the newest journal entry that the process has of a workspace; 0 when
	// it does not have it.
	Seq(workspace string) int
	// Load brings a workspace up to its next entries (method workspace.load);
	// a From of 1 replaces what it had.
	Load(ctx context.Context, l Load) error
	// Unload makes it forget a workspace (method workspace.unload).
	Unload(ctx context.Context, workspace string) error
	// Call carries out one operation. When ctx ends before, the operation is
	// cancelled and, if that does not help soon, the process is ended; the error
	// then wraps ctx's.
	Call(ctx context.Context, c Call) (Reply, error)
	// Release gives the worker back. It must not be used after that.
	Release()
}

// Load is the part of a journal that a worker lacks.
type Load struct {
	WorkspaceID string        `json:"workspace_id"`
	From        int           `json:"from"` // seq of the first entry
	Entries     []model.Entry `json:"entries"`
	Directory   string        `json:"directory,omitempty"` // absolute; where its files lie
}

// Call is one operation. Params has everything: workspace_id, agent_id and
// deadline_ms too.
type Call struct {
	Method string
	Params core.Raw
	// Progress is told how far a long operation is, 0-100, from another
	// goroutine; nil is not told.
	Progress func(percent float64, stage string)
}

// Reply is an operation that succeeded.
type Reply struct {
	Data    core.Raw      // what it answers, a JSON object
	Entry   *model.Entry  // what it changed; nil when nothing
	Elapsed time.Duration // as the worker measured it
}

// Fault is an operation that the CAD environment refused: nothing has changed.
type Fault struct {
	Code       int    // of JSON-RPC, such as -32001
	Name       string // ENTITY_NOT_FOUND
	Message    string
	Field      string
	Value      core.Raw
	Suggestion string
}

func (f *Fault) Error() string { return fmt.Sprintf("%s: %s", f.Name, f.Message) }

// compute has a worker carry the operation out, and stores it. The workspaces
// are the caller's.
func (x *execution) compute(ctx context.Context) (_ Done, err error) {
	ctx, cancel := context.WithTimeout(ctx, x.limit)
	defer cancel()
	site := Site{Tenant: x.by.Tenant, Workspace: x.space.WorkspaceID, Kernel: x.space.Kernel}
	files := x.method.Effect == Imports || x.method.Effect == Exports
	if files {
		if site.Directory, err = x.c.makeDirectory(x.space); err != nil {
			return Done{}, x.lost(ctx, err)
		}
	}
	worker, err := x.c.lease(ctx, x.by, site, files, append([]string{x.space.WorkspaceID}, x.others...)...)
	if err != nil {
		return Done{}, x.lost(ctx, err)
	}
	defer worker.Release()
	params, err := withMembers(x.params, map[string]any{
		"workspace_id": x.space.WorkspaceID, "agent_id": x.m.id, "deadline_ms": x.limit.Milliseconds(),
	})
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
		err = forget(ctx, worker, x.space.WorkspaceID, err)
	}
	return done, err
}

// forget has a worker unload a workspace of which it has what the store, by err,
// has not. One that can't is lost; what it has is then known to be too much.
func forget(ctx context.Context, worker Worker, id string, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	if bad := worker.Unload(ctx, id); bad != nil {
		err = errors.Join(err, fmt.Errorf("unload workspace %s: %w", id, bad))
	}
	return err
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
	return &OpError{Class: SubprocessError, Message: fmt.Sprintf("%s: the CAD environment was lost: %v", x.method.Name, err), Retryable: true}
}

// makeDirectory makes the directory of a workspace's files, if it has one.
func (c *modelling) makeDirectory(w *Workspace) (string, error) {
	dir := c.directory(w)
	if dir == "" {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", core.Errorf(core.Unavailable, "make the directory of workspace %s: %v", w.WorkspaceID, err)
	}
	return dir, nil
}

// lease gives a worker that has the newest of some workspaces.
func (c *modelling) lease(ctx context.Context, by core.Caller, site Site, files bool, spaces ...string) (Worker, error) {
	worker, err := c.opt.Pool.Lease(ctx, site)
	if err != nil {
		return nil, err
	}
	for _, id := range spaces {
		if err := c.sync(ctx, worker, by, id, files); err != nil {
			worker.Release()
			return nil, err
		}
	}
	return worker, nil
}

// sync brings a worker to the newest entry of a workspace. Files tells it anew
// where the workspace's files lie, and makes that directory.
func (c *modelling) sync(ctx context.Context, w Worker, by core.Caller, id string, files bool) error {
	space, err := c.space(ctx, by, id)
	if err != nil {
		return err
	}
	dir := c.directory(space)
	if files {
		if dir, err = c.makeDirectory(space); err != nil {
			return err
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

// Resolve decides one conflict of a merge.
type Resolve struct {
	EntityID string         // of the source
	Source   string         // workspace ids
	Target   string         // where the conflict is open
	Strategy model.Strategy // keep_source, keep_target or manual_merge
	// Merged is what manual_merge puts in place: a curve's properties, or
	// {"operation":"union"|"subtract"|"keep_both"} of a solid.
	Merged core.Raw
}

// Undo takes back the newest operation of a workspace, as an operator: no agent
// and so no role is asked. It fails with a conflict when there is none.
func (c *modelling) Undo(ctx context.Context, by core.Caller, workspace string) (Done, error) {
	return c.amend(ctx, by, amendment{method: "history.undo", workspace: workspace, source: workspace})
}

// Redo brings back the operation that was taken back last.
func (c *modelling) Redo(ctx context.Context, by core.Caller, workspace string) (Done, error) {
	return c.amend(ctx, by, amendment{method: "history.redo", workspace: workspace, source: workspace})
}

// MergeInto brings the content of a workspace into another, as an operator.
// What can't be decided stays open in the target as conflicts.
func (c *modelling) MergeInto(ctx context.Context, by core.Caller, source, target string) (Done, error) {
	return c.amend(ctx, by, amendment{
		method: "workspace.merge", workspace: target, source: source,
		params: map[string]any{"source_workspace_id": source, "target_workspace_id": target},
	})
}

// ResolveConflict decides a conflict that a merge left open, as an operator.
func (c *modelling) ResolveConflict(ctx context.Context, by core.Caller, r Resolve) (Done, error) {
	strategies := []model.Strategy{model.KeepSource, model.KeepTarget, model.ManualMerge}
	switch {
	case !slices.Contains(strategies, r.Strategy):
		return Done{}, core.Invalid("strategy", r.Strategy, "keep_source, keep_target or manual_merge")
	case (r.Strategy == model.ManualMerge) != (len(r.Merged) > 0):
		return Done{}, core.Errorf(core.InvalidInput, "merged_properties: goes with manual_merge, and with that alone").With("field", "merged_properties")
	}
	a := amendment{method: "workspace.resolve_conflict", workspace: r.Target, source: r.Source, params: map[string]any{
		"entity_id": r.EntityID, "source_workspace_id": r.Source, "target_workspace_id": r.Target, "strategy": r.Strategy,
	}}
	if len(r.Merged) > 0 {
		if err := core.CheckObject("merged_properties", r.Merged, core.MaxInput/2); err != nil {
			return Done{}, err
		}
		a.params["merged_properties"] = r.Merged
	}
	return c.amend(ctx, by, a)
}

// amendment is one operation of an operator on a workspace.
type amendment struct {
	method    string
	workspace string
	source    string // workspace that it looks into, which may be the same
	params    map[string]any
}

// amend has a worker carry an amendment out, and stores what it changed.
func (c *modelling) amend(ctx context.Context, by core.Caller, a amendment) (Done, error) {
	if by.Kind == core.Agent {
		return Done{}, core.Errorf(core.Denied, "%s: an agent carries it out in its own name, as its role allows", a.method)
	}
	space, err := c.space(ctx, by, a.workspace)
	if err != nil {
		return Done{}, err
	}
	names := []string{a.workspace}
	if a.source != a.workspace {
		names = append(names, a.source)
		if _, err := c.space(ctx, by, a.source); err != nil {
			return Done{}, err
		}
	}
	if stop := c.opt.Swarm.EStops.State(by.Tenant); stop.On {
		return Done{}, core.Errorf(core.Unavailable, "%s: the emergency stop is on: %s", a.method, stop.Reason)
	}
	if c.opt.Pool == nil {
		return Done{}, core.Errorf(core.Unavailable, "%s: nothing here computes geometry: this engine has no CAD environment", a.method)
	}
	ctx, cancel := context.WithTimeout(ctx, defaultLimit)
	defer cancel()
	slices.Sort(names)
	leave, err := c.of(by.Tenant).turns.take(ctx, names)
	if err != nil {
		return Done{}, context.Cause(ctx)
	}
	defer leave()
	worker, err := c.lease(ctx, by, Site{Tenant: by.Tenant, Workspace: a.workspace, Kernel: space.Kernel}, false, names...)
	if err != nil {
		return Done{}, fmt.Errorf("%s: %w", a.method, err)
	}
	defer worker.Release()
	params := map[string]any{"workspace_id": a.workspace, "agent_id": "operator " + core.ClipTo(by.Name, 80), "deadline_ms": defaultLimit.Milliseconds()}
	maps.Copy(params, a.params)
	reply, err := worker.Call(ctx, Call{Method: a.method, Params: core.MustEncode(params)})
	var refused *Fault
	switch {
	case errors.As(err, &refused) && refused.Code == codeOperationInvalid: // as the workspace is now
		return Done{}, core.Errorf(core.Conflict, "%s", refused.Message).With("field", "workspace_id").With("value", a.workspace)
	case errors.As(err, &refused):
		return Done{}, failure(refused)
	case err != nil:
		return Done{}, core.Errorf(core.Unavailable, "%s: the CAD environment was lost: %v", a.method, err)
	}
	done := Done{WorkspaceID: a.workspace, Method: a.method, Data: reply.Data, Elapsed: reply.Elapsed}
	if reply.Entry == nil {
		return done, nil
	}
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	d, err := prepare(*reply.Entry)
	if err == nil {
		err = c.ledger.Update(ctx, by, func(tx *audit.Tx) error { return c.appendIn(tx, d, &done, "", "operator", by.Name) })
	}
	if err != nil {
		return Done{}, forget(ctx, worker, a.workspace, err)
	}
	return done, nil
}

// appendIn stores what an operation changed, and tells it in done. as and name
// say who it was.
func (c *modelling) appendIn(tx *audit.Tx, d *draft, done *Done, trace, as, name string) error {
	w, err := c.loadWorkspace(tx, done.WorkspaceID)
	if err != nil {
		return err
	}
	if err := d.append(tx, w); err != nil {
		return err
	}
	done.Seq, done.Removed, done.Entities = d.entry.Seq, d.entry.Removed, nil
	for _, e := range d.entry.Put {
		done.Entities = append(done.Entities, e.ID)
	}
	return c.saveWorkspace(tx, w, record.Event{Type: "cad.workspace.changed", Trace: trace, Detail: map[string]any{
		"seq": w.Seq, "method": done.Method, as: name,
	}})
}
