package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tree"
)

// treeRunner carries out the tasks of trees, of one kind.
type treeRunner struct {
	e    *Engine
	kind string
}

var _ swarm.Runner = treeRunner{}

func (r treeRunner) Check(tenant string, input core.Raw) (string, judge.Action, error) {
	return r.e.Trees.Check(tenant, r.kind, input)
}

// Bind finds what an approval of it is bound to: exactly what would be done.
func (r treeRunner) Bind(tenant string, action judge.Action) []judge.File {
	return r.e.Trees.Bind(context.Background(), tenant, action)
}

func (r treeRunner) Slot(tenant, _ string) (bool, string) {
	if r.kind == tree.KindCheck || r.kind == tree.KindSetup {
		return true, ""
	}
	return r.e.Trees.Free(tenant)
}

// Resumes says that an engine that dies under such a task costs no attempt: begun
// once more it goes on where it was.
func (treeRunner) Resumes(core.Raw) bool { return true }

func (r treeRunner) Start(ctx context.Context, job swarm.Job) (swarm.Work, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &treeWork{cancel: cancel, done: make(chan struct{})}
	go w.run(ctx, r.e.Trees, job)
	return w, nil
}

// treeWork is one such task at work. Once it has begun to change somebody's files
// it is brought to its end.
type treeWork struct {
	state  core.Condition // of what follows
	paused bool
	still  bool         // between two steps
	proc   tree.Process // of the step, nil for none
	frozen bool         // it stands still

	cancel context.CancelCauseFunc
	done   chan struct{}
	out    task.Outcome // valid after done
}

func (w *treeWork) Pass(ctx context.Context) error {
	w.state.Change(func() { w.still = true })
	defer w.state.Change(func() { w.still = false })
	_ = w.state.Until(ctx, func() bool { return !w.paused }) // or until ctx ends
	return context.Cause(ctx)
}

// Runs implements tree.Hold. A pause that came before the process did holds it too.
func (w *treeWork) Runs(p tree.Process) (over func()) {
	paused := false
	w.state.Change(func() { w.proc, paused = p, w.paused })
	if paused {
		_ = w.freeze(context.Background(), p) // else it is over soon, or Pause says so
	}
	return func() { w.state.Change(func() { w.proc, w.frozen = nil, false }) }
}

// freeze has a process stand still.
func (w *treeWork) freeze(ctx context.Context, p tree.Process) error {
	err := p.Pause(ctx)
	if err == nil {
		w.state.Change(func() { w.frozen = w.proc == p && w.paused })
	}
	return err
}

func (w *treeWork) run(ctx context.Context, trees *tree.Trees, job swarm.Job) {
	defer close(w.done)
	defer w.cancel(nil)
	over := job.Keep()
	out, err := trees.Carry(ctx, job, w)
	over()
	w.out = task.Outcome{Status: task.Succeeded, Output: out, Stands: err == nil && (job.Task.Kind == tree.KindMerge || job.Task.Kind == tree.KindUndo)}
	if err == nil {
		return
	}
	w.out = task.Outcome{Status: task.Failed, Error: &task.Error{Code: "failed", Message: core.ClipTo(err.Error(), 4096)}}
	if c := core.AsError(err); c.Code != core.Internal {
		w.out.Error.Code, w.out.Error.Retryable = strings.ToLower(string(c.Code)), c.Code == core.Unavailable
	}
	if why := context.Cause(ctx); why != nil {
		w.out.Status, w.out.Error.Code, w.out.Error.Message = task.Cancelled, "cancelled", why.Error()
	}
}

func (w *treeWork) Done() <-chan struct{} { return w.done }
func (w *treeWork) Outcome() task.Outcome { <-w.done; return w.out }
func (w *treeWork) Cancel(reason string)  { w.cancel(errors.New(reason)) }

func (w *treeWork) Pause(ctx context.Context) error {
	var p tree.Process
	w.state.Change(func() { w.paused, p = true, w.proc })
	if p != nil {
		if err := w.freeze(ctx, p); err != nil && !errors.Is(err, core.Kind(core.Conflict)) { // which is ending
			return err
		}
	}
	return w.state.Until(ctx, func() bool {
		select {
		case <-w.done:
			return true
		default:
			return w.still || w.frozen
		}
	})
}

func (w *treeWork) Resume(ctx context.Context) error {
	var p tree.Process
	w.state.Change(func() { w.paused, w.frozen, p = false, false, w.proc })
	if p == nil {
		return nil
	}
	if err := p.Resume(ctx); err != nil && !errors.Is(err, core.Kind(core.Conflict)) {
		return err
	}
	return nil
}

// mostSetup is how long a tree may be set up.
const mostSetup = time.Hour

// setUp dispatches the task that sets a tree up.
func (e *Engine) setUp(ctx context.Context, by core.Caller, in tree.Input, key string) (string, error) {
	t, err := e.Swarm.Dispatch(ctx, by, swarm.Dispatch{Kind: tree.KindSetup, Input: core.MustEncode(in), Timeout: mostSetup, IdempotencyKey: key})
	return t.TaskID, err
}

// landing is what a merge did, by its task.
func (e *Engine) landing(ctx context.Context, tenant, id string) (l tree.Landed, err error) {
	t, err := e.Tasks.Get(ctx, tenant, id)
	if err != nil {
		return l, err
	}
	if t.Kind != tree.KindMerge || t.Status != task.Succeeded {
		return l, core.Errorf(core.Conflict, "task: %s is no merge that succeeded", id).With("field", "task").With("value", id)
	}
	r, err := e.Tasks.Result(ctx, tenant, id)
	if err == nil {
		err = core.DecodeStored(r.Output, &l)
	}
	if err != nil {
		return l, fmt.Errorf("read what %s did: %w", id, err)
	}
	return l, nil
}

// met tells an agent on the bus that another one has changed the same files.
func (e *Engine) met(tx *audit.Tx, m tree.Meeting) error {
	_, err := e.Bus.AcceptIn(tx, bus.Send{Recipient: m.Agent, TTL: bus.MaxTTL, Payload: core.MustEncode(map[string]any{
		"event": "tree.overlap", "agent": m.Other, "files": m.Files[:min(len(m.Files), 100)],
		"symbols": m.Same,
		"message": m.Other + " has changed the same files in a tree of its own" + symbolsOf(m) + ". Change no more of them than you must: whoever is taken over second has to join both.",
	})})
	if err == nil || core.AsError(err).Code == core.Internal {
		return err
	}
	return nil // a mailbox that is full; the operator is told all the same
}

// symbolsOf says which functions and the like both changed.
func symbolsOf(m tree.Meeting) string {
	var all []string
	for _, file := range m.Files {
		for _, symbol := range m.Same[file] {
			all = append(all, symbol+" in "+file)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ", with " + tree.Named(all)
}
