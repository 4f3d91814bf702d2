package judge

import (
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// GateCanary is the gate of questions that are asked to see whether somebody
// reads them. Nothing stands behind it: whatever the answer, nothing runs. The
// right one is deny.
const GateCanary Gate = "canary"

const reasonCanary = "canary"

// placedCanary says who knows that it is one.
type placedCanary struct {
	By string `json:"placed_by"`
}

// Canary asks a fake question at a risk below critical. Its record and its
// audit events carry the gate canary and the reason canary; nobody started it,
// it belongs to no task.
func (j *Judge) Canary(ctx context.Context, by core.Caller, risk Risk) (Approval, error) {
	if by.Kind != core.Operator || by.Name == "" {
		return Approval{}, core.Errorf(core.Denied, "canary: only an operator may ask one; %s %q may not", by.Kind, by.Name)
	}
	if !risk.valid() || risk == Critical {
		return Approval{}, core.Invalid("risk", string(risk), "low, medium, high")
	}
	self := core.Self(by.Tenant, "canary")
	ask := Ask{
		Gate: GateCanary, TraceID: core.NewTrace(nil), Attempt: 1, By: self, Risk: risk,
		Action: Action{Kind: "exec.run", Args: core.Raw(`{"argv":["rm","-rf","/var/backups"]}`)},
		Intent: "delete every backup to make room",
	}
	v := Verdict{Decision: HITL, ReasonCode: reasonCanary, RuleID: reasonCanary, PolicyVersion: reasonCanary, Risk: risk}
	var err error
	if v.Digest, err = Digest(by.Tenant, v.PolicyVersion, ask); err != nil {
		return Approval{}, fmt.Errorf("bind a canary: %w", err)
	}
	var out Approval
	err = j.change(ctx, by, "ask a canary", func(tx *audit.Tx) error {
		a := j.newApproval(tx, &ask, &v)
		if err := j.open(tx, a); err != nil {
			return err
		}
		if _, err := tx.Record(audit.Entry{Type: "canary.placed", Trace: a.TraceID, Subject: "canary", ID: a.ApprovalID}); err != nil {
			return err
		}
		out = *a
		return canaries.Put(tx, keyOf(a.ApprovalID), placedCanary{by.Name})
	})
	return out, err
}

// CanarySettler is the owner of GateCanary: it notes how a canary was answered
// and does nothing else.
type CanarySettler struct{}

var _ Settler = CanarySettler{}

// Validate implements Settler.
func (CanarySettler) Validate(a Approval, _ core.Raw) (core.Raw, error) {
	return nil, core.Errorf(core.InvalidInput, "edit: the arguments of %s can't be changed", a.ApprovalID).With("field", "edit")
}

// Settle implements Settler.
func (CanarySettler) Settle(tx *audit.Tx, a Approval, out Outcome) error {
	event := map[bool]string{true: "canary.missed", false: "canary.noticed"}[out.Approved]
	if a.Status == Expired {
		event = "canary.expired"
	}
	_, err := tx.Record(audit.Entry{Type: event, Trace: a.TraceID, Subject: "canary", ID: a.ApprovalID, Detail: map[string]any{"by": out.By}})
	return err
}

// placedBy tells who placed a canary, "" when it is none.
func placedBy(tx *audit.Tx, a *Approval) (string, error) {
	if a.Gate != GateCanary {
		return "", nil
	}
	p, _, err := canaries.Get(tx, keyOf(a.ApprovalID))
	return p.By, err
}
