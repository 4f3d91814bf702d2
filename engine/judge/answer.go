package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
	"swarmdeck/store"
)

// answers take what a person says to open approvals, end those that nobody answers,
// and hand each end to who waits for it.
type answers struct {
	ledger    ledger
	policies  *policies
	standing  *standing
	decisions *decisions
	approvals *approvals
	cards     *cards
	proposals *proposals

	people  People // nil: nobody is told apart but by name
	owners  map[Gate]Settler
	awaited map[Gate]bool // what is asked there waits in a Request
	loop    *loop.Loop
	failed  map[string]*retry // of the loop alone, by approval
}

// Answer is an operator's word on an open approval. One answer wins: the next
// gets CONFLICT with who answered, when and what (requirement 2.5). Other errors are
// INVALID_INPUT (a missing reason, a bad edit), NOT_FOUND, and DENIED, which
// is audited: an agent, another tenant's approval, the two-person rule.
//
// Where more than one person must approve (Needed), who asked is none of them: all but
// the last leave the approval open, and are among its Consents.
func (j *answers) Answer(ctx context.Context, by core.Caller, id string, ans Answer) (Approval, error) {
	next, rule, err := j.prepare(ctx, by, id, &ans)
	if err != nil {
		return Approval{}, err
	}
	if !ans.Approve { // what stops something is recorded on a full disk too
		ctx = store.IfFull(ctx, store.UseReserve)
	}
	var answered Approval
	var late error
	err = j.ledger.guarded(ctx, by, "answer approval "+id, "approval", id, func(tx *audit.Tx) error {
		a, err := j.approvals.kind.Need(tx, id)
		if err != nil {
			return err
		}
		if err := stillOpen(a); err != nil {
			return err
		}
		if passed(a.DeadlineAt, tx.Now()) {
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
		if a.AnsweredFor, err = j.barred(by, a, tx.Now()); err == nil && next != nil {
			next.apply(a)
			a.AnsweredFor, err = j.barred(by, a, tx.Now()) // of what it became
		}
		if err == nil {
			ans.signature, err = j.signed(tx, a, &ans)
		}
		switch {
		case err != nil:
		case ans.Approve:
			err = j.approve(tx, a, &ans, next, rule)
		default:
			err = j.refuse(tx, a, &ans)
		}
		if err == nil {
			answered = *a
		}
		return err
	})
	if rule != nil && answered.Status == Approved {
		answered.Always = rule.rule.Line
	}
	return answered, cmp.Or(err, late)
}

// prepare does what an answer needs outside of its transaction: it judges an edit,
// and tries the rule that the answer makes.
func (j *answers) prepare(ctx context.Context, by core.Caller, id string, ans *Answer) (next *revision, rule *proposal, err error) {
	a, next, err := j.looked(ctx, by, id, ans)
	if err == nil && ans.Approve {
		err = j.cards.unseen(&a)
	}
	switch {
	case err != nil || !ans.Approve:
		return nil, nil, err
	case ans.Always != nil:
		if rule, err = j.proposals.proposeAlways(ctx, by, &a, ans.Always); err == nil {
			ans.Always = ans.Always.of(&a)
		}
	case a.Gate == GateGrant:
		rule, err = j.proposals.proposeGranted(ctx, by, &a)
	}
	return next, rule, err
}

// looked checks an answer against the approval as it is, and returns that as an edit
// makes it.
func (j *answers) looked(ctx context.Context, by core.Caller, id string, ans *Answer) (a Approval, next *revision, err error) {
	if err = checkAnswer(ans); err == nil {
		err = j.mayAnswer(ctx, by, id)
	}
	if err == nil {
		a, err = j.approvals.Approval(ctx, by.Tenant, id)
	}
	if err == nil {
		err = stillOpen(&a)
	}
	if err == nil {
		err = a.takes(ans)
	}
	if err == nil && len(ans.Edit) > 0 {
		if next, err = j.revise(ctx, by, a, ans.Edit); err == nil {
			a = next.after
		}
	}
	return a, next, err
}

// maxKey bounds the name of a key.
const maxKey = 16

func checkAnswer(ans *Answer) error {
	if err := checkText("reason", &ans.Reason, 0, maxReason); err != nil {
		return err
	}
	switch {
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

// checkText trims what a person or an agent says, and checks its length in bytes.
func checkText(field string, text *string, least, most int) error {
	*text = strings.TrimSpace(*text)
	if n := len(*text); n >= least && n <= most && utf8.ValidString(*text) {
		return nil
	}
	want := fmt.Sprintf("at most %d bytes of UTF-8", most)
	if least > 0 {
		want = fmt.Sprintf("%d-%d bytes of UTF-8", least, most)
	}
	return core.Invalid(field, core.Clip(*text), want)
}

// mayAnswer refuses, and audits, whoever is no operator of the approval's tenant.
func (j *answers) mayAnswer(ctx context.Context, by core.Caller, id string) error {
	if err := j.ledger.operator(ctx, by, "approval", id, "answer"); err != nil {
		return err
	}
	return j.ledger.local(ctx, by, core.ApprovalPrefix, "approval", id)
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

// approve applies an approving answer.
func (j *answers) approve(tx *audit.Tx, a *Approval, ans *Answer, next *revision, rule *proposal) error {
	by := tx.By
	if a.Risk.above(Medium) && ans.Reason == "" {
		return core.Errorf(core.InvalidInput, "reason: an approval at %s risk needs one", a.Risk).With("field", "reason")
	}
	if err := a.agrees(ans); err != nil {
		return err
	}
	own := a.RequestedKind == core.Operator && by.Is(a.RequestedBy, a.RequestedPerson)
	code := reasonApproved
	if next != nil && next.after.Digest != next.before {
		code = reasonEdited
	}
	if need := a.Needed(); need > 1 {
		if by.Known.After(a.CreatedAt) {
			return core.Errorf(core.Denied, "approval %s: where %d persons must agree, who answers has to be known before it was asked; %s is %s since %s", a.ApprovalID, need, by.Proof, by.Name, clock(by.Known))
		}
		if own {
			return core.Errorf(core.Denied, "approval %s: where %d persons must agree, who asked may not approve", a.ApprovalID, need)
		}
		for _, c := range a.Consents {
			if by.Is(c.By, c.Person) {
				return core.Errorf(core.Denied, "approval %s: you already approved, as %s; another person must", a.ApprovalID, c.By)
			}
		}
		if len(a.Consents)+1 < need {
			return j.consent(tx, a, ans)
		}
	}
	if rule != nil && rule.digest != a.Digest {
		return core.Errorf(core.Conflict, "approval %s: it changed while the rule was tried; look again", a.ApprovalID).With("digest", a.Digest)
	}
	a.Status, a.SelfApproved = Approved, own
	return j.close(tx, a, ans, code, rule)
}

// consent keeps an approval open for those who must approve it too.
func (j *answers) consent(tx *audit.Tx, a *Approval, ans *Answer) error {
	a.Consents = append(slices.Clone(a.Consents), Consent{tx.By.Name, tx.By.Person, a.AnsweredFor, tx.Now()})
	a.AnsweredFor = ""
	d, err := j.decide(tx, a, ans, HITL, reasonConsent)
	if err != nil {
		return err
	}
	return j.finish(tx, a, d, "approval.consented", map[string]any{
		"by": tx.By.Name, "reason_sha256": core.SHA256(ans.Reason), "prior_digest": a.PriorDigest,
		"person": tx.By.Person, "needed": a.Needed(), "approved": len(a.Consents), "content_sha256": d.ContentSHA256,
	}, Outcome{})
}

// decide records the decision that an answer is.
func (j *answers) decide(tx *audit.Tx, a *Approval, ans *Answer, verdict Decision, code string) (*GateDecision, error) {
	d := a.decision(tx.By, verdict, code)
	d.Rationale, d.SelfApproved, d.Abort, d.Signature = ans.Reason, a.SelfApproved, a.Abort, ans.signature
	d.Key, d.ContentSHA256, d.ShownAt = ans.Key, contentSHA256(ans.Content), shownAt(tx, a, ans)
	return &d, j.decisions.record(tx, &d)
}

// finish saves an approval with the newest decision about it, and hands its end to
// the gate's owner.
func (j *answers) finish(tx *audit.Tx, a *Approval, d *GateDecision, event string, detail map[string]any, out Outcome) error {
	a.DecisionID = d.DecisionID
	detail["digest"], detail["decision_id"] = a.Digest, d.DecisionID
	if err := j.approvals.save(tx, a, event, detail); err != nil || a.Status == Open {
		return err
	}
	out.Approved, out.Abort, out.Args, out.Decision = a.Status == Approved, a.Abort, a.Action.Args, *d
	return j.settle(tx, a, out)
}

// end denies what nobody has answered.
func (j *answers) end(tx *audit.Tx, a *Approval, d *GateDecision, event string, detail map[string]any, out Outcome) error {
	a.DeferredUntil = time.Time{}
	if err := j.decisions.record(tx, d); err != nil {
		return err
	}
	return j.finish(tx, a, d, event, detail, out)
}

func (j *answers) refuse(tx *audit.Tx, a *Approval, ans *Answer) error {
	a.Status, a.Abort, a.Content = Refused, ans.Abort, nil
	code := reasonDenied
	if ans.Abort {
		code = reasonAborted
	}
	return j.close(tx, a, ans, code, nil)
}

// close records a final answer and hands it to the gate's owner.
func (j *answers) close(tx *audit.Tx, a *Approval, ans *Answer, code string, rule *proposal) error {
	a.AnsweredBy, a.AnsweredAt, a.AnswerReason = tx.By.Name, tx.Now(), ans.Reason
	a.AnsweredPerson = tx.By.Person
	a.DeferredUntil = time.Time{}
	verdict := Deny
	if a.Status == Approved {
		verdict = Approve
	}
	d, err := j.decide(tx, a, ans, verdict, code)
	if err != nil {
		return err
	}
	a.ShownAt = d.ShownAt
	detail := map[string]any{
		"by": tx.By.Name, "reason_sha256": core.SHA256(ans.Reason), "reason_code": code,
		"shown_at": a.ShownAt, "abort": a.Abort, "self_approved": a.SelfApproved,
	}
	for name, s := range map[string]string{"person": tx.By.Person, "stands_in_for": a.AnsweredFor, "prior_digest": a.PriorDigest, "content_sha256": d.ContentSHA256} {
		if s != "" {
			detail[name] = s
		}
	}
	if rule != nil {
		made, err := j.standing.addRule(tx, rule)
		if err != nil {
			return err
		}
		detail["always_rule"] = made.RuleID
		if a.Gate == GateGrant { // that is all that it is for
			a.UsedAt = tx.Now()
		}
	}
	return j.finish(tx, a, d, "approval."+string(a.Status), detail, Outcome{Content: ans.Content, Reason: ans.Reason, By: tx.By.Name})
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

// settle tells the gate's owner, and the work that waits. Without one nothing can be
// approved.
func (j *answers) settle(tx *audit.Tx, a *Approval, out Outcome) (err error) {
	owner, awaited := j.owners[a.Gate], j.awaited[a.Gate]
	switch {
	case owner != nil:
		err = owner.Settle(tx, *a, out)
	case !awaited && out.Approved:
		return core.Errorf(core.Unavailable, "approval %s: nothing here can carry out %s", a.ApprovalID, a.Gate)
	}
	if err == nil && awaited {
		err = j.wake(tx, a, out)
	}
	if err != nil {
		return fmt.Errorf("settle approval %s: %w", a.ApprovalID, err)
	}
	return nil
}

// Own names the owner of a gate. Call it before Run, once per gate. An
// approval of a gate without an owner can be denied but never approved.
func (j *answers) Own(g Gate, s Settler) { j.owners[g] = s }

// Await names a gate at which each question is a Request. Its owner, nil for none,
// settles its own records before the work goes on.
func (j *answers) Await(g Gate, s Settler) {
	j.awaited[g] = true
	if s != nil {
		j.Own(g, s)
	}
}
