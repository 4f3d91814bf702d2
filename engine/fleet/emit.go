package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// emit takes one event of the run from its runtime.
func (r *run) emit(ctx context.Context, e Event) (ToolAnswer, error) {
	if e.Type == "tool_request" {
		return r.tool(ctx, e)
	}
	r.follow(ctx, &e)
	switch e.Type {
	case "message":
		r.log.add("INFO", e.Text, "message")
	case "log":
		r.log.add(e.Level, e.Text, "log")
	case "thought":
		r.log.add("DEBUG", e.Text, "thought")
	case "prompt":
		r.log.add("INFO", "told: "+e.Text, "prompt")
	case "plan", "diff":
		r.log.add("INFO", e.Text, e.Type)
	case "tool_call":
		r.log.add("INFO", "runs "+toolName(e), "tool") // it may ask yet: its result says whether it did
	case "mode":
		return ToolAnswer{}, r.mode(ctx, e)
	case "model_request":
		// The record has it; the log tells of the answer.
	case "model_response":
		level, text := modelLine(&e)
		r.log.add(level, text, "model")
	case "usage":
		r.use(&e)
	case "attention":
		return ToolAnswer{}, r.attend(ctx, e.Text)
	case "reply", "withdraw":
		return ToolAnswer{}, r.replied(ctx, &e)
	case "tool_result":
		return ToolAnswer{}, r.toolResult(ctx, e)
	case "result":
		// The outcome of Prompt says it all; a text beside it is kept.
		if e.Text != "" {
			r.log.add("INFO", e.Text, "result")
		}
	default:
		r.log.add("INFO", e.Text, "unknown:"+core.ClipTo(e.Type, maxCall))
	}
	return ToolAnswer{}, r.log.failed()
}

// follow tells all who follow the run of an event.
func (r *run) follow(ctx context.Context, e *Event) {
	r.progress.event(e, r.acts.take(e))
	if r.seen != nil {
		r.seen.Event(ctx, *e)
		r.soon() // what it has gathered is written with what the run has
	}
}

// use counts what the agent spent. A claim to have gained something is not
// believed.
func (r *run) use(e *Event) {
	tokens, cost := e.Tokens, e.CostUSD
	if math.IsNaN(cost) || bound.Check(&budget.Usage{Tokens: tokens, CostUSD: cost}) != nil {
		r.log.add("WARN", fmt.Sprintf("usage of %d tokens and %g USD is not possible, and was not counted", tokens, cost), "usage")
		return
	}
	limited := r.job.Limited()
	r.acts.used(e, !limited)
	if limited && (tokens > 0 || cost > 0) {
		r.job.Use(tokens, cost)
	}
}

// attend records that the agent asks for a person, on its record and for good
// beside the task.
func (r *run) attend(ctx context.Context, text string) error {
	text = cmp.Or(core.ClipTo(text, maxReason), "the agent asks for you")
	r.log.add("WARN", text, "attention")
	t := &r.job.Task
	n := record.Event{Type: "agent.attention", Trace: t.TraceID, Detail: map[string]any{"task_id": t.TaskID, "text": text}}
	_, err := r.f.change(ctx, r.m.speaker(), r.m, n, func(tx *audit.Tx, a *Agent) error {
		if a.Attention == text || a.TaskID != t.TaskID {
			return errSame
		}
		a.Attention = text
		return attention.Put(tx, record.Key(t.TaskID), text)
	})
	return err
}

// mode records how the agent's own permissions are set: another mode asks for
// less or for more than the one that was wanted, so the gate's strength changed.
func (r *run) mode(ctx context.Context, e Event) error {
	level := "INFO"
	if e.Status != "" {
		level = "WARN"
	}
	r.log.add(level, e.Text, "mode")
	detail := map[string]any{"task_id": r.job.Task.TaskID, "text": core.ClipTo(e.Text, maxReason)}
	if core.CheckObject("args", e.Args, maxOptions) == nil {
		detail["mode"] = e.Args
	}
	return r.tell(ctx, "agent.mode", detail)
}

// tell audits what the agent did.
func (r *run) tell(ctx context.Context, event string, detail map[string]any) error {
	return r.commit(ctx, r.m.speaker(), func(tx *audit.Tx) error {
		return r.m.record(tx, record.Event{Type: event, Trace: r.job.Task.TraceID, Detail: detail})
	})
}

func toolName(e Event) string {
	return strings.TrimSpace(core.ClipTo(e.Tool, maxCall) + " " + oneLine(e.Text, maxIntent))
}

// toolResult keeps what came of a call. A call that was never asked about is
// shown as such: the agent did it past the gate, or invented it.
func (r *run) toolResult(ctx context.Context, e Event) error {
	was := r.acts.close(e.CallID)
	tool, asked := was.Tool, was.open && was.Asked
	id, status := core.ClipTo(e.CallID, maxCall), core.ClipTo(e.Status, maxCall)
	if was.Asked && !was.open { // it was denied, or has its result
		r.log.add("DEBUG", fmt.Sprintf("call %s: %s, after its end", id, status), "tool")
		return r.log.failed()
	}
	if !asked && e.Tool != "" { // the runtime saw it happen
		tool = toolName(e) + " (not asked)"
	} else if !asked {
		r.log.add("WARN", fmt.Sprintf("result (%s) of tool call %q, for which no permission was asked", status, id), "tool")
		return r.log.failed()
	}
	level, text := "INFO", fmt.Sprintf("%s %s: %s", tool, id, status)
	if status != "ok" {
		level = "WARN"
	}
	if len(e.Output) > 0 {
		text += " " + string(e.Output)
	}
	if e.Error != "" {
		text += " " + e.Error
	}
	r.log.add(level, text, "tool")
	return r.tell(ctx, "tool.result", map[string]any{
		"task_id": r.job.Task.TaskID, "call_id": id, "tool": core.ClipTo(tool, maxIntent), "asked": asked, "status": status, "bytes": len(e.Output),
	})
}

// Ask puts a tool call before the judge that does not come through an agent's
// runtime, and blocks until there is an answer. The question is to be Apart.
// One that an agent asks while it works is part of that work: the agent and
// its task wait for the answer, and a denial is one of the task's.
func (f *Fleet) Ask(ctx context.Context, x judge.Request) (judge.Outcome, error) {
	m := f.member(x.By.Tenant, x.Ask.Agent.Name)
	if m == nil || x.Ask.TaskID == "" {
		return f.opt.Judge.Request(ctx, x)
	}
	c := &outsideCall{f: f, m: m, task: x.Ask.TaskID, trace: x.Ask.TraceID}
	if _, r := m.now(); r != nil && r.job.Task.TaskID == c.task {
		x.Commit = r.commit
	}
	recorded := x.Record
	x.Record = func(tx *audit.Tx, s judge.Step) error {
		if err := recorded(tx, s); err != nil || s.Name != judge.Requested {
			return err
		}
		if err := m.judged(tx, c.task, x.Ask.Action, s.Decision); err != nil || s.Approval == "" {
			return err
		}
		return c.waits(tx, s.Approval)
	}
	reply, err := f.opt.Judge.Request(ctx, x)
	if left := c.goesOn(context.WithoutCancel(ctx)); err == nil {
		err = left
	}
	if _, r := m.now(); r != nil && r.job.Task.TaskID == c.task {
		r.progress.event(&Event{}, false) // the time it waited is over
		if err == nil && !reply.Approved {
			r.denied(reply, reply.Reason)
		}
	}
	return reply, err
}

// outsideCall is such a call of an agent that works.
type outsideCall struct {
	f           *Fleet
	m           *member
	task, trace string
	approval    string // opened for it
}

// waits records that the agent and its task wait; an agent that no longer
// works on the task asks for itself alone.
func (c *outsideCall) waits(tx *audit.Tx, approval string) error {
	n := record.Event{Type: "agent.waits", Trace: c.trace, Detail: map[string]any{"approval_id": approval, "task_id": c.task}}
	_, err := c.f.changeIn(tx, c.m, n, func(_ *audit.Tx, a *Agent) error {
		if a.TaskID != c.task {
			return errSame
		}
		c.approval = approval
		a.asks(approval)
		return c.f.opt.Swarm.Gate(tx, c.task, a.Waiting)
	})
	return err
}

// goesOn records that nothing waits any more, where no answer has done so: the
// caller has gone, or the approval was voided.
func (c *outsideCall) goesOn(ctx context.Context) error {
	if now := *c.m.rec.Load(); !now.answered(c.approval) {
		return nil
	}
	n := record.Event{Type: "agent.answered", Trace: c.trace, Detail: map[string]any{"approval_id": c.approval, "approved": false}}
	_, err := c.f.change(ctx, c.m.self(), c.m, n, func(tx *audit.Tx, a *Agent) error {
		if !a.answered(c.approval) {
			return errSame
		}
		return c.f.opt.Swarm.Gate(tx, c.task, a.Waiting)
	})
	if errors.Is(err, core.Kind(core.NotFound)) {
		return nil // it was deleted
	}
	return err
}

// denied adds a no to those of the run, and with an abort ends that.
func (r *run) denied(no judge.Outcome, reason string) {
	r.mu.Lock()
	if no.Decision.DecisionID != "" {
		r.denials = append(r.denials, no.Decision.DecisionID)
	}
	r.mu.Unlock()
	if no.Abort {
		r.end(aborted, reason)
	}
}

// Observer keeps what agents do as a record of its own.
type Observer interface {
	// Began tells of a run before its agent hears of it. An error fails the run.
	Began(ctx context.Context, a Agent, t task.Task, message string) (Observed, error)
	// Overheard tells of a prompt that no task asked for, or of its result, in the
	// transaction that has it in the agent's log. It reports false for a prompt that it
	// was told of before.
	Overheard(tx *audit.Tx, a Agent, e Event) (fresh bool, err error)
}

// Observed takes what happens in one run, in its order. What it can't keep is
// no reason to stop the agent: it says so at the end.
type Observed interface {
	// Event comes before the event has any effect.
	Event(ctx context.Context, e Event)
	// Along makes a commit that writes what is gathered of the run, before all else.
	Along(commit func(record func(*audit.Tx) error) error) error
	// Judged tells a decision about a tool call of the run, in the transaction
	// that makes it: the policy's, and a person's when that is asked.
	Judged(tx *audit.Tx, a judge.Action, d judge.GateDecision) error
	// Answered tells the judge's word on a tool request before the agent hears
	// it.
	Answered(ctx context.Context, e Event, a ToolAnswer)
	Ended(ctx context.Context, out task.Outcome) error
}

// observe begins to tell of the run, if anybody listens.
func (r *run) observe(ctx context.Context) error {
	if r.f.opt.Observer == nil {
		return nil
	}
	defer r.job.Keep()()
	seen, err := r.f.opt.Observer.Began(ctx, *r.m.rec.Load(), r.job.Task, r.message())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = seen
	return err
}

// observed tells the run's end, and logs what could not be kept.
func (r *run) observed(ctx context.Context, out task.Outcome) {
	if r.seen == nil {
		return
	}
	if err := r.seen.Ended(ctx, out); err != nil {
		r.log.add("WARN", "not all of this run could be recorded: "+err.Error(), "record")
		_ = r.flush(ctx) // as lost as what it tells of
	}
}

// judged tells a decision about a call of the agent's, if it is at work on the
// task and anybody listens.
func (m *member) judged(tx *audit.Tx, task string, a judge.Action, d judge.GateDecision) error {
	_, r := m.now()
	if r == nil || r.job.Task.TaskID != task {
		return nil
	}
	r.mu.Lock()
	seen := r.seen
	r.mu.Unlock()
	if seen == nil {
		return nil
	}
	return seen.Judged(tx, a, d)
}
