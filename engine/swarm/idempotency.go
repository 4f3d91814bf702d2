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

// request is what an idempotency key stands for.
type request struct {
	Task   uint64 `json:"task"` // its number
	Digest []byte `json:"digest"`
}

// digest tells one request from another under the same idempotency key.
func digest(t *task.Task) []byte {
	sum := sha256.Sum256(append([]byte(t.Kind+"\x00"+t.Agent+"\x00"+t.SessionID+"\x00"), t.Input...))
	return sum[:]
}

// known finds the task an idempotency key made before.
func (s *shared) known(tx *audit.Tx, d Dispatch, t *task.Task) (bool, error) {
	old, there, err := requests.Get(tx, record.Hash(d.IdempotencyKey))
	if err != nil || !there {
		return false, err
	}
	if !bytes.Equal(old.Digest, digest(t)) {
		return false, core.Errorf(core.Conflict, "idempotency_key %q was used for another request", core.Cut(d.IdempotencyKey, 60)).With("field", "idempotency_key")
	}
	input := t.Input
	err = s.tasks.Load(tx, old.Task, t)
	t.Input = input
	return true, err
}

// remember keeps which task an idempotency key made.
func remember(tx *audit.Tx, key string, t *task.Task) error {
	at := record.Hash(key)
	return errors.Join(requests.Put(tx, at, request{t.Seq(), digest(t)}), requestsOf.Put(tx, record.Seq(t.Seq()), at))
}

// TaskLeaves implements task.Leaver: the key that made a task leaves with it.
func (s *shared) TaskLeaves(tx *audit.Tx, t *task.Task) error {
	key := record.Seq(t.Seq())
	at, there, err := requestsOf.Get(tx, key)
	if err != nil || !there {
		return err
	}
	return errors.Join(requests.Delete(tx, at), requestsOf.Delete(tx, key))
}
