package fleet

import (
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
)

// Listener is a Handle whose agent hears questions about a call while it waits to be
// allowed it. What it says to that comes as an event of type reply.
type Listener interface {
	// Tell hands a question on. It does not block.
	Tell(callID, text string) error
}

var _ judge.Inquirer = (*Fleet)(nil)

func (f *roster) Listens(a *judge.Approval) error {
	if f.listener(a) != nil {
		return nil
	}
	return core.Errorf(core.Unavailable, "approval %s: agent %s (%s) hears nothing while it waits; deny it with your question as the reason: it goes on, and may ask anew",
		a.ApprovalID, a.Agent.Name, a.Driver)
}

// Inquire implements judge.Inquirer. A question that does not arrive stays on the card
// without a reply.
func (f *roster) Inquire(a *judge.Approval, text string) {
	if l := f.listener(a); l != nil {
		_ = l.Tell(a.Action.CallID, text)
	}
}

func (f *roster) listener(a *judge.Approval) Listener {
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
	if e.Type == "withdraw" && r.acts.unwant(e.CallID, e.Text) {
		r.log.add("INFO", "withdraws call "+e.CallID+": "+e.Text, "tool")
		if a := r.waiting(e.CallID); a != nil {
			r.recall(ctx, e.CallID, a.ApprovalID)
		} // else it is, once a person is asked
		return r.log.failed()
	}
	a := r.waiting(e.CallID)
	if a == nil {
		r.log.add("WARN", e.Type+" about call "+core.ClipTo(e.CallID, maxCall)+", which waits for nobody", "tool")
		return r.log.failed()
	}
	r.log.add("INFO", "says about call "+e.CallID+": "+e.Text, "tool")
	_, err := r.f.opt.Judge.Reply(ctx, r.m.speaker(), a.ApprovalID, e.Text)
	r.inVain(e.Type, e.CallID, err)
	return r.log.failed()
}

func (r *run) waiting(call string) *judge.Approval {
	return r.f.opt.Judge.OfCall(r.m.tenant, r.job.Task.TaskID, call)
}

// recall takes an approval back whose call is no longer wanted. Whoever opened it and
// whoever withdraws the call both do, as either may be first.
func (r *run) recall(ctx context.Context, call, approval string) {
	why := r.acts.unwanted(call)
	if why == nil {
		return
	}
	_, err := r.f.opt.Judge.Recall(ctx, r.m.speaker(), approval, *why)
	r.inVain("withdraw", call, err)
}

// inVain logs that what an agent said of a call changed nothing: it was answered
// meanwhile, or nobody had asked.
func (r *run) inVain(what, call string, err error) {
	if err != nil {
		r.log.add("WARN", what+" about call "+call+": "+err.Error(), "tool")
	}
}

// Overheard is a Handle whose agent is talked to elsewhere too.
type Overheard interface {
	// Overhear has the handle tell from now on, until it is closed, what is said that no
	// prompt of ours asked for: events of type prompt, message, log and, at the end of an
	// answer, result, in order. What hear returns an error for was not kept.
	Overhear(hear func(context.Context, Event) error)
}

// overhear has what is said elsewhere kept in the agent's log, with no task.
func (f *Fleet) overhear(m *member, h Handle) {
	o, ok := h.(Overheard)
	if !ok {
		return
	}
	o.Overhear(func(ctx context.Context, e Event) error {
		line := task.LogLine{Timestamp: f.opt.Ledger.Clock().Now(), Level: "INFO", Message: core.ClipTo(e.Text, maxLine), Source: e.Type}
		switch e.Type {
		case "prompt", "result":
			line.Message = core.ClipTo("told elsewhere: "+e.Text, maxLine)
			return f.overheard(ctx, m, e, line)
		case "log":
			line.Level = e.Level
		case "message":
		default:
			return fmt.Errorf("keep what agent %s says: a %s belongs to a prompt", m.name, core.ClipTo(e.Type, maxCall))
		}
		return f.opt.Tasks.AppendLog(ctx, m.speaker(), stream(m.name), []task.LogLine{line})
	})
}

// overheard keeps a turn's beginning or end, and the former in the log, once.
func (f *Fleet) overheard(ctx context.Context, m *member, e Event, line task.LogLine) error {
	lines := []task.LogLine{line}
	if e.Type != "prompt" {
		lines = nil
	}
	if f.opt.Observer == nil || e.Turn == "" {
		return f.opt.Tasks.AppendLog(ctx, m.speaker(), stream(m.name), lines)
	}
	return f.opt.Ledger.Append(ctx, m.speaker(), func(tx *audit.Tx) error {
		fresh, err := f.opt.Observer.Overheard(tx, *m.rec.Load(), e)
		if err != nil || !fresh || len(lines) == 0 {
			return err
		}
		_, err = f.opt.Tasks.LogIn(tx, stream(m.name), lines)
		return err
	})
}
