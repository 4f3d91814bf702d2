package judge

import (
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// edited marks the intent of an approval whose arguments were changed.
const edited = " (edited)"

// revision is an approval with edited arguments that were judged again.
type revision struct {
	before string // digest of what was edited
	after  Approval
}

// revise validates edited arguments with the gate's owner and judges them
// again. A deny rule refuses the edit (DENIED, audited) and the approval stays
// as it was; any other verdict leaves the word to the operator, at the graver
// of both risks.
func (j *Judge) revise(ctx context.Context, by core.Caller, a Approval, args core.Raw) (*revision, error) {
	owner := j.owners[a.Gate]
	if owner == nil {
		return nil, core.Errorf(core.Unavailable, "approval %s: nothing here can check an edit of %s", a.ApprovalID, a.Gate)
	}
	if a.Fixed {
		return nil, core.Errorf(core.InvalidInput, "edit: %s can't be given edited arguments; deny approval %s and say what instead", core.ClipTo(a.Agent.Name, 100), a.ApprovalID).With("field", "edit")
	}
	final, err := owner.Validate(a, args)
	if err == nil {
		err = CheckArgs(final)
	}
	if err != nil {
		return nil, fmt.Errorf("edit of approval %s: %w", a.ApprovalID, err)
	}
	before := a.Digest
	a.Action.Args = append(core.Raw(nil), final...)
	if b, ok := owner.(Binder); ok {
		a.Action.Files = b.Bind(a)
	}
	ask := a.ask()
	v := j.decide(ctx, a.TenantID, &ask)
	if v.Decision == Deny {
		cause := core.Errorf(core.Denied, "edit of approval %s: refused by %s: %s", a.ApprovalID, v.RuleID, v.Rationale).With("rule_id", v.RuleID)
		return nil, j.ledger.Refuse(ctx, by, audit.Entry{
			Type: "approval.edit_refused", Trace: a.TraceID, Subject: "approval", ID: a.ApprovalID,
			Detail: map[string]any{"rule_id": v.RuleID, "reason_code": v.ReasonCode, "digest": v.Digest, "prior_digest": before},
		}, cause)
	}
	a.PolicyVersion = v.PolicyVersion
	if a.Digest, err = Digest(a.TenantID, a.PolicyVersion, ask); err != nil { // also of what belongs to no task
		return nil, fmt.Errorf("edit of approval %s: %w", a.ApprovalID, err)
	}
	a.Risk = graver(a.Risk, v.Risk)
	if v.Decision == HITL { // else the word is the operator's, on the first rule's grounds
		a.RuleID, a.ReasonCode, a.Rationale = v.RuleID, v.ReasonCode, v.Rationale
	}
	a.reroute(v.route)
	if a.Digest != before {
		a.PriorDigest = before
		a.Subject = j.Subject(a.TenantID, a.Gate, &a.Action, &a.Agent)
		a.Intent = strings.TrimSuffix(a.Intent, edited) + edited // the words were about other arguments
		a.Consents = nil                                         // of something else
	}
	return &revision{before: before, after: a}, nil
}

// apply carries an edit over to the approval as it now is.
func (r *revision) apply(a *Approval) {
	a.Action.Args, a.Action.Files = r.after.Action.Args, r.after.Action.Files
	a.Digest, a.PriorDigest, a.Intent, a.Subject = r.after.Digest, r.after.PriorDigest, r.after.Intent, r.after.Subject
	a.PolicyVersion, a.Risk = r.after.PolicyVersion, r.after.Risk
	a.RuleID, a.ReasonCode, a.Rationale = r.after.RuleID, r.after.ReasonCode, r.after.Rationale
	a.Approvers, a.Quorum = r.after.Approvers, r.after.Quorum
	if r.after.Digest != r.before {
		a.Consents = nil
	}
}
