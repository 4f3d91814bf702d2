package judge

import (
	"encoding/binary"
	"errors"
	"strconv"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
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
		id, state := core.NewID(core.ApprovalPrefix, tx.Tenant(), binary.BigEndian.Uint64(k)), record.State(value, nil)
		if a, err := decodeApproval(value); err == nil {
			state = a.state(value)
		}
		bad = each(id, state)
		return bad == nil
	})
	return errors.Join(err, bad)
}

// Derived compares the small bucket of the open ones with all of them. When one
// is to be looked at next hangs on the deadlines of its day, and is not compared.
func (approvalRecords) Derived(tx store.Tx, differs func(audit.Delta)) error {
	listed := map[uint64]bool{}
	err := tx.Scan(approvalsOpen, nil, nil, false, func(k, _ []byte) bool {
		listed[binary.BigEndian.Uint64(k)] = true
		return true
	})
	if err != nil {
		return err
	}
	err = tx.Scan(approvals, nil, nil, false, func(k, value []byte) bool {
		a, err := decodeApproval(value)
		n := binary.BigEndian.Uint64(k)
		if err == nil && listed[n] != (a.Status == Open) { // States tells of one that can't be read
			differs(audit.Delta{Subject: "approval", ID: a.ApprovalID, Field: "open", Log: strconv.FormatBool(!listed[n]), Store: strconv.FormatBool(listed[n])})
		}
		delete(listed, n)
		return true
	})
	for n := range listed {
		differs(audit.Delta{Subject: "approval", ID: core.NewID(core.ApprovalPrefix, tx.Tenant(), n), Field: "open", Log: "false", Store: "true"})
	}
	return err
}
