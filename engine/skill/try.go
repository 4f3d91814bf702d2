package skill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// leaveTime is how long work may take to end once its time is up; then it is
// reported, whatever it does.
const leaveTime = 400 * time.Millisecond

// clearTime is how long another try waits for the work of the one before.
const clearTime = 10 * time.Second

// try runs a skill once, within its time.
func (r *run) try(ctx context.Context, k *Skill, e *Execution, n int) (core.Raw, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := &cutShort{fmt.Sprintf("it ran longer than %d s", k.Timeout)}
	defer r.stand.limit(time.Duration(k.Timeout)*time.Second, func() { cancel(late) })()
	var result core.Raw
	var err error
	if k.Runner.Kind == composite {
		result, err = r.composite(ctx, k, e, n)
	} else {
		result, err = r.leaf(ctx, k, e, n)
	}
	var end *cutShort
	if errors.As(err, &end) && end == late {
		f := &failure{code: codeTimeout, message: late.reason, step: e.Step, skill: k.Ref(), execution: e.ExecutionID}
		var stays *stuck
		f.final = errors.As(err, &stays)
		return nil, f
	}
	return result, err
}

// stuck is added to the error of a try whose work does not end.
type stuck struct{ w swarm.Work }

func (*stuck) Error() string { return "what it started does not end" }

// leaf has a runner carry out one try.
func (r *run) leaf(ctx context.Context, k *Skill, e *Execution, n int) (core.Raw, error) {
	fail := func(code, message string) *failure {
		return &failure{code: code, message: message, step: e.Step, skill: k.Ref(), execution: e.ExecutionID}
	}
	runner := r.s.runners[k.Runner.Kind]
	if runner == nil {
		return nil, fail("no_runner", "no runner of kind "+k.Runner.Kind+" here")
	}
	if err := r.stand.enter(ctx); err != nil {
		return nil, err
	}
	defer r.stand.leave()
	w, err := r.launch(ctx, runner, k, e, n)
	if err != nil {
		if context.Cause(ctx) != nil {
			return nil, err
		}
		return nil, fail("start_failed", core.AsError(err).Message)
	}
	r.stand.working(w)
	var late error
	select {
	case <-w.Done():
	case <-ctx.Done():
		late = context.Cause(ctx)
		_ = guarded(func() error { w.Cancel(late.Error()); return nil })
		again := n < k.MaxRetries && context.Cause(r.ctx) == nil
		if !doneWithin(w, leaveTime) && (!again || !doneWithin(w, clearTime)) {
			return nil, errors.Join(late, &stuck{w})
		}
	}
	var out task.Outcome
	if err := guarded(func() error { out = w.Outcome(); return nil }); err != nil {
		return nil, fail("panic", err.Error())
	}
	switch {
	case out.Status == task.Succeeded && (late == nil || context.Cause(r.ctx) != nil):
		return out.Output, nil // done just before it was ended
	case late != nil:
		return nil, late
	case out.Error == nil:
		return nil, fail("skill_failed", "the runner ended it as "+string(out.Status)+" without a reason")
	}
	f := fail(out.Error.Code, out.Error.Message)
	f.denied = out.Status == task.Blocked
	return nil, f
}

func doneWithin(w swarm.Work, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.Done():
		return true
	case <-timer.C:
		return false
	}
}

// launch starts the work of one try. A runner that panics or hangs in doing so
// fails this try alone; work that it starts after that is ended.
func (r *run) launch(ctx context.Context, runner Runner, k *Skill, e *Execution, n int) (swarm.Work, error) {
	t := &r.job.Task
	prefix := ""
	if len(r.x.skills) > 1 {
		prefix = e.Step + ": "
	}
	call := Call{
		Skill: k, Tenant: t.TenantID, TaskID: t.TaskID, TraceID: t.TraceID, AgentID: r.agent, Session: t.SessionID,
		Params: e.Parameters, Results: maps.Clone(r.results), Run: fmt.Sprintf("%s-%d", e.ExecutionID, n), Step: e.Step, Attempt: t.Attempt, Files: r.files[e.Step],
		Log:   func(level, line string) { r.job.Log(level, prefix+line) },
		waits: func(on bool) { r.stand.change(func() { r.stand.asking = on }) },
	}
	type started struct {
		w   swarm.Work
		err error
	}
	reply := make(chan started, 1)
	go func() {
		var s started
		s.err = guarded(func() (err error) {
			s.w, err = runner.Start(r.base, call)
			if err == nil && s.w == nil {
				err = errors.New("the runner started nothing")
			}
			return err
		})
		reply <- s
	}()
	select {
	case s := <-reply:
		return s.w, s.err
	case <-ctx.Done():
		go func() {
			if s := <-reply; s.err == nil {
				_ = guarded(func() error { s.w.Cancel("it started too late"); return nil })
			}
		}()
		return nil, context.Cause(ctx)
	}
}
