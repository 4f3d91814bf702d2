package skill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// run is one attempt of a skill.invoke task: the swarm's Work. One goroutine
// carries it out; what others do to it goes through its stand and its context.
type run struct {
	s     *Skills
	job   swarm.Job
	in    invocation
	agent string      // the subagent that runs
	by    core.Caller // the same, as the author of what it causes

	base   context.Context // the engine's, for runners
	ctx    context.Context // ends when the run is to end; its cause is an *cutShort
	cancel context.CancelCauseFunc
	stand  *stand
	done   chan struct{}
	out    task.Outcome // valid after done

	// Of the run's own goroutine.
	x        *index // the definitions it is made of
	goal     *Skill
	newer    bool                    // some of it has changed since the task was judged
	finished map[string]*Execution   // by step: what earlier attempts have done
	results  map[string]core.Raw     // by skill name
	ran      map[string]bool         // by name@version
	trail    []core.Raw              // results, the newest first
	denials  []string                // decisions
	files    map[string][]judge.File // by step: what was judged
}

var _ swarm.Work = (*run)(nil)

// cutShort is why a run is to end before its time.
type cutShort struct{ reason string }

func (e *cutShort) Error() string { return e.reason }

// errLost says that the task is not this attempt's any more.
var errLost = errors.New("the lease on the task is lost")

// runBeat keeps a lease of 1 s well alive.
const runBeat = 250 * time.Millisecond

// Start implements swarm.Runner.
func (i invoker) Start(ctx context.Context, job swarm.Job) (swarm.Work, error) {
	in, err := readInvocation(job.Task.Input)
	if err != nil {
		return nil, err
	}
	id, err := i.s.agentOf(ctx, &job.Task)
	if err != nil {
		return nil, err
	}
	r := &run{
		s: i.s, job: job, in: in, agent: id, base: ctx, stand: newStand(), done: make(chan struct{}),
		by:       core.Caller{Tenant: job.Task.TenantID, Name: id, Kind: core.Agent, Door: core.DoorEngine},
		finished: map[string]*Execution{}, results: map[string]core.Raw{}, ran: map[string]bool{}, files: map[string][]judge.File{},
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	go r.work()
	return r, nil
}

// agentOf is the subagent that runs a task.
func (s *Skills) agentOf(ctx context.Context, t *task.Task) (id string, err error) {
	if id = t.Agent; id == "" {
		err = s.ledger.View(ctx, t.TenantID, func(tx *audit.Tx) (err error) {
			id, _, err = taskAgents.Get(tx, ofTask(t.TaskID))
			return err
		})
		if err != nil {
			return "", fmt.Errorf("find the subagent of task %s: %w", t.TaskID, err)
		}
	}
	if id == "" {
		e := core.AsError(s.tooMany(int64(s.opt.MaxSubagents)))
		e.Code = core.Unavailable // some will end: it is tried again
		return "", e
	}
	if a := s.alive(t.TenantID, id); a == nil || a.TaskID != t.TaskID {
		return "", core.Errorf(core.Conflict, "subagent %s is over, or has another task", id)
	}
	return id, nil
}

func (r *run) work() {
	defer close(r.done)
	defer r.cancel(nil)
	over := make(chan struct{})
	defer close(over)
	go r.beat(over)
	var result core.Raw
	err := guarded(func() (err error) {
		result, err = r.carry()
		return err
	})
	r.out = r.outcome(result, err)
}

func (r *run) beat(over <-chan struct{}) {
	tick := time.NewTicker(runBeat)
	defer tick.Stop()
	for {
		r.job.Beat()
		select {
		case <-tick.C:
		case <-over:
			return
		}
	}
}

func (r *run) carry() (core.Raw, error) {
	if err := r.pin(r.ctx); err != nil {
		return nil, err
	}
	return r.chain(r.ctx, r.goal, r.in.Params, chainOptions{pause: defaultBackoff})
}

// update changes records in the name of the subagent, as long as the task is
// this attempt's. It goes through although the run is to end.
func (r *run) update(ctx context.Context, fn func(*audit.Tx) error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordWait)
	defer stop()
	return r.s.ledger.Update(ctx, r.by, func(tx *audit.Tx) error {
		holds, err := r.s.opt.Swarm.Holds(tx, &r.job.Task)
		if err != nil {
			return err
		}
		if !holds {
			return errLost
		}
		return fn(tx)
	})
}

// recordWait bounds how long an ending run waits for the disk.
const recordWait = 10 * time.Second

// outcome says how the attempt ended.
func (r *run) outcome(result core.Raw, err error) task.Outcome {
	out := task.Outcome{Denials: r.denials}
	fail := func(status task.Status, code, message string, retryable bool) task.Outcome {
		out.Status = status
		out.Error = &task.Error{Code: code, Message: shorten(message, maxMessage), Retryable: retryable}
		return out
	}
	var f *failure
	var e *cutShort
	var panicked *Failure
	switch {
	case err == nil:
		out.Status = task.Succeeded
		out.Output = core.MustEncode(struct {
			Agent  string   `json:"agent_id"`
			Skill  string   `json:"skill"`
			Result core.Raw `json:"result"`
		}{r.agent, r.goal.Ref(), result})
		return out
	case errors.As(err, &f):
		out = fail(task.Failed, f.code, f.Error(), false)
		if f.denied {
			out.Status = task.Blocked
		}
		if f.execution != "" {
			out.Error.Details = core.MustEncode(map[string]string{"skill": f.skill, "step": f.step, "execution_id": f.execution})
		}
		return out
	case errors.As(err, &e):
		return fail(task.Cancelled, "cancelled", e.reason, false)
	case r.base.Err() != nil:
		return fail(task.Cancelled, "cancelled", interruptedByEngine, false)
	case errors.As(err, &panicked):
		return fail(task.Failed, "panic", panicked.Message, false)
	}
	return fail(task.Failed, "internal", err.Error(), true)
}

// Done implements swarm.Work.
func (r *run) Done() <-chan struct{} { return r.done }

// Outcome implements swarm.Work.
func (r *run) Outcome() task.Outcome {
	<-r.done
	return r.out
}

// Cancel implements swarm.Work.
func (r *run) Cancel(why string) { r.cancel(&cutShort{why}) }

// Pause implements swarm.Work.
func (r *run) Pause(ctx context.Context) error { return r.stand.pause(ctx) }

// Resume implements swarm.Work.
func (r *run) Resume(ctx context.Context) error { return r.stand.resume(ctx) }
