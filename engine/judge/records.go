package judge

import (
	"bytes"
	"context"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// unusedStays is how long an approval stays that was given and not used yet.
const unusedStays = 7 * 24 * time.Hour

// PruneDecisions removes a slice of the oldest decisions that the limit lets
// go, and then the approvals that are older than all decisions that are left.
// An open approval stays, and so does what came after it. It returns nil when it
// is through.
func (j *approvals) PruneDecisions(ctx context.Context, by core.Caller, limit record.Limit, _ []byte) (next []byte, err error) {
	if next, err = j.decisions.kind.Prune(ctx, by, limit, "decisions"); err != nil {
		return nil, err
	}
	var oldest *decisionRow
	err = j.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		oldest, err = j.decisions.kind.At(tx, record.Seq(j.decisions.kind.Newest(tx)+1-uint64(j.decisions.kind.Count(tx))))
		return err
	})
	if err == nil && oldest != nil {
		_, err = j.kind.Prune(ctx, by, record.Limit{Before: oldest.CreatedAt}, "approvals")
	}
	return next, err
}

// decided is when a decision was made; one whose approval is open stays.
func (j *decisions) decided(tx *audit.Tx, r *decisionRow) (at time.Time, err error) {
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
func (j *approvals) Said(ctx context.Context, tenant string, of *record.Subject) error {
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
func (j *approvals) Erasers() []record.Eraser {
	return []record.Eraser{j.standing.kind.Eraser("rules"), j.kind.Eraser("approvals"), j.decisions.kind.Eraser("decisions")}
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
func (j *approvals) eraseDecision(e *record.Erasure, row *decisionRow) {
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
func (j *approvals) decidedBy(tx *audit.Tx, d *GateDecision, of *record.Subject) bool {
	if d.ApprovalID == "" || d.DecidedBy == "" {
		return false
	}
	a, err := j.kind.Load(tx, d.ApprovalID) // one that left tells nothing
	return err == nil && a != nil && (d.DecidedBy == a.AnsweredBy && of.Is("", a.AnsweredPerson) || slices.ContainsFunc(a.Consents, func(c Consent) bool { return d.DecidedBy == c.By && of.Is("", c.Person) }))
}

func (j *approvals) eraseRule(e *record.Erasure, r *Rule) {
	if e.Of.Name != r.Owner {
		a, err := j.kind.Load(e.Tx, r.ApprovalID)
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

// Indexes.
const (
	decisionRare   store.Bucket = "decision.rare" // decisions that are not approve, by what they are
	approvalBucket store.Bucket = "approval"
	decisionBucket store.Bucket = "decision"
	approvalShape  store.Bucket = "approval.shape" // answered approvals, by their shape
	approvalTask   store.Bucket = "approval.task"  // open approvals, by their task
)

// What is kept beside the records, by their numbers unless said.
const (
	approvalOpen  record.Rows[uint64]      = "approval.open" // when to look next at an open one, Unix µs
	pastAsks      record.Rows[pastAsk]     = "decision.ask"  // see History
	policySources record.Rows[core.Raw]    = "policy.source"
	policyCases   record.Rows[core.Raw]    = "policy.cases"    // JSON lines
	versionNumber record.Rows[uint64]      = "policy.versions" // by version
	versionTable  record.Rows[core.Raw]    = "policy.versions"
	policyActive  record.Rows[uint64]      = "policy.state" // at activeKey: number of the policy that rules, 0 for the base
	policyTerms   record.Rows[PolicyTerms] = "policy.state" // at termsKey
)

var activeKey, termsKey = record.Key("active"), record.Key("terms")

// keyOf is the key of an id that is known to be good.
func keyOf(id string) record.Key {
	_, _, n, _ := core.ParseID(id)
	return record.Seq(n)
}

func (j *approvals) approvalKind() record.Table[Approval] {
	return &record.Kind[*Approval]{
		Noun: "approval", Bucket: approvalBucket, Ledger: j.ledger.Ledger, Follow: j.live.Follow,
		ID: func(a *Approval) string { return a.ApprovalID }, Number: record.Numbers(core.ApprovalPrefix), Name: record.NumberedName(core.ApprovalPrefix),
		Decode: decodeApproval, Says: "status digest", Personal: eraseApproval, Ended: askedAt, Fits: (*Approval).matches, Statuses: core.Strings(Open, Approved, Refused, Expired, Voided),
		Indexes: []record.Index[*Approval]{{Bucket: approvalShape, Word: func(a *Approval) string {
			if a.Status == Approved || a.Status == Refused {
				return a.shape()
			}
			return ""
		}}, {Bucket: approvalTask, Word: func(a *Approval) string {
			if a.Status == Open {
				return a.TaskID
			}
			return ""
		}}},
	}
}

// decisionKind keeps decisions: an event of the caller, or of the decision
// itself, tells of each.
func (j *decisions) decisionKind(erase func(*record.Erasure, *decisionRow)) record.Table[decisionRow] {
	return &record.Kind[*decisionRow]{
		Noun: "decision", Bucket: decisionBucket, Ledger: j.ledger.Ledger, Quiet: true,
		ID: func(r *decisionRow) string { return r.DecisionID }, Number: record.Numbers(core.DecisionPrefix), Name: record.NumberedName(core.DecisionPrefix),
		Place: func(r *decisionRow) record.Key { return record.Seq(r.Number) },
		Head:  func(r *decisionRow) record.Head { return record.Head{Created: &r.CreatedAt} },
		Encode: func(b []byte, r *decisionRow) ([]byte, error) {
			if r.by == nil { // it was read, and changed
				return core.Encode(r)
			}
			return r.encode(b), nil
		},
		Personal: erase, Ended: j.decided, Leaves: forget,
		Indexes: []record.Index[*decisionRow]{{Bucket: decisionRare, Count: string(decisionRare), Word: func(r *decisionRow) string {
			if r.Decision == Approve {
				return ""
			}
			return string(r.Decision)
		}}},
	}
}

func (j *policies) policyKind() record.Table[Policy] {
	return &record.Kind[*Policy]{
		Noun: "policy", Bucket: "policy", Ledger: j.ledger.Ledger,
		ID: func(p *Policy) string { return p.PolicyID }, Number: record.Numbers(core.PolicyPrefix), Name: record.NumberedName(core.PolicyPrefix),
		Says: "status source_digest cases_digest kind interpreter serve gates proposed_by tests_summary first_activated_by",
	}
}
