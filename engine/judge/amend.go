package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Inquiry is what a person asked before they answer an approval, and what whoever
// asked for it said to that. Neither decides anything.
type Inquiry struct {
	By        string    `json:"by"`
	At        time.Time `json:"at"`
	Text      string    `json:"text"`
	Reply     string    `json:"reply,omitempty"`
	RepliedBy string    `json:"replied_by,omitempty"`
	RepliedAt time.Time `json:"replied_at,omitzero"`
}

// Bounds of what is asked about one approval.
const (
	maxInquiries = 10
	maxInquiry   = 1024 // bytes
	maxReply     = 4096 // bytes
)

// Inquirer is an owner of a gate that hands questions to the agents that wait there.
type Inquirer interface {
	// Listens refuses the question to an agent that can't hear it while it waits.
	Listens(a *Approval) error
	// Inquire hands it on, once it is on disk. It does not block.
	Inquire(a *Approval, text string)
}

// Inquire asks who asked for an open approval a question. The deadline stays.
func (j *answers) Inquire(ctx context.Context, by core.Caller, id, text string) (Approval, error) {
	if err := checkText("text", &text, 1, maxInquiry); err != nil {
		return Approval{}, err
	}
	return j.adjust(ctx, by, id, "ask about", func(tx *audit.Tx, a *Approval) error {
		if len(a.Inquiries) >= maxInquiries {
			return core.Errorf(core.Conflict, "approval %s: %d questions were asked about it; at most %d are", id, len(a.Inquiries), maxInquiries)
		}
		if in, is := j.owners[a.Gate].(Inquirer); is && a.RequestedKind == core.Agent {
			if err := in.Listens(a); err != nil {
				return err
			}
			told := *a
			tx.OnCommit(func() { in.Inquire(&told, text) })
		}
		a.Inquiries = append(slices.Clone(a.Inquiries), Inquiry{By: by.Name, At: tx.Now(), Text: text})
		return j.approvals.save(tx, a, "approval.inquired", map[string]any{"by": by.Name, "text_sha256": core.SHA256(text)})
	})
}

// Reply is what who asked for an approval says to the newest question about it.
func (j *answers) Reply(ctx context.Context, by core.Caller, id, text string) (Approval, error) {
	if err := checkText("text", &text, 1, maxReply); err != nil {
		return Approval{}, err
	}
	return j.asOwner(ctx, by, id, "reply about", func(tx *audit.Tx, a *Approval) error {
		n := len(a.Inquiries) - 1
		if n < 0 || a.Inquiries[n].Reply != "" {
			return core.Errorf(core.Conflict, "approval %s: nobody waits for a reply about it", id)
		}
		a.Inquiries = slices.Clone(a.Inquiries)
		in := &a.Inquiries[n]
		in.Reply, in.RepliedBy, in.RepliedAt = text, by.Name, tx.Now()
		return j.approvals.save(tx, a, "approval.replied", map[string]any{"by": by.Name, "text_sha256": core.SHA256(text)})
	})
}

// Recall takes an open approval back: who asked no longer wants it. It is void, and its
// gate answers as for a denial.
func (j *answers) Recall(ctx context.Context, by core.Caller, id, reason string) (Approval, error) {
	if err := checkText("reason", &reason, 0, maxReason); err != nil {
		return Approval{}, err
	}
	return j.asOwner(ctx, by, id, "withdraw", func(tx *audit.Tx, a *Approval) error {
		a.Status, a.VoidedAt, a.VoidReason = Voided, tx.Now(), core.ClipTo(joined(": ", "withdrawn by "+by.Name, reason), maxReason)
		d := a.decision(tx.By, Deny, reasonRecalled)
		d.Rationale = reason
		return j.end(tx, a, &d, "approval.withdrawn", map[string]any{"by": by.Name, "reason_sha256": core.SHA256(reason)}, Outcome{Reason: a.VoidReason, By: by.Name})
	})
}

// asOwner changes an open approval for who asked for it. Anyone else is refused, and
// that is audited.
func (j *answers) asOwner(ctx context.Context, by core.Caller, id, what string, fn func(*audit.Tx, *Approval) error) (Approval, error) {
	if err := j.ledger.local(ctx, by, core.ApprovalPrefix, "approval", id); err != nil {
		return Approval{}, err
	}
	return j.alter(ctx, by, id, what, func(_ *audit.Tx, a *Approval) error {
		if by.Kind == a.RequestedKind && by.Is(a.RequestedBy, a.RequestedPerson) {
			return nil
		}
		return core.Errorf(core.Denied, "approval %s: only who asked for it may %s it: %s %s", id, what, a.RequestedKind, a.RequestedBy)
	}, fn)
}

// OfCall is the open approval of an agent's call or question in a task, from memory; nil
// for none.
func (j *approvals) OfCall(tenant, task, call string) *Approval {
	for _, a := range j.Live(tenant) {
		if a.TaskID == task && a.Action.CallID == call && (a.Gate == GateTool || a.Gate == GateQuestion) {
			return a
		}
	}
	return nil
}

// erase takes out what the subject asked, and what was said for them.
func (in *Inquiry) erase(e *record.Erasure, said bool) {
	if in.By == e.Of.Name {
		e.Wipe(&in.Text)
	}
	if said {
		e.Wipe(&in.Reply)
	}
}

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
func (j *answers) revise(ctx context.Context, by core.Caller, a Approval, args core.Raw) (*revision, error) {
	final, err := j.edited(&a, args)
	if err != nil {
		return nil, err
	}
	before := a.Digest
	a.Action.Args = append(core.Raw(nil), final...)
	if b, is := j.owners[a.Gate].(Binder); is {
		a.Action.Files = b.Bind(a)
	} else if w := j.approvals.waits.of(a.TenantID, a.ApprovalID); w != nil && w.Bind != nil {
		a.Action.Files = w.Bind(a.Action.Args)
	}
	ask := a.ask()
	v := j.policies.decide(ctx, a.TenantID, &ask)
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
		a.Subject = j.policies.Subject(a.TenantID, a.Gate, &a.Action, &a.Agent)
		a.Intent = strings.TrimSuffix(a.Intent, edited) + edited // the words were about other arguments
		a.Consents = nil                                         // of something else
	}
	return &revision{before: before, after: a}, nil
}

// edited has whoever acts on edited arguments check them.
func (j *answers) edited(a *Approval, args core.Raw) (core.Raw, error) {
	why := ""
	switch owner := j.owners[a.Gate]; {
	case owner == nil && !j.awaited[a.Gate]:
		return nil, core.Errorf(core.Unavailable, "approval %s: nothing here can check an edit of %s", a.ApprovalID, a.Gate)
	case a.Fixed:
		return nil, core.Errorf(core.InvalidInput, "edit: %s can't be given edited arguments; deny approval %s and say what instead", core.ClipTo(a.Agent.Name, 100), a.ApprovalID).With("field", "edit")
	case a.Gate == GateIntent:
		why = "intent " + a.Action.CallID + " can't be changed; deny it and want something else"
	case a.Gate == GateNet:
		why = "a connection can't be changed; approve or deny it"
	case a.Gate == GateResult || a.Gate == GateBudget || a.Gate == GateAgent:
		why = "only the arguments of a task or a tool call can be edited"
	}
	final, err := args, error(nil)
	if e, is := j.owners[a.Gate].(Editor); why != "" {
		err = core.Errorf(core.InvalidInput, "edit: %s", why).With("field", "edit")
	} else if is {
		final, err = e.Validate(*a, args)
	} else if w := j.approvals.waits.of(a.TenantID, a.ApprovalID); w != nil && w.Check != nil {
		final, err = w.Check(args)
	}
	if err == nil {
		err = CheckArgs(final)
	}
	if err != nil {
		return nil, fmt.Errorf("edit of approval %s: %w", a.ApprovalID, err)
	}
	return final, nil
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
