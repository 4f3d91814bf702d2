package cad

import (
	"context"
	"errors"
	"fmt"
	"os"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

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
	worker, err := x.c.opt.Pool.Lease(ctx, site)
	if err != nil {
		return Done{}, x.lost(ctx, err)
	}
	defer worker.Release()
	for _, id := range append([]string{x.space.WorkspaceID}, x.others...) {
		if err := x.c.sync(ctx, worker, x.by, id, files); err != nil {
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

// makeDirectory makes the directory of a workspace's files, if it has one.
func (c *Controller) makeDirectory(w *Workspace) (string, error) {
	dir := c.directory(w)
	if dir == "" {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", core.Errorf(core.Unavailable, "make the directory of workspace %s: %v", w.WorkspaceID, err)
	}
	return dir, nil
}

// sync brings a worker to the newest entry of a workspace. Files tells it anew
// where the workspace's files lie, and makes that directory.
func (c *Controller) sync(ctx context.Context, w Worker, by core.Caller, id string, files bool) error {
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
