package tree

import (
	"context"
	"errors"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// runner carries out the tasks of one kind.
type runner struct {
	s    *Trees
	kind string
}

// Runners are those of the tasks of trees, by kind.
func (s *Trees) Runners() map[string]swarm.Runner {
	all := map[string]swarm.Runner{}
	for _, kind := range Kinds() {
		all[kind] = runner{s, kind}
	}
	return all
}

// Check reads the input of a task.
func (r runner) Check(tenant string, input core.Raw) (title string, action judge.Action, err error) {
	return r.s.check(tenant, r.kind, input)
}

// Bind finds what an approval of it is bound to: exactly what would be done.
func (r runner) Bind(tenant string, action judge.Action) []judge.File {
	return r.s.bind(context.Background(), tenant, action)
}

// Slot reports whether it can start, and why not: what changes something waits for merges
// of the same repository, which come one after another, each on top of those before it.
func (r runner) Slot(tenant, _ string) (bool, string) {
	if r.kind == KindCheck || r.kind == KindSetup {
		return true, ""
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for source, task := range r.s.landing {
		for _, t := range r.s.trees.Of(tenant) {
			if t.Source == source {
				return false, "another merge is at work: " + task
			}
		}
	}
	return true, ""
}

// Resumes says that an engine that dies under such a task costs no attempt: begun
// once more it goes on where it was.
func (runner) Resumes(core.Raw) bool { return true }

func (r runner) Start(ctx context.Context, job swarm.Job) (swarm.Work, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &work{cancel: cancel, done: make(chan struct{})}
	go w.run(ctx, r.s, job)
	return w, nil
}

// work is one such task at work. Once it has begun to change somebody's files
// it is brought to its end.
type work struct {
	state  core.Condition // of what follows
	paused bool
	still  bool    // between two steps
	proc   Process // of the step, nil for none
	frozen bool    // it stands still

	cancel context.CancelCauseFunc
	done   chan struct{}
	out    task.Outcome // valid after done
}

// pass is called where the task can stand still, and returns when it may go on.
func (w *work) pass(ctx context.Context) error {
	w.state.Change(func() { w.still = true })
	defer w.state.Change(func() { w.still = false })
	_ = w.state.Until(ctx, func() bool { return !w.paused }) // or until ctx ends
	return context.Cause(ctx)
}

// runs is told of a process of the task, which is to stand still with it, and returns
// what is called when that is over. A pause that came before the process did holds it too.
func (w *work) runs(p Process) (over func()) {
	paused := false
	w.state.Change(func() { w.proc, paused = p, w.paused })
	if paused {
		_ = w.freeze(context.Background(), p) // else it is over soon, or Pause says so
	}
	return func() { w.state.Change(func() { w.proc, w.frozen = nil, false }) }
}

// freeze has a process stand still.
func (w *work) freeze(ctx context.Context, p Process) error {
	err := p.Pause(ctx)
	if err == nil {
		w.state.Change(func() { w.frozen = w.proc == p && w.paused })
	}
	return err
}

func (w *work) run(ctx context.Context, s *Trees, job swarm.Job) {
	defer close(w.done)
	defer w.cancel(nil)
	defer job.Keep()()
	out, err := s.carry(ctx, job, w)
	w.out = task.Outcome{Status: task.Succeeded, Output: out, Stands: err == nil && (job.Task.Kind == KindMerge || job.Task.Kind == KindUndo)}
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

func (w *work) Done() <-chan struct{} { return w.done }
func (w *work) Outcome() task.Outcome { <-w.done; return w.out }
func (w *work) Cancel(reason string)  { w.cancel(errors.New(reason)) }

func (w *work) Pause(ctx context.Context) error {
	var p Process
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

func (w *work) Resume(ctx context.Context) error {
	var p Process
	w.state.Change(func() { w.paused, w.frozen, p = false, false, w.proc })
	if p == nil {
		return nil
	}
	if err := p.Resume(ctx); err != nil && !errors.Is(err, core.Kind(core.Conflict)) {
		return err
	}
	return nil
}
