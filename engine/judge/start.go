package judge

import (
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Start checks, when an approved effect is about to start, that the approval
// still stands for exactly this ask under the rules now active, and marks it
// used: an approval is used once. A mismatch voids it and reports false: ask
// anew (R1). So does an approval that is not approved, or was used before,
// without changing it.
func (j *Judge) Start(tx *audit.Tx, approvalID string, ask Ask) (bool, error) {
	a, err := j.approvals.Need(tx, approvalID)
	if err != nil {
		return false, err
	}
	if a.Status != Approved || !a.UsedAt.IsZero() {
		return false, nil
	}
	why := ""
	digest, err := Digest(tx.Tenant(), a.PolicyVersion, ask)
	switch {
	case err != nil:
		why = "the arguments can't be bound: " + err.Error()
	case digest != a.Digest:
		why = "what would start is not what was approved"
		if changed := changedFile(a.Action.Files, ask.Action.Files); changed != "" {
			why = changed + " is not what was approved"
		}
	case a.PolicyVersion != j.rulingIn(tx).version:
		why = "the policy changed since it was approved"
	}
	if why != "" {
		return false, j.void(tx, a, why, map[string]any{"reason": why, "digest": a.Digest, "found_digest": digest})
	}
	a.UsedAt = tx.Now()
	if err := j.save(tx, a, "approval.used", map[string]any{"digest": digest, "task_id": a.TaskID}); err != nil {
		return false, err
	}
	return true, nil
}

// Void closes the open approvals that match: their task was cancelled, their
// session stopped, their agent died. They can't be answered any more. It reads
// every open approval of the tenant, so call it only for what has one. It does
// not call the gate's owner: the caller is about to settle that itself.
func (j *Judge) Void(tx *audit.Tx, match func(*Approval) bool, reason string) error {
	open, err := j.openIn(tx)
	if err != nil {
		return err
	}
	for _, a := range open {
		if match(a) {
			if err := j.void(tx, a, reason, map[string]any{"reason_sha256": core.SHA256(reason), "digest": a.Digest}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *Judge) void(tx *audit.Tx, a *Approval, reason string, detail any) error {
	a.Status, a.VoidedAt, a.VoidReason = Voided, tx.Now(), clip(reason, maxReason)
	a.DeferredUntil = time.Time{}
	return j.save(tx, a, "approval.voided", detail)
}

// openIn reads the open approvals, oldest first. Those that can't be read are
// told of and left out.
func (j *Judge) openIn(tx *audit.Tx) ([]*Approval, error) {
	open, err := openNumbers(tx)
	if err != nil {
		return nil, fmt.Errorf("list the open approvals: %w", err)
	}
	out := make([]*Approval, 0, len(open))
	for _, n := range open {
		a, err := j.approvals.At(tx, record.Seq(n))
		if err == nil && a == nil {
			err = errors.New("it is open, and has no record")
		}
		if err != nil { // nobody can answer it, and it holds no other up
			j.health.Report(tx.Tenant(), "judge", "approval "+core.NewID(core.ApprovalPrefix, tx.Tenant(), n), err)
			continue
		}
		out = append(out, a)
	}
	return out, nil
}

// openNumbers are those of the open approvals, oldest first.
func openNumbers(tx store.Tx) (all []uint64, err error) {
	all = []uint64{}
	err = approvalOpen.Each(tx, nil, func(k record.Parts, _ uint64) (bool, error) {
		all = append(all, k.Seq())
		return true, nil
	})
	return all, err
}
