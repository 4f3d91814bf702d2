package judge

import (
	"bytes"
	"context"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// unusedStays is how long an approval stays that was given and not used yet.
const unusedStays = 7 * 24 * time.Hour

// PruneDecisions removes a slice of the oldest decisions that the limit lets
// go, and then the approvals that are older than all decisions that are left.
// An open approval stays, and so does what came after it. It returns nil when it
// is through.
func (j *Judge) PruneDecisions(ctx context.Context, by core.Caller, limit record.Limit, _ []byte) (next []byte, err error) {
	if next, err = j.decisions.Prune(ctx, by, limit, "decisions"); err != nil {
		return nil, err
	}
	var oldest *decisionRow
	err = j.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		oldest, err = j.decisions.At(tx, record.Seq(j.decisions.Newest(tx)+1-uint64(j.decisions.Count(tx))))
		return err
	})
	if err == nil && oldest != nil {
		_, err = j.approvals.Prune(ctx, by, record.Limit{Before: oldest.CreatedAt}, "approvals")
	}
	return next, err
}

// decided is when a decision was made; one whose approval is open stays.
func (j *Judge) decided(tx *audit.Tx, r *decisionRow) (at time.Time, err error) {
	if r.ApprovalID != "" {
		if _, open, err := approvalOpen.Get(tx, keyOf(r.ApprovalID)); open || err != nil {
			return at, err
		}
	}
	return r.CreatedAt, nil
}

// forget removes what is kept beside a decision.
func forget(tx *audit.Tx, r *decisionRow) error {
	r.DecisionID = core.NewID(core.DecisionPrefix, tx.Tenant(), r.Number)
	return drop(tx, pastAsks, record.Seq(r.Number))
}

// askedAt is when an approval was asked for; one that something may come of stays.
func askedAt(tx *audit.Tx, a *Approval) (at time.Time, err error) {
	if a.over(tx.Now()) {
		at = a.CreatedAt
	}
	return at, nil
}

// drop removes a value that there may be.
func drop[V any](tx *audit.Tx, rows record.Rows[V], at record.Key) error {
	_, there, err := rows.Get(tx, at)
	if there {
		err = rows.Delete(tx, at)
	}
	return err
}

// over says whether nothing comes of an approval any more.
func (a *Approval) over(now time.Time) bool {
	switch a.Status {
	case Open:
		return false
	case Approved:
		return !a.UsedAt.IsZero() || now.Sub(a.AnsweredAt) > unusedStays
	}
	return true
}

// Said finds the reasons that the subject gave, before they are erased.
func (j *Judge) Said(ctx context.Context, tenant string, of *record.Subject) error {
	const look = 4096
	of.Said = map[string][]string{}
	for from := []byte(nil); ; {
		seen := 0
		err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			return tx.Scan(approvalBucket, from, nil, false, func(k, value []byte) (bool, error) {
				from = append(bytes.Clone(k), 0)
				// One that can't be read is named when its turn comes.
				if a, err := decodeApproval(value); err == nil && of.Is(a.AnsweredBy, a.AnsweredPerson) && a.AnswerReason != "" && !core.IsErasedText(a.AnswerReason) {
					of.Said[a.TaskID] = append(of.Said[a.TaskID], a.AnswerReason)
				}
				seen++
				return seen < look, nil
			})
		})
		if err != nil || seen < look {
			return err
		}
	}
}

// Erasers erase the arguments in always rules that the subject made, or that came
// of what was asked for them; what was asked for them, with the reasons that they
// gave; and what decisions about it say.
func (j *Judge) Erasers() []record.Eraser {
	return []record.Eraser{j.rules.Eraser("rules"), j.approvals.Eraser("approvals"), j.decisions.Eraser("decisions")}
}

// eraseApproval takes out what was asked, or how it was answered. One that is
// open, or may still be used, is left.
func eraseApproval(e *record.Erasure, a *Approval) {
	whose, over := e.Whose(a.TaskID)
	asked := whose != record.NotTheirs || e.Of.Is(a.RequestedBy, a.RequestedPerson)
	answered := e.Of.Is(a.AnsweredBy, a.AnsweredPerson)
	inquired := slices.ContainsFunc(a.Inquiries, func(in Inquiry) bool { return in.By == e.Of.Name })
	if !asked && !answered && !inquired {
		return
	}
	if !over || !a.over(e.Tx.Now()) {
		e.Waits("approval " + a.ApprovalID + " (" + string(a.Status) + ", or its task is not over)")
		return
	}
	if asked || answered && a.PriorDigest != "" { // they may have edited it
		e.Wipe(&a.Action.Args, &a.Subject.Headline)
		a.Subject.Paths, a.Subject.Hosts, a.Subject.Recipients, a.Subject.Amounts = nil, nil, nil, nil
	}
	for i := range a.Inquiries {
		a.Inquiries[i].erase(e, asked)
	}
	if asked {
		e.Wipe(&a.Intent, &a.VoidReason)
		if a.RuleID == "" { // a program's words
			e.Wipe(&a.Rationale)
		}
	}
	e.Wipe(&a.Content) // the asker was told it
	if answered {
		e.Wipe(&a.AnswerReason)
	}
}

// eraseDecision takes out the reasons that the subject gave, and what decisions
// about them were about.
func (j *Judge) eraseDecision(e *record.Erasure, row *decisionRow) {
	whose, over := e.Whose(row.TaskID)
	if !over {
		return
	}
	e.ID = core.NewID(core.DecisionPrefix, e.Tx.Tenant(), row.Number)
	if e.Of.Name == row.DecidedBy || whose != record.NotTheirs && row.RuleID == "" || j.decidedBy(e.Tx, &row.GateDecision, e.Of) {
		if row.Rationale != nil && e.Wipe(row.Rationale) {
			row.GateDecision.Rationale = ""
		}
	}
	key := record.Seq(row.Number)
	asked, kept, err := pastAsks.Get(e.Tx, key)
	if !e.Check(err) || !kept || whose == record.NotTheirs && asked.By != e.Of.Name {
		return
	}
	if was := core.MustEncode(asked); e.Wipe(&asked.Action.Args, &asked.Intent) {
		e.Row(was)
		e.Then(func() error { return pastAsks.Put(e.Tx, key, asked) })
	}
}

// decidedBy says whether the subject decided under another name, as the approval
// tells.
func (j *Judge) decidedBy(tx *audit.Tx, d *GateDecision, of *record.Subject) bool {
	if d.ApprovalID == "" || d.DecidedBy == "" {
		return false
	}
	a, err := j.approvals.Load(tx, d.ApprovalID) // one that left tells nothing
	return err == nil && a != nil && (d.DecidedBy == a.AnsweredBy && of.Is("", a.AnsweredPerson) || slices.ContainsFunc(a.Consents, func(c Consent) bool { return d.DecidedBy == c.By && of.Is("", c.Person) }))
}

func (j *Judge) eraseRule(e *record.Erasure, r *Rule) {
	if e.Of.Name != r.Owner {
		a, err := j.approvals.Load(e.Tx, r.ApprovalID)
		if err != nil || a == nil { // it left
			return
		}
		if whose, _ := e.Whose(a.TaskID); whose == record.NotTheirs && !e.Of.Is(a.RequestedBy, a.RequestedPerson) {
			return
		}
	}
	if e.Wipe(&r.Action.Args) && r.alive(e.Tx.Now()) {
		e.Waits("rule " + r.RuleID + " (it holds: policy rules revoke " + r.RuleID + ")")
	}
}
