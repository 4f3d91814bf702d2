package fleet

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// ending says who ended a run before its time.
type ending int

const (
	itself ending = iota
	cancelled
	restarted
	aborted // an approval was denied, and the task with it
)

// run is one attempt of an agent.prompt task: the swarm's Work.
type run struct {
	f   *Fleet
	m   *member
	job swarm.Job
	in  prompt
	log *transcript
	gathered

	seen Observed // is told what happens; nil for nobody

	progress *progress
	acts     *acts

	stop chan struct{} // closed when the run is to end
	done chan struct{} // closed when the agent has let go
	out  task.Outcome  // valid after done

	steering sync.Mutex // one message at a time, and none once it ends; taken before mu
	ended    bool

	mu      sync.Mutex
	how     ending
	reason  string
	denials []string
}

var _ swarm.Work = (*run)(nil)

// take makes the agent this run's if nobody else has it. It wakes nobody: runs
// that wait for the agent would wake each other without end.
func (r *run) take() (mine bool) {
	r.m.Look(func() {
		if r.m.run == nil && r.m.handle != nil && !r.m.gone && !r.m.stale {
			r.m.run = r
			if r.m.assigned == r.job.Task.TaskID {
				r.m.assigned = ""
			}
		}
		mine = r.m.run == r
	})
	return mine
}

// turn waits until the agent is this run's. While it waits it keeps the lease.
func (r *run) turn(ctx context.Context) error {
	tick := time.Tick(beatEvery)
	for !r.take() {
		var now moment
		moved := r.m.Look(func() { now = r.m.moment })
		if now.gone {
			return core.Missing("agent", r.m.name)
		}
		if now.run == nil && now.handle == nil {
			return core.Errorf(core.Unavailable, "%s", describe(r.m.rec.Load()))
		}
		select {
		case <-moved:
		case <-tick:
			r.job.Beat()
		case <-r.stop:
			return context.Canceled
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// beatEvery keeps a lease of 1 s well alive.
const beatEvery = 250 * time.Millisecond

func (r *run) work(ctx context.Context) {
	defer close(r.done)
	out, err := r.attempt(ctx)
	defer r.job.Keep()()
	// What happened must reach the disk although the engine is closing.
	ctx, stop := core.Outlast(ctx, 10*time.Second)
	defer stop()
	if lost := r.flush(ctx); err == nil {
		err = lost
	}
	out = r.settled(out, err)
	r.observed(ctx, out)
	if err := r.release(ctx, out); err != nil && out.Status == task.Succeeded {
		out = failure(err.Error())
		out.Error.Code = "agent_record"
	}
	r.out = out
}

// attempt takes the agent, tells it the task and follows it to its end.
func (r *run) attempt(ctx context.Context) (out task.Outcome, err error) {
	out.Unsent = true
	defer func() {
		if p := recover(); p != nil {
			out.Unsent, err = false, fmt.Errorf("the runtime panicked: %v", p)
			r.f.opt.Health.Log().Error("runner panicked", "tenant", r.m.tenant, "component", component, "trace", r.job.Task.TraceID,
				"task", r.job.Task.TaskID, "agent", r.m.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if err := r.turn(ctx); err != nil {
		return out, err
	}
	if err := r.beginning(ctx); err != nil {
		return out, fmt.Errorf("mark agent %s busy: %w", r.m.name, err)
	}
	h, _ := r.m.now()
	if h == nil {
		return out, core.Errorf(core.Unavailable, "agent %s was closed", r.m.name)
	}
	over := make(chan struct{})
	defer close(over)
	go r.interrupt(h, over)
	r.progress.alive(time.Now())
	r.progress.event(&Event{}, false) // it begins only now
	go r.watch(ctx, over)
	r.acts.started()
	r.log.add("INFO", r.in.Message, sourceTask)
	if err := r.observe(ctx); err != nil {
		return out, fmt.Errorf("record the run: %w", err)
	}
	var said task.Outcome
	said, err = h.Prompt(ctx, Prompt{
		TaskID: r.job.Task.TaskID, Attempt: r.job.Task.Attempt, Message: r.message(), URI: r.in.URI, Traceparent: r.job.Task.Traceparent(),
		Past: r.past(), Emit: r.emit, Settle: r.acts.settle, Beat: r.beat, Next: r.next,
	})
	if err == nil {
		out = said
	}
	return out, err
}

// past is what a fork goes on from; nil of an agent that is none.
func (r *run) past() *Past {
	a := *r.m.rec.Load()
	if a.Forked == nil || r.f.opt.Past == nil {
		return nil
	}
	return &Past{
		Text:  func(ctx context.Context) (string, error) { return r.f.opt.Past(ctx, a) },
		Brief: fmt.Sprintf("continued from record: what %s had said and done up to the %s of event %.12s", a.Forked.AgentID, a.Forked.Kind, a.Forked.EventID),
	}
}

// message is what the agent is asked, after what its role says, with the reason when
// its last result was rejected (requirement 2.6).
func (r *run) message() string {
	text := r.in.Message
	if p := r.m.rec.Load().Prompt; p != "" {
		text = p + "\n\n" + text
	}
	if f := r.job.Task.Feedback; f != "" {
		text += "\n\nYour last result was rejected: " + f
	}
	return text
}

// interrupt tells the runtime that the run is to end, until it is over: one
// told just before the prompt began may have gone by unheard.
func (r *run) interrupt(h Handle, over <-chan struct{}) {
	select {
	case <-r.stop:
	case <-over:
		return
	}
	r.mu.Lock()
	leaving := r.leaving()
	r.mu.Unlock()
	if l, leaves := h.(Leaver); leaves && leaving {
		l.Leave()
		return
	}
	again := time.Tick(beatEvery)
	for {
		h.Interrupt()
		select {
		case <-again:
		case <-over:
			return
		}
	}
}

// beginning keeps the lease meanwhile: a disk may take its time.
func (r *run) beginning(ctx context.Context) error {
	defer r.job.Keep()()
	return r.begin(ctx)
}

// begin records that the agent is busy, before it is told anything.
func (r *run) begin(ctx context.Context) error {
	t := &r.job.Task
	n := record.Event{Type: "agent.busy", Trace: t.TraceID, Detail: map[string]any{"task_id": t.TaskID, "attempt": t.Attempt}}
	_, err := r.f.change(ctx, r.m.self(), r.m, n, func(tx *audit.Tx, a *Agent) error {
		a.TaskID, a.LastTask, a.Attention, a.Waiting, a.Asked = t.TaskID, core.ClipTo(r.in.Message, maxLast), "", "", nil
		a.LastTaskID, a.LastStatus, a.Stuck = t.TaskID, "", nil
		return r.f.opt.Swarm.NoteSent(tx, t.TaskID)
	})
	return err
}

// release records that the agent is free again. Questions that the run left
// open are voided: nobody would act on their answers.
func (r *run) release(ctx context.Context, out task.Outcome) error {
	t := &r.job.Task
	defer func() {
		r.m.Change(func() {
			if r.m.run == r {
				r.m.run = nil
			}
		})
		r.m.wake()
		_ = r.m.hold(ctx, byTask, false) // the supervisor tries again
		r.m.ring()
	}()
	r.steering.Lock() // nothing is told to a run that is let go
	r.ended = true
	r.steering.Unlock()
	n := record.Event{Type: "agent.released", Trace: t.TraceID, Detail: map[string]any{"task_id": t.TaskID, "status": out.Status}}
	_, err := r.f.change(ctx, r.m.self(), r.m, n, func(tx *audit.Tx, a *Agent) error {
		if a.TaskID != t.TaskID {
			return errSame
		}
		if err := r.f.forget(tx, r.m.name, out); err != nil {
			return err
		}
		a.Usage.Tasks++
		a.Usage.WallMS += tx.Now().Sub(t.StartedAt).Milliseconds()
		return r.f.clear(tx, a)
	})
	return err
}

// clear takes the task out of a record, and voids what the run still asks.
func (f *Fleet) clear(tx *audit.Tx, a *Agent) error {
	task := a.TaskID
	if a.Waiting != "" {
		open := func(ap *judge.Approval) bool { return deadCall(ap) && ap.TaskID == task }
		if err := f.opt.Judge.Void(tx, open, "the agent's run has ended"); err != nil {
			return err
		}
		if err := f.opt.Swarm.Gate(tx, task, ""); err != nil {
			return err
		}
	}
	a.TaskID, a.Waiting, a.Asked, a.Attention, a.Stuck = "", "", nil, "", nil
	return nil
}

// settled is the outcome of the attempt: the agent's own, or what was done to it.
func (r *run) settled(out task.Outcome, err error) task.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.how == aborted:
		out.Status, out.Error = task.Blocked, &task.Error{Code: "approval_denied", Message: core.ClipTo(r.reason, 4096)}
	case r.how == cancelled && r.reason == swarm.WhyTimedOut:
		out.Status, out.Error = task.TimedOut, &task.Error{Code: "timed_out", Message: r.reason, Retryable: true}
	case r.leaving():
		out.Status, out.Error = task.Cancelled, &task.Error{Code: CodeClosing, Message: r.reason}
	case r.how == cancelled:
		out.Status, out.Error = task.Cancelled, &task.Error{Code: "cancelled", Message: core.ClipTo(r.reason, 4096)}
	case r.how == restarted:
		out.Status, out.Error = task.Failed, &task.Error{Code: "agent_restarted", Message: core.ClipTo(r.reason, 4096), Retryable: true}
		out.Unsent = false
	case err != nil:
		unsent := out.Unsent
		out = failure(core.AsError(err).Message)
		out.Unsent = unsent
	case out.Status == task.Succeeded:
		out.Error = nil
	case !out.Status.Terminal() || out.Status == "":
		out = failure(fmt.Sprintf("the runtime ended the prompt as %q", out.Status))
	case out.Error == nil:
		out.Error = &task.Error{Code: "agent_failed", Message: "the agent gave no reason"}
	}
	if c := out.Confidence; c != nil && (math.IsNaN(*c) || *c < 0 || *c > 1) {
		out.Confidence = nil
	}
	out.Denials = append([]string(nil), r.denials...)
	return out
}

func failure(message string) task.Outcome {
	return task.Outcome{Status: task.Failed, Error: &task.Error{Code: "agent_failed", Message: core.ClipTo(message, 4096), Retryable: true}}
}

// leaving says that the run ends for reasons of the engine's, and the next one goes on
// with it; mu is held.
func (r *run) leaving() bool {
	return r.how == cancelled && (r.reason == swarm.WhyClosing || r.reason == swarm.WhySilent)
}

// CodeClosing is the code of the error of a run that ended with its engine.
const CodeClosing = "engine_closes"

// end makes the run stop for a reason; the first one counts.
func (r *run) end(how ending, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.how != itself {
		return
	}
	r.how, r.reason = how, reason
	close(r.stop)
}

func (r *run) Done() <-chan struct{}            { return r.done }
func (r *run) Outcome() task.Outcome            { <-r.done; return r.out }
func (r *run) Cancel(reason string)             { r.end(cancelled, reason) }
func (r *run) Pause(ctx context.Context) error  { return r.hold(ctx, true) }
func (r *run) Resume(ctx context.Context) error { return r.hold(ctx, false) }

// hold pauses or resumes the agent; a run that has none yet stands still anyway.
func (r *run) hold(ctx context.Context, on bool) error {
	if _, now := r.m.now(); now != r {
		return nil
	}
	return r.m.hold(ctx, byTask, on)
}
