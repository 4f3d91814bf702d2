package cad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
)

// operationArgs is what an operation's approval is bound to.
type operationArgs struct {
	AgentID     string   `json:"agent_id"`
	FleetAgent  string   `json:"fleet_agent,omitempty"` // that acts as it
	Method      string   `json:"method"`
	WorkspaceID string   `json:"workspace_id"`
	Params      core.Raw `json:"params"`
}

func (x *execution) question() judge.Ask {
	a := x.m.rec.Load()
	effects := namesOf(x.effects, func(e Effect) Effect { return e })
	intent := x.method.Name + " in workspace " + x.space.WorkspaceID
	if x.fleet != "" {
		intent += ", by " + x.fleet + " as " + x.m.id
	}
	return judge.Ask{
		Gate: judge.GateCAD, TraceID: x.trace, TaskID: x.op.TaskID, Session: x.op.Session, Attempt: x.op.Attempt, Priority: x.op.Priority,
		Action: judge.Action{
			Kind: judge.KindCAD, Server: x.space.Kernel, Tool: x.method.Name, CallID: x.op.Mark, Effects: effects,
			Args: core.MustEncode(operationArgs{x.m.id, x.fleet, x.method.Name, x.space.WorkspaceID, x.params}),
		},
		Agent: judge.AgentRef{Name: x.m.id, Role: a.Role, Project: a.WorkspaceID}, Driver: "cad", Intent: intent, By: x.by,
	}
}

// outside reports an effect that the store does not hold: its decision must be
// on disk before it begins. All others begin with their own commit.
func (x *execution) outside() bool {
	return slices.Contains(x.effects, Exports) || slices.Contains(x.effects, Deletes)
}

// permit puts the operation before the judge. A yes to what lives in the store
// alone is recorded along with it; everything else is on disk first. The
// parameters may come back edited.
func (x *execution) permit(ctx context.Context) error {
	x.ask, x.decision, x.decisionID = x.question(), nil, ""
	x.verdict = x.c.opt.Judge.Evaluate(ctx, x.by.Tenant, x.ask)
	if err := x.verdict.Refused(); err != nil {
		return invalid("params", nil, err.Error())
	}
	if x.verdict.Decision == judge.Approve && !x.outside() {
		return nil
	}
	if x.op.Unasked && x.verdict.Decision == judge.HITL {
		return &OpError{
			Class: OperationFailed, Name: string(OperationFailed), Denied: true, Suggestion: "do it in the cockpit, or change the rule " + x.verdict.RuleID,
			Message: fmt.Sprintf("%s: a person must approve this, and nobody can be asked here: %s", x.method.Name, x.verdict.Rationale),
		}
	}
	reply, err := x.c.opt.Judge.Request(ctx, judge.Request{
		By: x.by, Ask: x.ask, Apart: x.op.TaskID == "", Beat: x.op.Beat, Stop: x.op.Stop, Held: x.op.Held, Record: x.record, Check: x.checkEdit,
	})
	switch {
	case err != nil:
		return errors.Join(err, x.c.waitsNoMore(context.WithoutCancel(ctx), x.by, x.m, "the operation was ended"))
	case !reply.Approved:
		return &OpError{
			Class: OperationFailed, Message: x.method.Name + ": denied: " + cmp.Or(reply.Reason, reply.Decision.ReasonCode),
			Denied: true, DecisionID: reply.Decision.DecisionID,
		}
	}
	x.decision, x.decisionID = reply.Decision.Audit(), reply.Decision.DecisionID
	var args operationArgs
	if err := core.DecodeStored(reply.Args, &args); err != nil {
		return fmt.Errorf("read the approved arguments of %s: %w", x.method.Name, err)
	}
	if string(args.Params) == string(x.params) {
		return nil
	}
	edited, err := x.edited(args.Params)
	if err != nil {
		return err
	}
	x.method, x.params, x.call, x.file = edited.method, edited.params, edited.call, edited.file
	return nil
}

// record records that an operation was put before the judge, and that the agent
// waits if a person is asked; then that an approval is used right before the effect.
func (x *execution) record(tx *audit.Tx, s judge.Step) error {
	if s.Name != judge.Requested {
		if s.Name == judge.Started {
			if err := x.intend(tx); err != nil {
				return err
			}
		}
		_, err := tx.Record(audit.Entry{Type: "cad." + s.Name, Trace: x.trace, Subject: "cad.agent", ID: x.m.id, Detail: x.about(nil, s.Detail())})
		return err
	}
	a, err := x.c.kinds.agent.Need(tx, x.m.id)
	if err != nil {
		return err
	}
	if a.Status == Terminated {
		return terminated(a.AgentID)
	}
	if s.Approval != "" {
		a.Waiting = s.Approval
	} else if s.Decision.Decision == judge.Approve {
		if err := x.intend(tx); err != nil {
			return err
		}
	}
	return x.c.kinds.agent.Keep(tx, record.Event{Type: "cad.requested", Trace: x.trace, Detail: x.about(s.Decision.Audit(), nil)}, a)
}

// about is what the audit log says of an operation.
func (x *execution) about(decision core.Raw, more map[string]any) map[string]any {
	detail := map[string]any{"method": x.method.Name}
	if x.space != nil { // else its role does not allow it, or there is none
		detail["workspace_id"] = x.space.WorkspaceID
	}
	if len(decision) > 0 {
		detail["decision"] = decision
	}
	if x.op.TaskID != "" {
		detail["task_id"] = x.op.TaskID
	}
	maps.Copy(detail, more)
	return detail
}

// checkEdit checks edited arguments: only the parameters can be edited, and the
// role must allow what comes of it.
func (x *execution) checkEdit(args core.Raw) (core.Raw, error) {
	var now operationArgs
	if err := core.Decode(args, &now); err != nil {
		return nil, fmt.Errorf("edit: %w", err)
	}
	for _, f := range []struct{ name, was, now string }{
		{"agent_id", x.m.id, now.AgentID}, {"fleet_agent", x.fleet, now.FleetAgent}, {"method", x.method.Name, now.Method}, {"workspace_id", x.space.WorkspaceID, now.WorkspaceID},
	} {
		if f.now != "" && f.now != f.was {
			return nil, core.Invalid("edit."+f.name, f.now, f.was+": only params can be edited")
		}
	}
	edited, err := x.edited(now.Params)
	if err != nil {
		return nil, err
	}
	return core.MustEncode(operationArgs{x.m.id, x.fleet, x.method.Name, x.space.WorkspaceID, edited.params}), nil
}

func (x *execution) edited(params core.Raw) (*execution, error) {
	now := &execution{c: x.c, by: x.by, t: x.t, m: x.m, op: x.op, fleet: x.fleet, trace: x.trace}
	now.op.Params, now.op.Method = params, x.method.Name
	if err := now.resolve(context.Background()); err != nil {
		return nil, err
	}
	if now.method.Name != x.method.Name || now.space.WorkspaceID != x.space.WorkspaceID {
		return nil, core.Invalid("edit.params", now.method.Name+" in "+now.space.WorkspaceID, "parameters with which it stays "+x.method.Name+" in "+x.space.WorkspaceID)
	}
	for _, e := range now.effects {
		if !slices.Contains(x.effects, e) {
			return nil, core.Invalid("edit.params", string(e), "parameters with which it does no more than was asked about")
		}
	}
	return now, nil
}

// Settle implements judge.Settler: the agent no longer waits.
func (c *roster) Settle(tx *audit.Tx, ap judge.Approval, out judge.Outcome) error {
	a, err := c.kinds.agent.Need(tx, ap.Agent.Name)
	if err != nil || a.Waiting != ap.ApprovalID {
		if errors.Is(err, core.Kind(core.NotFound)) {
			return nil
		}
		return err
	}
	a.Waiting = ""
	return c.kinds.agent.Keep(tx, record.Event{Type: "cad.answered", Trace: ap.TraceID, Detail: map[string]any{"approval_id": ap.ApprovalID, "approved": out.Approved}}, a)
}

// waitsNoMore clears what an agent waits for, when nobody acts on an answer any
// more.
func (c *roster) waitsNoMore(ctx context.Context, by core.Caller, m *member, reason string) error {
	if m.rec.Load().Waiting == "" {
		return nil
	}
	return c.update(ctx, by, func(tx *audit.Tx) error {
		a, err := c.kinds.agent.Need(tx, m.id)
		if err != nil {
			return err
		}
		if a.Waiting == "" {
			return errSame
		}
		if err := c.opt.Judge.Void(tx, func(ap *judge.Approval) bool { return ap.ApprovalID == a.Waiting }, reason); err != nil {
			return err
		}
		a.Waiting = ""
		return c.kinds.agent.Keep(tx, record.Event{Type: "cad.unasked", Detail: map[string]string{"reason": reason}}, a)
	})
}

// voidIn closes what an agent waits for.
func (c *roster) voidIn(tx *audit.Tx, id, reason string) error {
	return c.opt.Judge.Void(tx, func(a *judge.Approval) bool { return a.Gate == judge.GateCAD && a.Agent.Name == id }, reason)
}
