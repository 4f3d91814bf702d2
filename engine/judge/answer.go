package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Answer is an operator's word on an open approval. One answer wins: the next
// gets CONFLICT with who answered, when and what (requirement 2.5). Other errors are
// INVALID_INPUT (a missing reason, a bad edit), NOT_FOUND, and DENIED, which
// is audited: an agent, another tenant's approval, the two-person rule.
//
// Where more than one person must approve (Needed), who asked is none of them: all but
// the last leave the approval open, and are among its Consents.
func (j *Judge) Answer(ctx context.Context, by core.Caller, id string, ans Answer) (Approval, error) {
	if err := checkAnswer(&ans); err != nil {
		return Approval{}, err
	}
	if err := j.mayAnswer(ctx, by, id); err != nil {
		return Approval{}, err
	}
	next, rule, err := j.prepare(ctx, by, id, &ans)
	if err != nil {
		return Approval{}, err
	}
	if !ans.Approve { // what stops something is recorded on a full disk too
		ctx = store.IfFull(ctx, store.UseReserve)
	}
	var answered Approval
	var late, denied error
	err = j.change(ctx, by, "answer approval "+id, func(tx *audit.Tx) error {
		a, err := j.approvals.Need(tx, id)
		if err != nil {
			return err
		}
		if err := stillOpen(a); err != nil {
			return err
		}
		if !tx.Now().Before(a.DeadlineAt) {
			late = core.Errorf(core.Conflict, "approval %s: the deadline passed at %s and denied it", id, clock(a.DeadlineAt)).With("status", Expired)
			if err := j.expire(tx, a); err != nil {
				return err
			}
			answered = *a
			return nil
		}
		if next != nil && a.Digest != next.before {
			return core.Errorf(core.Conflict, "approval %s: it changed while you edited it; look again", id).With("digest", a.Digest)
		}
		if ans.Edited != "" && ans.Edited != next.after.Digest {
			return core.Errorf(core.Conflict, "approval %s: the edit comes to something else than you saw (digest %.12s, now %.12s)", id, ans.Edited, next.after.Digest).With("digest", next.after.Digest)
		}
		if ans.Digest != "" && ans.Digest != a.Digest {
			return core.Errorf(core.Conflict, "approval %s: it is no longer what you saw (digest %.12s, now %.12s)", id, ans.Digest, a.Digest).With("digest", a.Digest)
		}
		if a.AnsweredFor, denied = j.barred(by, a, tx.Now()); denied != nil {
			return denied
		}
		if next != nil {
			next.apply(a)
			if a.AnsweredFor, denied = j.barred(by, a, tx.Now()); denied != nil { // of what it became
				return denied
			}
		}
		ans.signature, denied, err = j.signed(tx, a, &ans)
		switch {
		case err != nil || denied != nil:
		case ans.Approve:
			denied, err = j.approve(tx, a, &ans, next, rule)
		default:
			err = j.refuse(tx, a, &ans)
		}
		if err != nil || denied != nil {
			return errors.Join(err, denied)
		}
		answered = *a
		return nil
	})
	if rule != nil && answered.Status == Approved {
		answered.Always = rule.rule.Line
	}
	if denied != nil {
		return Approval{}, j.ledger.Refuse(ctx, by, audit.Entry{Type: "approval.refused", Subject: "approval", ID: id}, denied)
	}
	if err == nil {
		err = late
	}
	return answered, err
}

// prepare does what an answer needs outside of its transaction: it judges an edit,
// and tries the rule that the answer makes.
func (j *Judge) prepare(ctx context.Context, by core.Caller, id string, ans *Answer) (next *revision, rule *proposal, err error) {
	a, err := j.Approval(ctx, by.Tenant, id)
	if err == nil {
		err = stillOpen(&a)
	}
	if err == nil {
		err = a.takes(ans)
	}
	if err == nil && ans.Approve {
		err = j.unseen(&a)
	}
	if err != nil || !ans.Approve {
		return nil, nil, err
	}
	if len(ans.Edit) > 0 {
		if next, err = j.revise(ctx, by, a, ans.Edit); err != nil {
			return nil, nil, err
		}
		a = next.after
	}
	switch {
	case ans.Always != nil:
		if rule, err = j.proposeAlways(ctx, by, &a, ans.Always); err == nil {
			ans.Always = ans.Always.of(&a)
		}
	case a.Gate == GateGrant:
		rule, err = j.proposeGranted(ctx, by, &a)
	}
	return next, rule, err
}

// maxKey bounds the name of a key.
const maxKey = 16

func checkAnswer(ans *Answer) error {
	ans.Reason = strings.TrimSpace(ans.Reason)
	switch {
	case len(ans.Reason) > maxReason || !utf8.ValidString(ans.Reason):
		return core.Invalid("reason", ans.Reason, fmt.Sprintf("at most %d bytes of UTF-8", maxReason))
	case !ans.Approve && ans.Reason == "":
		return core.Errorf(core.InvalidInput, "reason: a denial needs one").With("field", "reason")
	case ans.Approve && ans.Abort:
		return core.Invalid("abort", true, "only with a denial")
	case len(ans.Key) > maxKey || !core.Printable(ans.Key):
		return core.Invalid("pressed", core.Clip(ans.Key), fmt.Sprintf("at most %d printable bytes", maxKey))
	case len(ans.Edit) == 0 && ans.Edited != "":
		return core.Errorf(core.InvalidInput, "edited_digest: only with an edit").With("field", "edited_digest")
	case !ans.Approve && len(ans.Edit) > 0:
		return core.Errorf(core.InvalidInput, "edit: only with an approval").With("field", "edit")
	case !ans.Approve && ans.Always != nil:
		return core.Errorf(core.InvalidInput, "always: only with an approval").With("field", "always")
	}
	if len(ans.Edit) > 0 {
		if err := core.CheckObject("edit", ans.Edit, core.MaxInput); err != nil {
			return err
		}
		if err := CheckArgs(ans.Edit); err != nil {
			return fmt.Errorf("edit: %w", err)
		}
	}
	if ans.Always != nil {
		return ans.Always.check()
	}
	return nil
}

// mayAnswer refuses, and audits, whoever is no operator of the approval's tenant.
func (j *Judge) mayAnswer(ctx context.Context, by core.Caller, id string) error {
	if err := j.operator(ctx, by, "approval", id, "answer"); err != nil {
		return err
	}
	return j.local(ctx, by, core.ApprovalPrefix, "approval", id)
}

// operator refuses, and audits, whoever is none and wants what only they may.
func (j *Judge) operator(ctx context.Context, by core.Caller, subject, id, what string) error {
	if by.Kind == core.Operator && by.Name != "" {
		return nil
	}
	cause := core.Errorf(core.Denied, "%s %s: only an operator may %s; %s %q may not", subject, id, what, by.Kind, by.Name)
	return j.ledger.Refuse(ctx, by, audit.Entry{Type: subject + ".refused", Subject: subject, ID: core.ClipTo(id, 128)}, cause)
}

// local refuses, and audits, an id of another tenant.
func (j *Judge) local(ctx context.Context, by core.Caller, prefix, subject, id string) error {
	_, err := core.LocalSeq(prefix, by.Tenant, id)
	if errors.Is(err, core.ErrForeign) {
		return j.ledger.Refuse(ctx, by, audit.Entry{Type: "tenant.violation", Subject: subject, ID: id}, err)
	}
	return err
}

// stillOpen says who was faster.
func stillOpen(a *Approval) error {
	var err *core.Error
	switch a.Status {
	case Open:
		return nil
	case Expired:
		err = core.Errorf(core.Conflict, "approval %s: the deadline passed at %s and denied it", a.ApprovalID, clock(a.AnsweredAt))
	case Voided:
		err = core.Errorf(core.Conflict, "approval %s: void since %s: %s", a.ApprovalID, clock(a.VoidedAt), a.VoidReason)
	default:
		err = core.Errorf(core.Conflict, "approval %s: already %s by %s at %s", a.ApprovalID, a.Status, a.AnsweredBy, clock(a.AnsweredAt))
		if a.AnswerReason != "" {
			err.Message += ": " + a.AnswerReason
		}
	}
	if err.With("status", a.Status); a.Status == Voided {
		return err.With("voided_at", a.VoidedAt)
	}
	return err.With("answered_by", a.AnsweredBy).With("answered_at", a.AnsweredAt)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// approve applies an approving answer. denied is a refusal to be audited
// apart, since the transaction is then undone.
func (j *Judge) approve(tx *audit.Tx, a *Approval, ans *Answer, next *revision, rule *proposal) (denied, err error) {
	by := tx.By
	if a.Risk.above(Medium) && ans.Reason == "" {
		return nil, core.Errorf(core.InvalidInput, "reason: an approval at %s risk needs one", a.Risk).With("field", "reason")
	}
	if err := a.agrees(ans); err != nil {
		return nil, err
	}
	own := a.RequestedKind == core.Operator && by.Is(a.RequestedBy, a.RequestedPerson)
	code := reasonApproved
	if next != nil && next.after.Digest != next.before {
		code = reasonEdited
	}
	if need := a.Needed(); need > 1 {
		if by.Known.After(a.CreatedAt) {
			return core.Errorf(core.Denied, "approval %s: where %d persons must agree, who answers has to be known before it was asked; %s is %s since %s", a.ApprovalID, need, by.Proof, by.Name, clock(by.Known)), nil
		}
		if own {
			return core.Errorf(core.Denied, "approval %s: where %d persons must agree, who asked may not approve", a.ApprovalID, need), nil
		}
		for _, c := range a.Consents {
			if by.Is(c.By, c.Person) {
				return core.Errorf(core.Denied, "approval %s: you already approved, as %s; another person must", a.ApprovalID, c.By), nil
			}
		}
		if len(a.Consents)+1 < need {
			return nil, j.consent(tx, a, ans)
		}
	}
	if rule != nil && rule.digest != a.Digest {
		return nil, core.Errorf(core.Conflict, "approval %s: it changed while the rule was tried; look again", a.ApprovalID).With("digest", a.Digest)
	}
	a.Status, a.SelfApproved = Approved, own
	return nil, j.close(tx, a, ans, code, rule)
}

// consent keeps an approval open for those who must approve it too.
func (j *Judge) consent(tx *audit.Tx, a *Approval, ans *Answer) error {
	a.Consents = append(slices.Clone(a.Consents), Consent{tx.By.Name, tx.By.Person, a.AnsweredFor, tx.Now()})
	a.AnsweredFor = ""
	d := a.decision(tx.By, HITL, reasonConsent)
	d.Rationale, d.Signature, d.Key, d.ContentSHA256 = ans.Reason, ans.signature, ans.Key, contentSHA256(ans.Content)
	d.ShownAt = shownAt(tx, a, ans)
	if err := j.record(tx, &d); err != nil {
		return err
	}
	a.DecisionID = d.DecisionID
	return j.save(tx, a, "approval.consented", map[string]any{
		"by": tx.By.Name, "reason_sha256": core.SHA256(ans.Reason), "digest": a.Digest, "prior_digest": a.PriorDigest, "decision_id": d.DecisionID,
		"person": tx.By.Person, "needed": a.Needed(), "approved": len(a.Consents), "content_sha256": d.ContentSHA256,
	})
}

func (j *Judge) refuse(tx *audit.Tx, a *Approval, ans *Answer) error {
	a.Status, a.Abort, a.Content = Refused, ans.Abort, nil
	code := reasonDenied
	if ans.Abort {
		code = reasonAborted
	}
	return j.close(tx, a, ans, code, nil)
}

// close records a final answer and hands it to the gate's owner.
func (j *Judge) close(tx *audit.Tx, a *Approval, ans *Answer, code string, rule *proposal) error {
	a.AnsweredBy, a.AnsweredAt, a.AnswerReason = tx.By.Name, tx.Now(), ans.Reason
	a.AnsweredPerson = tx.By.Person
	a.DeferredUntil = time.Time{}
	decision := Deny
	if a.Status == Approved {
		decision = Approve
	}
	d := a.decision(tx.By, decision, code)
	d.Rationale, d.SelfApproved, d.Abort, d.Signature = ans.Reason, a.SelfApproved, a.Abort, ans.signature
	d.Key, d.ContentSHA256 = ans.Key, contentSHA256(ans.Content)
	d.ShownAt = shownAt(tx, a, ans)
	a.ShownAt = d.ShownAt
	if err := j.record(tx, &d); err != nil {
		return err
	}
	a.DecisionID = d.DecisionID
	detail := map[string]any{
		"by": tx.By.Name, "reason_sha256": core.SHA256(ans.Reason), "reason_code": code, "digest": a.Digest, "decision_id": d.DecisionID,
		"shown_at": a.ShownAt, "abort": a.Abort, "self_approved": a.SelfApproved,
	}
	if tx.By.Person != "" {
		detail["person"] = tx.By.Person
	}
	if a.AnsweredFor != "" {
		detail["stands_in_for"] = a.AnsweredFor
	}
	if a.PriorDigest != "" {
		detail["prior_digest"] = a.PriorDigest
	}
	if d.ContentSHA256 != "" {
		detail["content_sha256"] = d.ContentSHA256
	}
	if rule != nil {
		made, err := j.addRule(tx, rule)
		if err != nil {
			return err
		}
		detail["always_rule"] = made.RuleID
		if a.Gate == GateGrant { // that is all that it is for
			a.UsedAt = tx.Now()
		}
	}
	if err := j.save(tx, a, "approval."+string(a.Status), detail); err != nil {
		return err
	}
	return j.settle(tx, a, Outcome{
		Approved: a.Status == Approved, Abort: a.Abort, Args: a.Action.Args, Content: ans.Content,
		Reason: ans.Reason, By: tx.By.Name, Decision: d,
	})
}

// shownAt is when the card was first drawn, never outside the approval's life.
func shownAt(tx *audit.Tx, a *Approval, ans *Answer) time.Time {
	t := a.ShownAt
	if t.IsZero() {
		t = ans.ShownAt
	}
	if t.IsZero() || t.Before(a.CreatedAt) || t.After(tx.Now()) {
		return a.ShownAt
	}
	return t.UTC()
}

// settle tells the gate's owner. Without one nothing can be approved.
func (j *Judge) settle(tx *audit.Tx, a *Approval, out Outcome) error {
	owner := j.owners[a.Gate]
	if owner == nil {
		if out.Approved {
			return core.Errorf(core.Unavailable, "approval %s: nothing here can carry out %s", a.ApprovalID, a.Gate)
		}
		return nil
	}
	if err := owner.Settle(tx, *a, out); err != nil {
		return fmt.Errorf("settle approval %s: %w", a.ApprovalID, err)
	}
	return nil
}
