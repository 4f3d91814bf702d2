package fleet

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// Listener is a Handle whose agent hears questions about a call while it waits to be
// allowed it. What it says to that comes as an event of type reply.
type Listener interface {
	// Tell hands a question on. It does not block.
	Tell(callID, text string) error
}

var _ judge.Inquirer = (*Fleet)(nil)

// Listens implements judge.Inquirer.
func (f *Fleet) Listens(a *judge.Approval) error {
	if f.listener(a) != nil {
		return nil
	}
	return core.Errorf(core.Unavailable, "approval %s: agent %s (%s) hears nothing while it waits; deny it with your question as the reason: it goes on, and may ask anew",
		a.ApprovalID, a.Agent.Name, a.Driver)
}

// Inquire implements judge.Inquirer. A question that does not arrive stays on the card
// without a reply.
func (f *Fleet) Inquire(a *judge.Approval, text string) {
	if l := f.listener(a); l != nil {
		_ = l.Tell(a.Action.CallID, text)
	}
}

func (f *Fleet) listener(a *judge.Approval) Listener {
	m := f.member(a.TenantID, a.Agent.Name)
	if m == nil || a.Driver == "mcp" { // whoever called a tool of ours waits for its result alone
		return nil
	}
	handle, _ := m.now()
	l, _ := handle.(Listener)
	return l
}

// replied takes what an agent says to a question about one of its calls, or that it no
// longer wants the call.
func (r *run) replied(ctx context.Context, e *Event) error {
	by, tenant := r.m.speaker(), r.m.tenant
	a := r.f.opt.Judge.OfCall(tenant, r.job.Task.TaskID, e.CallID)
	if a == nil {
		r.log.add("WARN", e.Type+" about call "+core.ClipTo(e.CallID, maxCall)+", which waits for nobody", "tool")
		return r.log.failed()
	}
	var err error
	if e.Type == "withdraw" {
		r.log.add("INFO", "withdraws call "+e.CallID+": "+e.Text, "tool")
		_, err = r.f.opt.Judge.Recall(ctx, by, a.ApprovalID, e.Text)
	} else {
		r.log.add("INFO", "says about call "+e.CallID+": "+e.Text, "tool")
		_, err = r.f.opt.Judge.Reply(ctx, by, a.ApprovalID, e.Text)
	}
	if err != nil { // it was answered meanwhile, or nobody had asked
		r.log.add("WARN", e.Type+" about call "+e.CallID+": "+err.Error(), "tool")
	}
	return r.log.failed()
}
