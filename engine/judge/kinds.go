package judge

import (
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

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

func (j *Judge) approvalKind() record.Table[Approval] {
	return &record.Kind[*Approval]{
		Noun: "approval", Bucket: approvalBucket, Ledger: j.ledger, Follow: j.live.Follow,
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
func (j *Judge) decisionKind() record.Table[decisionRow] {
	return &record.Kind[*decisionRow]{
		Noun: "decision", Bucket: decisionBucket, Ledger: j.ledger, Quiet: true,
		ID: func(r *decisionRow) string { return r.DecisionID }, Number: record.Numbers(core.DecisionPrefix), Name: record.NumberedName(core.DecisionPrefix),
		Place: func(r *decisionRow) record.Key { return record.Seq(r.Number) },
		Head:  func(r *decisionRow) record.Head { return record.Head{Created: &r.CreatedAt} },
		Encode: func(b []byte, r *decisionRow) ([]byte, error) {
			if r.by == nil { // it was read, and changed
				return core.Encode(r)
			}
			return r.encode(b), nil
		},
		Personal: j.eraseDecision, Ended: j.decided, Leaves: forget,
		Indexes: []record.Index[*decisionRow]{{Bucket: decisionRare, Count: string(decisionRare), Word: func(r *decisionRow) string {
			if r.Decision == Approve {
				return ""
			}
			return string(r.Decision)
		}}},
	}
}

func (j *Judge) policyKind() record.Table[Policy] {
	return &record.Kind[*Policy]{
		Noun: "policy", Bucket: "policy", Ledger: j.ledger,
		ID: func(p *Policy) string { return p.PolicyID }, Number: record.Numbers(core.PolicyPrefix), Name: record.NumberedName(core.PolicyPrefix),
		Says: "status source_digest cases_digest kind interpreter serve gates proposed_by tests_summary first_activated_by",
	}
}
