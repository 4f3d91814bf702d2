package cad

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

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
func (c *Controller) Undo(ctx context.Context, by core.Caller, workspace string) (Done, error) {
	return c.amend(ctx, by, amendment{method: "history.undo", workspace: workspace})
}

// Redo brings back the operation that was taken back last.
func (c *Controller) Redo(ctx context.Context, by core.Caller, workspace string) (Done, error) {
	return c.amend(ctx, by, amendment{method: "history.redo", workspace: workspace})
}

// MergeInto brings the content of a workspace into another, as an operator.
// What can't be decided stays open in the target as conflicts.
func (c *Controller) MergeInto(ctx context.Context, by core.Caller, source, target string) (Done, error) {
	return c.amend(ctx, by, amendment{
		method: "workspace.merge", workspace: target, others: []string{source},
		params: map[string]any{"source_workspace_id": source, "target_workspace_id": target},
	})
}

// ResolveConflict decides a conflict that a merge left open, as an operator.
func (c *Controller) ResolveConflict(ctx context.Context, by core.Caller, r Resolve) (Done, error) {
	strategies := []model.Strategy{model.KeepSource, model.KeepTarget, model.ManualMerge}
	switch {
	case !slices.Contains(strategies, r.Strategy):
		return Done{}, core.Invalid("strategy", r.Strategy, "keep_source, keep_target or manual_merge")
	case (r.Strategy == model.ManualMerge) != (len(r.Merged) > 0):
		return Done{}, core.Errorf(core.InvalidInput, "merged_properties: goes with manual_merge, and with that alone").With("field", "merged_properties")
	}
	a := amendment{method: "workspace.resolve_conflict", workspace: r.Target, others: []string{r.Source}, params: map[string]any{
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
	others    []string // workspaces that it looks into
	params    map[string]any
}

// amend has a worker carry an amendment out, and stores what it changed.
func (c *Controller) amend(ctx context.Context, by core.Caller, a amendment) (Done, error) {
	if by.Kind == core.Agent {
		return Done{}, core.Errorf(core.Denied, "%s: an agent carries it out in its own name, as its role allows", a.method)
	}
	space, err := c.space(ctx, by, a.workspace)
	if err != nil {
		return Done{}, err
	}
	names := []string{a.workspace}
	for _, id := range a.others {
		if _, err := c.space(ctx, by, id); err != nil {
			return Done{}, err
		}
		if !slices.Contains(names, id) {
			names = append(names, id)
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
	return c.amended(ctx, by, a, space, names)
}

// amended carries an amendment out; its workspaces are the caller's.
func (c *Controller) amended(ctx context.Context, by core.Caller, a amendment, space *Workspace, names []string) (Done, error) {
	worker, err := c.opt.Pool.Lease(ctx, Site{Tenant: by.Tenant, Workspace: a.workspace, Kernel: space.Kernel})
	if err != nil {
		return Done{}, err
	}
	defer worker.Release()
	for _, id := range names {
		if err := c.sync(ctx, worker, by, id, false); err != nil {
			return Done{}, fmt.Errorf("%s: %w", a.method, err)
		}
	}
	params := map[string]any{"workspace_id": a.workspace, "agent_id": "operator " + clip(by.Name, 80), "deadline_ms": defaultLimit.Milliseconds()}
	for name, v := range a.params {
		params[name] = v
	}
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	if err := c.storeAmended(ctx, by, &done, *reply.Entry); err != nil {
		// The worker has what the store has not.
		if bad := worker.Unload(ctx, a.workspace); bad != nil {
			err = errors.Join(err, fmt.Errorf("unload workspace %s: %w", a.workspace, bad))
		}
		return Done{}, err
	}
	return done, nil
}

func (c *Controller) storeAmended(ctx context.Context, by core.Caller, done *Done, entry model.Entry) error {
	d, err := prepare(entry)
	if err != nil {
		return err
	}
	return c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		w, err := c.loadWorkspace(tx, done.WorkspaceID)
		if err != nil {
			return err
		}
		if err := d.append(tx, w); err != nil {
			return err
		}
		done.Seq, done.Removed, done.Entities = entry.Seq, entry.Removed, nil
		for _, e := range entry.Put {
			done.Entities = append(done.Entities, e.ID)
		}
		return c.saveWorkspace(tx, w, record.Event{Type: "cad.workspace.changed", Detail: map[string]any{
			"seq": w.Seq, "method": done.Method, "operator": by.Name,
		}})
	})
}
