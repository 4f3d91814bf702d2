package judge

import (
	"encoding/binary"
	"errors"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
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
	err := tx.Scan(approvals, nil, nil, false, func(k, value []byte) bool {
		if a, err := decodeApproval(value); err == nil { // else the digest differs
			bad = each(core.NewID(core.ApprovalPrefix, tx.Tenant(), binary.BigEndian.Uint64(k)), a.state())
		}
		return bad == nil
	})
	return errors.Join(err, bad)
}
