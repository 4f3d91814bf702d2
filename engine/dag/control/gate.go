package control

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
)

// lookAtApproval is how often an intent that waits for a person is held against
// its approval: a task that ends voids it without a word to us.
const lookAtApproval = 15 * time.Second

// ask is the question about an intent that an agent wants: all its steps, with
// their exact arguments.
func (f *file) ask() (judge.Ask, error) {
	steps := make([]Step, len(f.Steps))
	tool := "" // the first that destroys
	for n, s := range f.Steps {
		call, err := f.c.dag.GetIn(f.tx, s.Call)
		if err != nil {
			return judge.Ask{}, fmt.Errorf("read the call of %s: %w", callID(f.IntentID, n+1), err)
		}
		steps[n] = Step{s.Action, call.Event.Body.(*dag.ToolCall).Args}
		if k := f.c.kinds[s.Action]; tool == "" && k.Destructive {
			tool = s.Action
		}
	}
	tool = cmp.Or(tool, f.Steps[0].Action) // what destroys may be unknown to this program
	args, err := core.Encode(struct {
		Subject string `json:"subject,omitempty"`
		Steps   []Step `json:"steps"`
	}{f.Subject, steps})
	if err != nil {
		return judge.Ask{}, fmt.Errorf("encode the steps of %s: %w", f.IntentID, err)
	}
	intent := fmt.Sprintf("%s wants %s", f.AgentID, tool)
	if f.Subject != "" {
		intent += " of " + f.Subject
	}
	return judge.Ask{
		Gate: judge.GateIntent, TraceID: f.TraceID, TaskID: f.TaskID, Session: f.SessionID, Attempt: 1,
		Action: judge.Action{Kind: judge.KindIntent, Server: server, Tool: tool, CallID: f.IntentID, Args: args},
		Agent:  judge.AgentRef{Name: f.AgentID}, Intent: intent, Risk: judge.High,
		By: core.Caller{Tenant: f.TenantID, Name: f.By, Kind: f.ByKind, Door: f.Door},
	}, nil
}

// judged has the judge look at an intent.
func (c *Controller) judged(ctx context.Context, at place) error {
	return judge.Decide(func() error {
		var ask judge.Ask
		var v judge.Verdict
		err := c.ledger.View(ctx, at.tenant, func(tx *audit.Tx) error {
			f, err := c.open(tx, at.id)
			if err == nil {
				ask, err = f.ask()
			}
			return err
		})
		if err != nil {
			return err
		}
		if c.opt.Judge != nil {
			v = c.opt.Judge.Evaluate(ctx, at.tenant, ask)
		}
		return c.ledger.Update(ctx, core.Self(at.tenant, component), func(tx *audit.Tx) error {
			f, err := c.open(tx, at.id)
			if err != nil || f.Status != Waiting {
				return err // withdrawn
			}
			return f.judge(ask, v)
		})
	})
}

// judge applies the judge's word.
func (f *file) judge(ask judge.Ask, v judge.Verdict) error {
	if f.c.opt.Judge == nil {
		return f.refuse("there is no judge here")
	}
	d, a, err := f.c.opt.Judge.Commit(f.tx, ask, v)
	if err != nil {
		return err
	}
	f.Decision = d.DecisionID
	switch {
	case a != nil:
		f.Approval, f.Used = a.ApprovalID, false
		f.Why = "for an answer to " + a.ApprovalID
		return f.save("asked", map[string]any{"approval_id": a.ApprovalID, "rule": v.RuleID})
	case v.Decision == judge.Approve:
		return f.approved(map[string]any{"decision_id": d.DecisionID, "rule": v.RuleID})
	}
	return f.refuse(fmt.Sprintf("denied by %s (%s)", d.Decider(), v.ReasonCode))
}

// approved lets the intent begin, when it is its turn.
func (f *file) approved(detail any) error {
	f.Status, f.Why = Open, ""
	if err := f.line(); err != nil {
		return err
	}
	return f.save("approved", detail)
}

// refuse ends an intent that must not begin.
func (f *file) refuse(why string) error {
	affects := []dag.EventRef{}
	for _, s := range f.Steps {
		affects = append(affects, dag.EventRef{EventID: s.Call})
	}
	f.emit(&dag.Interruption{Reason: dag.ReasonApprovalDenied, Affects: affects})
	f.Why = core.ClipTo(why, maxWhy)
	return f.takeBack("refused", map[string]any{"why": f.Why})
}

// lookAfter holds a waiting intent against its approval.
func (f *file) lookAfter() (todo, error) {
	next := todo{next: f.tx.Now().Add(lookAtApproval)}
	a, err := f.c.opt.Judge.ApprovalIn(f.tx, f.Approval)
	if err != nil || a.Status != judge.Voided {
		return next, err
	}
	if err := f.refuse("the question was voided: " + a.VoidReason); err != nil {
		return next, err
	}
	return f.todo()
}

// useApproval checks, as the first step begins, that what was approved is what
// begins. When it is not, the judge is asked anew.
func (f *file) useApproval() (bool, error) {
	ask, err := f.ask()
	if err != nil {
		return false, err
	}
	stands, err := f.c.opt.Judge.Start(f.tx, f.Approval, ask)
	if err != nil {
		return false, err
	}
	if stands {
		f.Used = true
		return true, nil
	}
	if err := f.leave(); err != nil {
		return false, err
	}
	f.Status, f.Approval, f.Why = Waiting, "", "for the judge, again: what was approved no longer stands"
	return false, f.save("asks_again", nil)
}

// Controller is the owner of the judge's gate for intents.
var _ judge.Settler = (*Controller)(nil)

func (c *Controller) Settle(tx *audit.Tx, a judge.Approval, out judge.Outcome) error {
	f, err := c.open(tx, a.Action.CallID)
	if err != nil {
		return err
	}
	if f.Status != Waiting || f.Approval != a.ApprovalID {
		return core.Errorf(core.Conflict, "intent %s does not wait for approval %s any more", f.IntentID, a.ApprovalID)
	}
	f.wake(f.IntentID)
	f.Decision = out.Decision.DecisionID
	if out.Approved {
		return f.approved(map[string]any{"approval_id": a.ApprovalID, "by": out.By})
	}
	why := "denied by " + out.By
	if out.Reason != "" {
		why += ": " + out.Reason
	}
	return f.refuse(why)
}
