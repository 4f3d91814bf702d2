package skill

import (
	"cmp"
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
	if errors.Is(err, late) {
		f := e.fail(codeTimeout, late.reason)
		_, f.final = errors.AsType[*stuck](err)
		return nil, f
	}
	return result, err
}

// stuck is added to the error of a try whose work does not end.
type stuck struct{ w swarm.Work }

func (*stuck) Error() string { return "what it started does not end" }

// leaf has a runner carry out one try.
func (r *run) leaf(ctx context.Context, k *Skill, e *Execution, n int) (core.Raw, error) {
	runner := r.s.opt.Runners[k.Runner.Kind]
	if runner == nil {
		return nil, e.fail("no_runner", "no runner of kind "+k.Runner.Kind+" here")
	}
	if err := r.stand.enter(ctx); err != nil {
		return nil, err
	}
	defer r.stand.leave()
	defer r.worked(ctx, runner, k, e, r.s.ledger.Clock().Now())
	w, err := r.launch(ctx, runner, k, e, n)
	if err != nil {
		if context.Cause(ctx) != nil {
			return nil, err
		}
		return nil, e.fail("start_failed", core.AsError(err).Message)
	}
	r.stand.working(w)
	var late error
	select {
	case <-w.Done():
	case <-ctx.Done():
		late = context.Cause(ctx)
		_ = guarded(func() error { w.Cancel(late.Error()); return nil })
		again := n < k.MaxRetries && context.Cause(r.ctx) == nil
		if !core.Within(w.Done(), leaveTime) && (!again || !core.Within(w.Done(), clearTime)) {
			return nil, errors.Join(late, &stuck{w})
		}
	}
	var out task.Outcome
	if err := guarded(func() error { out = w.Outcome(); return nil }); err != nil {
		return nil, e.fail("panic", err.Error())
	}
	if late == nil && out.Status != task.Succeeded { // the work may be the first to see an end
		late = cmp.Or(context.Cause(ctx), context.Cause(r.base))
	}
	switch {
	case out.Status == task.Succeeded && (late == nil || context.Cause(r.ctx) != nil):
		return out.Output, nil // done just before it was ended
	case late != nil:
		return nil, late
	case out.Error == nil:
		return nil, e.fail("skill_failed", "the runner ended it as "+string(out.Status)+" without a reason")
	}
	f := e.fail(out.Error.Code, out.Error.Message)
	f.denied = out.Status == task.Blocked
	return nil, f
}

// worked has it told what a try changed on disk.
func (r *run) worked(ctx context.Context, runner Runner, k *Skill, e *Execution, since time.Time) {
	placed, ok := runner.(Placed)
	if !ok || r.s.opt.Record == nil {
		return
	}
	if places := placed.Places(r.job.Task.TenantID, r.job.Task.TaskID, k.Runner, e.Parameters); len(places) > 0 {
		r.s.opt.Record.Tried(context.WithoutCancel(ctx), e, places, since)
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
	var w swarm.Work
	reply := make(chan error, 1)
	go func() {
		reply <- guarded(func() (err error) {
			w, err = runner.Start(r.base, call)
			if err == nil && w == nil {
				err = errors.New("the runner started nothing")
			}
			return err
		})
	}()
	select {
	case err := <-reply:
		return w, err
	case <-ctx.Done():
		go func() {
			if <-reply == nil {
				_ = guarded(func() error { w.Cancel("it started too late"); return nil })
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// stand is where a run stands: whether it is to stand still, which work is
// under way, and its time limits, which stand still with it.
type stand struct {
	core.Condition

	held   bool       // it is to stand still
	busy   bool       // a runner has the say
	work   swarm.Work // of that runner, once it has started
	frozen bool       // the work has acknowledged a pause
	asking bool       // a person is asked
	clocks map[*clock]struct{}
}

func newStand() *stand {
	return &stand{clocks: map[*clock]struct{}{}}
}

// clock is a time limit.
type clock struct {
	left  time.Duration
	began time.Time   // since when it runs
	timer *time.Timer // nil while it stands
	fire  func()
}

func (c *clock) run(on bool) {
	switch {
	case on && c.timer == nil:
		c.began, c.timer = time.Now(), time.AfterFunc(c.left, c.fire)
	case !on && c.timer != nil:
		c.timer.Stop()
		c.left, c.timer = max(0, c.left-time.Since(c.began)), nil
	}
}

// change changes something here, and has the clocks run or stand by it.
func (t *stand) change(fn func()) {
	t.Change(func() {
		fn()
		still := t.asking || t.held && (!t.busy || t.frozen)
		for c := range t.clocks {
			c.run(!still)
		}
	})
}

// limit calls fire after d, not counting the time in which the run stands
// still. The returned function ends that.
func (t *stand) limit(d time.Duration, fire func()) (stop func()) {
	c := &clock{left: d, fire: fire}
	t.change(func() { t.clocks[c] = struct{}{} })
	return func() {
		t.change(func() {
			delete(t.clocks, c)
			c.run(false)
		})
	}
}

// enter waits until the run need not stand still, and then makes it busy.
func (t *stand) enter(ctx context.Context) error {
	return t.Until(ctx, func() bool {
		if t.held || ctx.Err() != nil {
			return false
		}
		t.busy, t.work, t.frozen = true, nil, false // which no clock minds: it is not to stand
		return true
	})
}

func (t *stand) working(w swarm.Work) { t.change(func() { t.work = w }) }

func (t *stand) leave() {
	t.change(func() { t.busy, t.work, t.frozen = false, nil, false })
}

// standing is Questions' view of it.
func (t *stand) standing() (held bool, moved <-chan struct{}) {
	moved = t.Look(func() { held = t.held })
	return held, moved
}

// pause returns when the run stands still: its work at once if that can, else
// when it has ended. On an error the run is still to stand, before whatever
// comes next.
func (t *stand) pause(ctx context.Context) error {
	t.change(func() { t.held = true })
	var w swarm.Work
	if err := t.Until(ctx, func() bool { w = t.work; return !t.busy || w != nil }); err != nil {
		return fmt.Errorf("pause: the step is just starting: %w", err)
	}
	if w == nil {
		return nil
	}
	err := guarded(func() error { return w.Pause(ctx) })
	if err == nil {
		t.change(func() { t.frozen = t.work == w })
		return nil
	}
	if t.Until(ctx, func() bool { return t.work != w }) != nil {
		return fmt.Errorf("pause: the step can't stand still, and has not ended: %w", err)
	}
	return nil
}

func (t *stand) resume(ctx context.Context) error {
	var w swarm.Work
	t.Look(func() { w = t.work })
	if w != nil { // one that has not acknowledged its pause may stand still too
		if err := guarded(func() error { return w.Resume(ctx) }); err != nil {
			return fmt.Errorf("resume: %w", err)
		}
	}
	t.change(func() {
		t.held = false
		if t.work == w {
			t.frozen = false
		}
	})
	return nil
}

// guarded turns a panic of a runner's work into an error.
func guarded(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked("the runner", p)
		}
	}()
	return fn()
}
