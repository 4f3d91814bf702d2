package swarm

import (
	"bytes"
	"crypto/sha256"
	"errors"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

func idemKey(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// digest tells one request from another under the same idempotency key.
func digest(t *task.Task) []byte {
	sum := sha256.Sum256(append([]byte(t.Kind+"\x00"+t.Agent+"\x00"+t.SessionID+"\x00"), t.Input...))
	return sum[:]
}

// known finds the task an idempotency key made before.
func (s *Swarm) known(tx *audit.Tx, d Dispatch, t *task.Task) (bool, error) {
	old, err := tx.Get(bIdem, idemKey(d.IdempotencyKey))
	if err != nil || old == nil {
		return false, err
	}
	if !bytes.Equal(old[8:], digest(t)) {
		return false, core.Errorf(core.Conflict, "idempotency_key %q was used for another request", core.Cut(d.IdempotencyKey, 60)).With("field", "idempotency_key")
	}
	input := t.Input
	err = s.tasks.Load(tx, record.LastSeq(old[:8]), t)
	t.Input = input
	return true, err
}

// remember keeps which task an idempotency key made.
func remember(tx *audit.Tx, key string, t *task.Task) error {
	k, seq := idemKey(key), record.Seq(t.Seq())
	return errors.Join(tx.Put(bIdem, k, append(record.Seq(t.Seq()), digest(t)...)), tx.Put(bIdemOf, seq, k))
}

// TaskLeaves implements task.Leaver: the key that made a task leaves with it.
func (s *Swarm) TaskLeaves(tx *audit.Tx, t *task.Task) error {
	key := record.Seq(t.Seq())
	idem, err := tx.Get(bIdemOf, key)
	if err != nil || idem == nil {
		return err
	}
	return errors.Join(tx.Delete(bIdem, bytes.Clone(idem)), tx.Delete(bIdemOf, key))
}
