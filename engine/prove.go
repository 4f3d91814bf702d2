package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
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

// Reconcile compares the audit log's replay with the store, and outputs that
// are in files of their own with their results (requirement 1.10).
func (e *Engine) Reconcile(ctx context.Context, tenant string) ([]audit.Delta, error) {
	deltas, err := e.Audit.Reconcile(ctx, tenant)
	if err != nil {
		return nil, err
	}
	files, err := e.Tasks.ReconcileSpill(ctx, tenant)
	return append(deltas, files...), err
}

// Verifier is the C2SP verifier key of a tenant's log, "" when read-only.
func (e *Engine) Verifier(tenant string) string {
	if e.sealer == nil {
		return ""
	}
	return e.sealer.Verifier(tenant)
}

// Verify recomputes a tenant's log and holds it against saved, a checkpoint
// kept elsewhere or nil, and against what its witnesses hold.
func (e *Engine) Verify(ctx context.Context, tenant string, saved []byte) (audit.Report, error) {
	r, err := e.Audit.Verify(ctx, tenant, saved)
	if err == nil {
		err = e.Witnesses.Compare(ctx, tenant, &r)
	}
	return r, err
}

// Keys are the signing keys of a tenant's log, oldest first.
func (e *Engine) Keys(ctx context.Context, tenant string) ([]audit.Key, error) {
	return e.Audit.Keys(ctx, tenant, e.sealer)
}

// RotateKey makes a new signing key for the logs of all tenants.
func (e *Engine) RotateKey(ctx context.Context, by core.Caller) (audit.Key, error) {
	return e.Audit.RotateKey(ctx, by, e.sealer)
}

// TrustKey lets the key of another machine sign the log of the caller's tenant, at its request.
func (e *Engine) TrustKey(ctx context.Context, by core.Caller, request string) (audit.Key, error) {
	return e.Audit.TrustKey(ctx, by, e.sealer, request)
}

// EndorseKey has each engine of the database trust the key of another machine, at its
// request, for the logs that trust the key here; the caller's follows at once.
func (e *Engine) EndorseKey(ctx context.Context, by core.Caller, request string) (audit.Endorsement, error) {
	word, err := e.sealer.Endorse(ctx, e.Audit, by, request)
	if err == nil {
		_, err = e.sealer.Follow(ctx, e.Audit, by.Tenant, word)
	}
	return word, err
}

// RetireKey ends what the key of another machine may sign in the caller's log.
func (e *Engine) RetireKey(ctx context.Context, by core.Caller, id string) (audit.Key, error) {
	return e.Audit.RetireKey(ctx, by, e.sealer, id)
}

// KeyFaults tells, for each tenant whose log has one, of signing keys that came
// without a rotation.
func (e *Engine) KeyFaults(ctx context.Context) error {
	tenants, err := e.store.Here(ctx)
	faults := []error{err}
	for _, t := range tenants {
		if err := e.Audit.KeyFault(ctx, t, e.sealer); err != nil {
			faults = append(faults, fmt.Errorf("audit log of %s: %w", t, err))
		}
	}
	return errors.Join(faults...)
}
