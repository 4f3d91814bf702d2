package judge

import (
	"swarmdeck/engine/audit"
	"swarmdeck/store"
)

// Auditables are the records that reconcile compares: approvals by their
// status, always rules by their uses.
func (j *Judge) Auditables() []audit.Auditable {
	return []audit.Auditable{approvalRecords{}, ruleRecords{}}
}

type approvalRecords struct{}

func (approvalRecords) Subject() string { return "approval" }

func (approvalRecords) States(tx store.Tx, each func(string, any) error) error {
	var bad error
	err := tx.Scan(approvals, nil, nil, false, func(_, value []byte) bool {
		a, err := decodeApproval(value)
		if err == nil {
			err = each(a.ApprovalID, approvalState{a.Status})
		}
		bad = err
		return err == nil
	})
	if err == nil {
		err = bad
	}
	return err
}

type ruleRecords struct{}

func (ruleRecords) Subject() string { return "rule" }

func (ruleRecords) States(tx store.Tx, each func(string, any) error) error {
	var bad error
	err := eachRule(tx, func(r *Rule) {
		if bad == nil {
			bad = each(r.RuleID, ruleState{r.Uses, r.Revoked})
		}
	})
	if err == nil {
		err = bad
	}
	return err
}
