package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	due := false
	err = j.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		row, err := j.leaving(tx, limit)
		due = row != nil
		return err
	})
	if err != nil || !due {
		return nil, err
	}
	err = j.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		r := record.Removal{Kind: "decisions"}
		var left *decisionRow
		for r.Count < record.Slice {
			row, err := j.leaving(tx, limit)
			if err != nil {
				return err
			}
			if row == nil {
				break
			}
			row.DecisionID = core.NewID(core.DecisionPrefix, tx.Tenant(), row.Number)
			if err := errors.Join(j.decisions.Leave(tx, &r, row), drop(tx, pastAsks, record.Seq(row.Number))); err != nil {
				return err
			}
			left = row
		}
		if r.Count == record.Slice {
			next = record.Seq(left.Number + 1)
		}
		if err := r.Record(tx); err != nil {
			return err
		}
		return j.pruneApprovals(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("prune decisions: %w", err)
	}
	return next, nil
}

// leaving is the oldest decision, nil where it may not leave.
func (j *Judge) leaving(tx *audit.Tx, limit record.Limit) (row *decisionRow, err error) {
	var bad error
	row, err = j.decisions.Leaving(tx, limit, func(r *decisionRow) (ended time.Time) {
		open := false
		if r.ApprovalID != "" {
			_, open, bad = approvalOpen.Get(tx, keyOf(r.ApprovalID))
		}
		if !open {
			ended = r.CreatedAt
		}
		return ended
	})
	return row, errors.Join(err, bad)
}

// drop removes a value that there may be.
func drop[V any](tx *audit.Tx, rows record.Rows[V], at record.Key) error {
	_, there, err := rows.Get(tx, at)
	if there {
		err = rows.Delete(tx, at)
	}
	return err
}

// pruneApprovals removes approvals that are over and older than the oldest
// decision that is left.
func (j *Judge) pruneApprovals(tx *audit.Tx) error {
	oldest, err := j.decisions.At(tx, record.Seq(j.decisions.Newest(tx)+1-uint64(j.decisions.Count(tx))))
	if err != nil || oldest == nil {
		return err
	}
	r := record.Removal{Kind: "approvals"}
	for r.Count < record.Slice {
		a, err := j.approvals.Leaving(tx, record.Limit{Before: oldest.CreatedAt}, func(a *Approval) (ended time.Time) {
			if a.over(tx.Now()) {
				ended = a.CreatedAt
			}
			return ended
		})
		if err != nil {
			return err
		}
		if a == nil {
			break
		}
		if err := j.approvals.Leave(tx, &r, a); err != nil {
			return err
		}
	}
	return r.Record(tx)
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

// EraseApprovals is a record.Erase: what was asked for the subject, and the
// reasons that they gave. An approval that is open, or may still be used, is
// left.
func (j *Judge) EraseApprovals(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	return j.approvals.Erase(ctx, by, of, from, "approvals", func(tx *audit.Tx, _ *record.Erasure, a *Approval) (bool, error) {
		whose, over, err := of.Task(tx, a.TaskID)
		if err != nil {
			return false, err
		}
		theirs := whose != record.NotTheirs || of.Is(a.RequestedBy, a.RequestedPerson)
		answered := of.Is(a.AnsweredBy, a.AnsweredPerson)
		inquired := slices.ContainsFunc(a.Inquiries, func(in Inquiry) bool { return in.By == of.Name })
		if !theirs && !answered && !inquired {
			return false, nil
		}
		if !over || !a.over(tx.Now()) {
			of.Leave("approval " + a.ApprovalID + " (" + string(a.Status) + ", or its task is not over)")
			return false, nil
		}
		return a.erase(theirs, answered, of.Name), nil
	})
}

// erase takes out what was asked, or how it was answered, and says whether
// there was something.
func (a *Approval) erase(asked, answered bool, name string) (some bool) {
	text := func(s *string) {
		if erased := core.EraseText(*s); erased != *s {
			*s, some = erased, true
		}
	}
	if asked || answered && a.PriorDigest != "" { // they may have edited it
		if len(a.Action.Args) > len(`{}`) && !core.IsErased(a.Action.Args) {
			a.Action.Args, some = core.Erase(a.Action.Args), true
		}
		text(&a.Subject.Headline)
		a.Subject.Paths, a.Subject.Hosts, a.Subject.Recipients, a.Subject.Amounts = nil, nil, nil, nil
	}
	if len(a.Inquiries) > 0 { // it may be shared
		a.Inquiries = slices.Clone(a.Inquiries)
	}
	for i := range a.Inquiries {
		some = a.Inquiries[i].erase(a.Inquiries[i].By == name, asked) || some
	}
	if asked {
		text(&a.Intent)
		text(&a.VoidReason)
		if a.RuleID == "" { // a program's words
			text(&a.Rationale)
		}
	}
	if len(a.Content) > len(`{}`) && !core.IsErased(a.Content) { // the asker was told it
		a.Content, some = core.Erase(a.Content), true
	}
	if answered {
		text(&a.AnswerReason)
	}
	return some
}

// EraseDecisions is a record.Erase: the reasons that the subject gave, and what
// decisions about them were about.
func (j *Judge) EraseDecisions(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	return j.decisions.Sweep(of, "decisions", func(tx *audit.Tx, e *record.Erasure, key, value []byte, row *decisionRow) (bool, error) {
		whose, over, err := of.Task(tx, row.TaskID)
		if err != nil || !over {
			return false, err
		}
		some := false
		theirs := row.DecidedBy == of.Name || whose != record.NotTheirs && row.RuleID == "" || j.decidedBy(tx, &row.GateDecision, of)
		if theirs && row.Rationale != nil && !core.IsErasedText(*row.Rationale) && *row.Rationale != "" {
			some = true
		}
		asked, kept, err := pastAsks.Get(tx, key)
		if err != nil {
			return false, err
		}
		was := asked
		asks := kept && (whose != record.NotTheirs || asked.By == of.Name) && asked.erase()
		if !asks && !some || e == nil {
			return asks || some, nil
		}
		e.Add(core.NewID(core.DecisionPrefix, tx.Tenant(), row.Number), value, core.MustEncode(was))
		if asks {
			if err := pastAsks.Put(tx, bytes.Clone(key), asked); err != nil {
				return true, err
			}
		}
		if !some {
			return true, nil
		}
		erased := core.EraseText(*row.Rationale)
		row.GateDecision.Rationale, row.Rationale = "", &erased
		d, err := j.decision(tx, row)
		if err != nil {
			return true, err
		}
		data, err := core.Encode(row)
		if err != nil {
			return true, err
		}
		tx.Changed("decision", d.DecisionID)
		return true, tx.Put(decisionBucket, bytes.Clone(key), data)
	}).Slice(ctx, by, of, from)
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

// erase takes out what a kept question was about, and says whether there was
// something.
func (p *pastAsk) erase() (some bool) {
	was := *p
	if len(p.Action.Args) > len(`{}`) {
		p.Action.Args = core.Erase(p.Action.Args)
	}
	p.Intent = core.EraseText(p.Intent)
	return p.Intent != was.Intent || !bytes.Equal(p.Action.Args, was.Action.Args)
}

// EraseRules is a record.Erase: the arguments in always rules that the subject
// made, or that came of what was asked for them. Rules that still hold are left.
func (j *Judge) EraseRules(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	return j.rules.Sweep(of, "rules", func(tx *audit.Tx, e *record.Erasure, _, value []byte, r *Rule) (bool, error) {
		if of.Name != r.Owner {
			a, err := j.approvals.Load(tx, r.ApprovalID)
			if err != nil || a == nil { // it left
				return false, nil
			}
			whose, _, err := of.Task(tx, a.TaskID)
			if err != nil || whose == record.NotTheirs && !of.Is(a.RequestedBy, a.RequestedPerson) {
				return false, err
			}
		}
		if len(r.Action.Args) <= len(`{}`) || core.IsErased(r.Action.Args) {
			return false, nil
		}
		if r.alive(tx.Now()) {
			of.Leave("rule " + r.RuleID + " (it holds: policy rules revoke " + r.RuleID + ")")
			return false, nil
		}
		if e == nil {
			return true, nil
		}
		e.Add(r.RuleID, value)
		old := *r
		r.Action.Args = core.Erase(r.Action.Args)
		return true, j.rules.Save(tx, record.Event{Type: "rule.erased"}, &old, r)
	}).Slice(ctx, by, of, from)
}
