package fleet

import (
	"context"
	"errors"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
)

// Ask puts a tool call before the judge that does not come through an agent's
// runtime, and blocks until there is an answer. The question is to be Apart.
// One that an agent asks while it works is part of that work: the agent and
// its task wait for the answer, and a denial is one of the task's.
func (f *Fleet) Ask(ctx context.Context, x swarm.Question) (swarm.Reply, error) {
	m := f.member(x.By.Tenant, x.Ask.Agent.Name)
	if m == nil || x.Ask.TaskID == "" {
		return f.asked.Put(ctx, x)
	}
	c := &outsideCall{f: f, m: m, task: x.Ask.TaskID, trace: x.Ask.TraceID}
	asked := x.Asked
	x.Asked = func(tx *audit.Tx, d judge.GateDecision, ap *judge.Approval) error {
		if err := asked(tx, d, ap); err != nil {
			return err
		}
		if err := m.judged(tx, c.task, x.Ask.Action, d); err != nil || ap == nil {
			return err
		}
		return c.waits(tx, ap.ApprovalID)
	}
	reply, err := f.asked.Put(ctx, x)
	if left := c.goesOn(context.WithoutCancel(ctx)); err == nil {
		err = left
	}
	if _, r := m.now(); r != nil && r.job.Task.TaskID == c.task {
		r.progress.event(&Event{}, false) // the time it waited is over
		if err == nil && !reply.Approved {
			r.denied(reply)
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
func (r *run) denied(no swarm.Reply) {
	r.mu.Lock()
	if no.Decision.DecisionID != "" {
		r.denials = append(r.denials, no.Decision.DecisionID)
	}
	r.mu.Unlock()
	if no.Abort {
		r.end(aborted, no.Reason)
	}
}
