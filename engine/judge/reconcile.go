package judge

import (
	"swarmdeck/engine/audit"
	"swarmdeck/store"
)

// Auditables are the records that reconcile compares: approvals by their
// status and digest, always rules by their uses and by all that they allow,
// policies by what they are and which of them rules.
func (j *Judge) Auditables() []audit.Auditable {
	return []audit.Auditable{approvalRecords{}, j.rules.Auditable(), policyRecords{}, termsRecords{}, rulesRecords{}}
}

type approvalRecords struct{}

func (approvalRecords) Subject() string { return "approval" }

func (approvalRecords) States(tx store.Tx, each func(string, any) error) error {
	var bad error
	err := tx.Scan(approvals, nil, nil, false, func(_, value []byte) bool {
		a, err := decodeApproval(value)
		if err == nil {
			err = each(a.ApprovalID, approvalState{a.Status, a.Digest})
		}
		bad = err
		return err == nil
	})
	if err == nil {
		err = bad
	}
	return err
}
