package swarm_test

import (
	"bytes"
	"context"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// TestReconcileFindsAForgedTask changes every byte of a task's stored header,
// past the ledger as somebody with the file would, and removes it.
func TestReconcileFindsAForgedTask(t *testing.T) {
	r := newRig(t)
	made := r.dispatch(`{"x":1}`)
	const bTask store.Bucket = "task"
	var key, whole []byte
	forge := func(fn func(tx store.Tx) error) {
		t.Helper()
		expect.No(t, r.DB.Update(context.Background(), acme, fn))
	}
	forge(func(tx store.Tx) error {
		return tx.Scan(bTask, nil, nil, false, func(k, v []byte) (bool, error) {
			key, whole = bytes.Clone(k), bytes.Clone(v)
			return true, nil
		})
	})
	found := func() int {
		t.Helper()
		deltas := expect.Of(r.Ledger.Reconcile(t.Context(), acme))(t)
		return len(deltas)
	}
	n := found()
	expect.Must(t, n <= 0, "%d differences before anything was forged", n)
	for i := range whole {
		forged := bytes.Clone(whole)
		forged[i] ^= 1
		forge(func(tx store.Tx) error { return tx.Put(bTask, bytes.Clone(key), forged) })
		expect.Must(t, found() != 0, "byte %d of %s of %s was changed unseen", i, made.TaskID, whole)
	}
	forge(func(tx store.Tx) error { return tx.Delete(bTask, bytes.Clone(key)) })
	expect.True(t, found() != 0, "the task was removed unseen")
}
