package skill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/store"
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

// cutShort is why a run, or the work of one try, is to end before its time.
type cutShort struct{ reason string }

func (e *cutShort) Error() string { return e.reason }

// errLost says that the task is not this attempt's any more.
var errLost = errors.New("the lease on the task is lost")

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
	defer r.job.Keep()()
	var result core.Raw
	err := guarded(func() (err error) {
		result, err = r.carry()
		return err
	})
	r.out = r.outcome(result, err)
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
		out.Error = &task.Error{Code: code, Message: core.ClipTo(message, maxMessage), Retryable: retryable}
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

func (r *run) Done() <-chan struct{}            { return r.done }
func (r *run) Outcome() task.Outcome            { <-r.done; return r.out }
func (r *run) Cancel(why string)                { r.cancel(&cutShort{why}) }
func (r *run) Pause(ctx context.Context) error  { return r.stand.pause(ctx) }
func (r *run) Resume(ctx context.Context) error { return r.stand.resume(ctx) }

// What runs are made of.
const (
	plans       record.Rows[pinned] = "skill.plan"       // by task number
	definitions record.Rows[*Skill] = "skill.definition" // by digest, as it was pinned first
)

// pinned is what a run is made of: definitions as they were when it began. A
// skill that is loaded anew meanwhile changes nothing for it, after a restart
// of the engine neither.
type pinned struct {
	Skill   string   `json:"skill"`           // name@version of what was asked for
	Digests []string `json:"digests"`         // of all it may need
	Newer   bool     `json:"newer,omitempty"` // some of it has changed since the task was judged
}

// readPlan reads what a task's run is made of; no index when it has not begun.
func (s *Skills) readPlan(tx store.Tx, task string) (p pinned, x *index, err error) {
	p, begun, err := plans.Get(tx, ofTask(task))
	if err != nil || !begun {
		return p, nil, err
	}
	all := make([]*Skill, len(p.Digests))
	for i, digest := range p.Digests {
		if all[i], err = loadDefinition(tx, digest); err != nil {
			return p, nil, err
		}
		s.contracts.adopt(all[i])
	}
	return p, newIndex().with(all...), nil
}

// planned keeps in mind what a live subagent's run is made of.
func (s *Skills) planned(tenant, agent string, x *index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive(tenant, agent) != nil {
		s.plans[agent] = x
	}
}

// indexFor is where the skills of a run are looked up: in its plan, once it
// has one.
func (s *Skills) indexFor(tenant, agent string) *index {
	s.mu.RLock()
	x := s.plans[agent]
	s.mu.RUnlock()
	if x != nil {
		return x
	}
	return s.index(tenant)
}

// pin reads what the run is made of and what of it is done, or decides it as
// the run begins.
func (r *run) pin(ctx context.Context) error {
	t := &r.job.Task
	var p pinned
	err := r.s.ledger.View(ctx, t.TenantID, func(tx *audit.Tx) (err error) {
		if p, r.x, err = r.s.readPlan(tx, t.TaskID); err != nil || r.x == nil {
			return err
		}
		return r.s.execs.Along(tx, bExecTask, t.TaskID, func(e *Execution) error {
			if !e.Interrupted && e.Status != StatusPending {
				r.finished[e.Step] = e
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if r.x == nil {
		if p, err = r.plan(ctx); err != nil {
			return err
		}
	}
	r.goal, r.newer = r.x.find(p.Skill), p.Newer
	r.s.planned(t.TenantID, r.agent, r.x)
	return nil
}

// plan decides what the run is made of, on disk before anything runs.
func (r *run) plan(ctx context.Context) (pinned, error) {
	x := r.s.index(r.by.Tenant)
	goal, _, err := x.draft(r.in)
	if err != nil {
		return pinned{}, &failure{code: "invalid_skill", message: err.Error()}
	}
	p := pinned{Skill: goal.Ref()}
	all := x.reachable(goal)
	for _, k := range all {
		p.Digests = append(p.Digests, k.Digest)
		p.Newer = p.Newer || k.UpdatedAt.After(r.job.Task.CreatedAt)
	}
	r.x = newIndex().with(all...)
	return p, r.update(ctx, func(tx *audit.Tx) error {
		for _, k := range all {
			if _, kept, err := definitions.Get(tx, record.Key(k.Digest)); err != nil || kept {
				if err != nil {
					return err
				}
				continue
			}
			if err := definitions.Put(tx, record.Key(k.Digest), k); err != nil {
				return err
			}
		}
		if _, err := tx.Record(audit.Entry{Type: "subagent.planned", Trace: r.job.Task.TraceID, Subject: "subagent", ID: r.agent, Detail: p}); err != nil {
			return err
		}
		return plans.Put(tx, ofTask(r.job.Task.TaskID), p)
	})
}

func loadDefinition(tx store.Tx, digest string) (*Skill, error) {
	k, kept, err := definitions.Get(tx, record.Key(digest))
	if err == nil && !kept {
		err = core.Missing("skill definition", digest)
	}
	return k, err
}
