package cad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// run is one attempt of a cad.assignment task: the swarm's Work. One goroutine
// carries it out; others reach it through its stand and its context.
type run struct {
	c     *Controller
	job   swarm.Job
	in    AssignmentInput
	by    core.Caller // who started the workflow, or gave the task
	place string      // workspace that it is carried out in

	base   context.Context // the engine's
	ctx    context.Context // ends when the run is to end; its cause is a *cutShort
	cancel context.CancelCauseFunc
	stand  *stand
	done   chan struct{}
	out    task.Outcome // valid after done

	// Of the run's own goroutine.
	scope   map[string]core.Raw // what operations may refer to
	answers map[string]core.Raw // of this assignment's operations, by id, all rounds
	files   []string            // exported
	pairs   *int                // that overlap, as last measured
	count   int                 // operations that are done
	denials []string
}

var _ swarm.Work = (*run)(nil)

// cutShort is why a run is to end before its time.
type cutShort struct{ reason string }

func (e *cutShort) Error() string { return e.reason }

func (r assigner) Start(ctx context.Context, job swarm.Job) (swarm.Work, error) {
	in, err := readAssignment(job.Task.Input)
	if err != nil {
		return nil, err
	}
	t := &job.Task
	x := &run{
		c: r.c, job: job, in: in, base: ctx, stand: new(stand), done: make(chan struct{}),
		by:    t.Asker(),
		scope: map[string]core.Raw{}, answers: map[string]core.Raw{},
	}
	x.by.Door = cmp.Or(x.by.Door, core.DoorEngine)
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	go x.work()
	return x, nil
}

func (r *run) work() {
	defer close(r.done)
	defer r.cancel(nil)
	defer r.job.Keep()()
	var result *outcome
	err := health.Caught(func() (err error) { // an error of this assignment alone
		result, err = r.carry()
		return err
	})
	if bug, ok := errors.AsType[*health.Panic](err); ok {
		t := &r.job.Task
		r.c.opt.Health.Log().Error("assignment panicked", "tenant", t.TenantID, "component", component, "trace", t.TraceID,
			"task", t.TaskID, "panic", fmt.Sprint(bug.Value), "stack", string(bug.Stack))
		err = &stepError{FailedResult: FailedResult{Code: "panic", Message: core.ClipTo(fmt.Sprint("the assignment panicked: ", bug.Value), 300)}}
	}
	r.out = r.outcome(result, err)
}

// outcome is the result of an assignment that is completed.
type outcome struct {
	AgentID     string              `json:"agent_id"`
	WorkspaceID string              `json:"workspace_id"`
	Operations  map[string]core.Raw `json:"operations"` // answers by the operations' ids
	Done        int                 `json:"operations_done"`
	Files       []string            `json:"files,omitempty"`
	Measures    []Measure           `json:"measures,omitempty"` // that the check looked at
	Reply       core.Raw            `json:"reply,omitzero"`     // of the worker
}

type stepError struct {
	FailedResult
	denied    bool
	retryable bool
}

func (e *stepError) Error() string { return e.Message }

func (r *run) carry() (*outcome, error) {
	agent, err := r.c.Agent(r.ctx, r.by.Tenant, r.in.AgentID)
	if err != nil {
		return nil, err
	}
	r.place = cmp.Or(r.in.WorkspaceID, agent.WorkspaceID)
	r.scope[rootTasks] = core.MustEncode(r.in.Given.Tasks)
	r.scope[rootAgent] = core.MustEncode(map[string]string{refAgent: agent.AgentID, refWorkspace: r.place})
	if len(r.in.Given.Rework) > 0 {
		r.scope[rootRework] = r.in.Given.Rework
	}
	for id, answer := range r.in.Given.Own {
		r.answers[id], r.scope[id] = answer, answer
	}
	var reply core.Raw
	steps, again := r.in.Operations, r.in.Round > 0 && len(r.in.ReworkOperations) > 0
	if again {
		steps = r.in.ReworkOperations
	}
	if len(r.in.Operations) == 0 {
		if reply, err = r.delegate(&agent); err != nil {
			return nil, err
		}
	}
	for i, s := range steps {
		if err := r.step(i, s); err != nil {
			return nil, err
		}
	}
	out := &outcome{AgentID: agent.AgentID, WorkspaceID: r.place, Operations: r.answers, Done: r.count, Files: r.files, Reply: reply}
	return out, r.judge(out)
}

func (r *run) step(i int, s Step) error {
	fail := func(e FailedResult) *stepError {
		e.Operation, e.Index, e.Done = s.Method, i, r.count
		e.Message = fmt.Sprintf("operation %d, %s: %s", i+1, s.Method, strings.TrimPrefix(e.Message, s.Method+": "))
		return &stepError{FailedResult: e}
	}
	params, err := mapping.Fill(s.Params, r.scope)
	if err != nil {
		e := core.AsError(err)
		return fail(FailedResult{Code: string(InvalidParameters), Message: e.Message, Field: fieldOf(e), Suggestion: "references name earlier operations by their id"})
	}
	m, _ := FindMethod(s.Method)
	if r.in.WorkspaceID != "" && !m.Local && m.Effect != Merges && m.Effect != Creates && !hasMember(params, "workspace_id") {
		if params, err = withMembers(params, map[string]any{"workspace_id": r.place}); err != nil {
			return err
		}
	}
	if err := r.stand.pass(r.ctx); err != nil {
		return err
	}
	done, err := r.c.Execute(r.ctx, r.by, r.operation(m, i, params))
	for lost := 1; lost < mostLost && r.ctx.Err() == nil && workerLost(err); lost++ {
		r.job.Log("WARN", fmt.Sprintf("%s%s: %v; it is done by another worker", s.Method, parenthesised(s.ID), err))
		done, err = r.c.Execute(r.ctx, r.by, r.operation(m, i, params))
	}
	if err != nil {
		return r.stepFailed(err, fail)
	}
	r.job.Log("INFO", fmt.Sprintf("%s%s in %s: %s", s.Method, parenthesised(s.ID), done.WorkspaceID, told(&done)))
	r.count++
	r.note(m, s, params, &done)
	return nil
}

// mostLost is how many workers may be lost to one operation before the attempt
// has failed: it may be what they die of.
const mostLost = 4

func workerLost(err error) bool {
	f, ok := errors.AsType[*OpError](err)
	return ok && f.Class == SubprocessError && f.Retryable
}

// operation is what the controller is asked for. What changes a workspace
// happens once for each round, however often the task is tried; what
// brings workspaces together or writes files happens once for each task that the
// queue is given, so that retrying the assignment does it anew. What only reads
// is read again.
func (r *run) operation(m Method, i int, params core.Raw) Operation {
	t := &r.job.Task
	op := Operation{
		AgentID: r.in.AgentID, Method: m.Name, Params: params, TaskID: t.TaskID, TraceID: t.TraceID, Session: t.SessionID,
		Attempt: t.Attempt, Priority: t.Priority, Origin: r.in.WorkflowID, Beat: r.job.Beat, Stop: r.ctx.Done(), Held: r.stand.standing,
		Holds: func(tx *audit.Tx) (bool, error) {
			holds, err := r.c.opt.Swarm.Holds(tx, t)
			if err == nil && holds {
				err = r.c.opt.Swarm.NoteProgress(tx, t.TaskID)
			}
			return holds, err
		},
	}
	once := t.TaskID
	if r.in.WorkflowID != "" && m.Effect != Merges && m.Effect != Exports && m.Effect != Imports {
		once = r.in.WorkflowID + "/" + r.in.TaskID
	}
	if m.Effect != Reads {
		op.Mark = fmt.Sprintf("%s/%d/%d", once, r.in.Round, i)
	}
	return op
}

func parenthesised(id string) string {
	if id == "" {
		return ""
	}
	return " (" + id + ")"
}

func told(done *Done) string {
	switch {
	case done.Repeated:
		return "done before"
	case len(done.Entities) > 0:
		return listed(done.Entities)
	}
	return "done"
}

// maxAnswer bounds what is kept of one operation's answer, maxAnswers of all.
const (
	maxAnswer  = 64 << 10
	maxAnswers = 512 << 10
)

// note keeps what later operations and the check may ask for.
func (r *run) note(m Method, s Step, params core.Raw, done *Done) {
	switch {
	case m.Name == "file.export":
		r.files = append(r.files, textOf(params, "file_path"))
	case m.Name == "measure.interference":
		r.pairs = pairsIn(done.Data)
	}
	if s.ID == "" {
		return
	}
	r.scope[s.ID] = done.Data
	kept, size := done.Data, 0
	for _, a := range r.answers {
		size += len(a)
	}
	if len(kept) > maxAnswer || size+len(kept) > maxAnswers {
		kept = core.MustEncode(map[string]int{"left_out_bytes": len(done.Data)})
	}
	r.answers[s.ID] = kept
}

// stepFailed says how an operation failed. What ends the run, or belongs to
// another attempt by now, is not the operation's failure.
func (r *run) stepFailed(err error, fail func(FailedResult) *stepError) error {
	var f *OpError
	var refused *core.Error
	switch {
	case r.ctx.Err() != nil || errors.Is(err, judge.ErrStopped) || errors.Is(err, ErrLost):
		return err
	case errors.As(err, &f):
		e := fail(FailedResult{
			Code: string(f.Class), Message: f.Error(), Field: f.Field, Suggestion: f.Suggestion, DecisionID: f.DecisionID,
		})
		e.denied, e.retryable = f.Denied, f.Retryable
		if f.Denied && f.DecisionID != "" {
			r.denials = append(r.denials, f.DecisionID)
		}
		return e
	case errors.As(err, &refused) && refused.Code != core.Internal:
		return fail(FailedResult{Code: string(OperationFailed), Message: core.AsError(err).Message, Field: fieldOf(refused)})
	}
	return err
}

func (r *run) outcome(result *outcome, err error) task.Outcome {
	out := task.Outcome{Denials: r.denials}
	fail := func(status task.Status, code, message string, retryable bool) task.Outcome {
		out.Status = status
		out.Error = &task.Error{Code: code, Message: core.ClipTo(message, 4000), Retryable: retryable}
		return out
	}
	var step *stepError
	var cut *cutShort
	var refused *core.Error
	switch {
	case err == nil:
		out.Status, out.Output = task.Succeeded, core.MustEncode(result)
		return out
	case errors.As(err, &cut), errors.As(context.Cause(r.ctx), &cut):
		return fail(task.Cancelled, "cancelled", cut.reason, false)
	case r.base.Err() != nil:
		return fail(task.Cancelled, "cancelled", "the engine is closing", false)
	case errors.As(err, &step):
		status := task.Failed
		if step.denied {
			status = task.Blocked
		}
		fail(status, step.Code, step.Message, step.retryable)
		out.Error.Details = core.MustEncode(step.FailedResult)
		return out
	case errors.As(err, &refused) && refused.Code != core.Internal && refused.Code != core.Unavailable && refused.Code != core.StorageFull:
		return fail(task.Failed, string(refused.Code), core.AsError(err).Message, false)
	}
	return fail(task.Failed, "internal", err.Error(), true)
}

func (r *run) Done() <-chan struct{} { return r.done }

func (r *run) Outcome() task.Outcome {
	<-r.done
	return r.out
}

func (r *run) Cancel(why string) { r.cancel(&cutShort{why}) }

// Pause implements swarm.Work. It returns once nothing is computed for it: an
// operation that a person is asked about, or that waits for its turn, does not
// begin before it is resumed.
func (r *run) Pause(ctx context.Context) error {
	r.stand.Change(func() { r.stand.held = true })
	for r.computing() {
		if core.Within(ctx.Done(), pauseLook) {
			return fmt.Errorf("pause: an operation of agent %s has not ended: %w", r.in.AgentID, ctx.Err())
		}
	}
	return nil
}

const pauseLook = 10 * time.Millisecond

// computing reports whether an operation of this run has begun and not ended.
func (r *run) computing() bool {
	m, err := r.c.member(r.base, r.by, r.in.AgentID)
	if err != nil {
		return false
	}
	now := m.now.Load()
	return now != nil && now.task == r.job.Task.TaskID
}

func (r *run) Resume(context.Context) error {
	r.stand.Change(func() { r.stand.held = false })
	return nil
}

// stand is whether an assignment is to stand still.
type stand struct {
	core.Condition
	held bool
}

// pass waits until it need not.
func (s *stand) pass(ctx context.Context) error {
	return s.Until(ctx, func() bool { return !s.held })
}

// standing is Questions' view of it.
func (s *stand) standing() (held bool, moved <-chan struct{}) {
	moved = s.Look(func() { held = s.held })
	return held, moved
}
