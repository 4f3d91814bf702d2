package engine

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/store"
)

// Proved is what proves a copy of a tenant.
type Proved struct {
	Events     uint64 `json:"events"`
	RootHash   string `json:"root_hash"` // of the log, base64
	Checkpoint string `json:"-"`
}

// Prove refuses a copy of a tenant that is not what a moment of it was: the signed
// head of the log must be the same, the log must verify from its first event on, and
// its replay must come to the records that are there. spill is where the copy's outputs
// are that are too large for a record.
func (e *Engine) Prove(ctx context.Context, moment store.Tx, copied store.Store, spill string) (Proved, error) {
	tenant := moment.Tenant()
	head, err := audit.HeadOf(moment)
	if err != nil {
		return Proved{}, err
	}
	there, err := Open(ctx, Options{Store: copied, Sealer: e.sealer, ReadOnly: true, Spill: spill})
	if err != nil {
		return Proved{}, fmt.Errorf("open the copy: %w", err)
	}
	defer there.Close()
	var got []byte
	if err := copied.View(ctx, tenant, func(tx store.Tx) error {
		got, err = audit.HeadOf(tx)
		return err
	}); err != nil {
		return Proved{}, err
	}
	if !bytes.Equal(head, got) {
		return Proved{}, fmt.Errorf("the copy of %s has another checkpoint of the log than its source", tenant)
	}
	r, err := there.Audit.Verify(ctx, tenant, head)
	if err != nil {
		return Proved{}, fmt.Errorf("verify the copy: %w", err)
	}
	if !r.OK { // what was wrong before the copy is so after it
		was, err := e.Audit.Verify(ctx, tenant, nil)
		if err != nil {
			return Proved{}, fmt.Errorf("verify the source: %w", err)
		}
		for _, problem := range r.Problems {
			if !slices.Contains(was.Problems, problem) {
				return Proved{}, fmt.Errorf("the copy does not verify: %s", problem)
			}
		}
	}
	deltas, err := there.Reconcile(ctx, tenant)
	if err != nil {
		return Proved{}, fmt.Errorf("reconcile the copy: %w", err)
	}
	if len(deltas) > 0 {
		was, err := e.Reconcile(ctx, tenant)
		if err != nil {
			return Proved{}, fmt.Errorf("reconcile the source: %w", err)
		}
		for _, d := range deltas {
			if !slices.Contains(was, d) {
				return Proved{}, fmt.Errorf("the copy does not reconcile with its log: %d differences, the first in %s %s %s", len(deltas), d.Subject, d.ID, d.Field)
			}
		}
	}
	return Proved{Events: r.Events, RootHash: r.RootHash, Checkpoint: string(head)}, nil
}
