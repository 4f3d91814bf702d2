package task

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// PutAfter notes that a task waits for another one, by their numbers.
func (b *Table) PutAfter(tx *audit.Tx, other, waits uint64) error {
	return tx.Put(bAfter, record.Seq(other).Seq(waits), nil)
}

// DropAfter forgets that a task waits for another one.
func (b *Table) DropAfter(tx *audit.Tx, other, waits uint64) error {
	return tx.Delete(bAfter, record.Seq(other).Seq(waits))
}

// Dependents are the first n tasks that wait for one, from a number on, by their
// numbers.
func (b *Table) Dependents(tx *audit.Tx, seq, from uint64, n int) (out []uint64, err error) {
	err = tx.Scan(bAfter, keyIn(tx, seq).Seq(from), keyIn(tx, seq+1), false, func(key, _ []byte) (bool, error) {
		out = append(out, record.LastSeq(key))
		return len(out) < n, nil
	})
	return out, err
}

// Released are the tasks that are over although others still wait for them, by
// their numbers: an engine ended before it had let all of these go on.
func (b *Table) Released(tx *audit.Tx) (out []uint64, err error) {
	for from := []byte(nil); ; {
		dep, found := uint64(0), false
		err := tx.Scan(bAfter, from, nil, false, func(key, _ []byte) (bool, error) {
			p := record.Parts(key)
			dep, found = p.Seq(), true
			return false, nil
		})
		if err != nil || !found {
			return out, err
		}
		var t Task
		if b.Load(tx, dep, &t) == nil && t.Status.Terminal() { // else it is named elsewhere
			out = append(out, dep)
		}
		from = record.Seq(dep + 1)
	}
}

// children visits the children of a task until visit returns false.
func children(tx store.Tx, seq uint64, visit func(child uint64) bool) error {
	from, to := record.Seq(seq).Under()
	return tx.Scan(bChild, from, to, false, func(key, _ []byte) (bool, error) { return visit(record.LastSeq(key)), nil })
}

// maxTree bounds a tree.
const maxTree = 1000

// Tree returns a task and all its descendants, parents first, at most 1000.
func (b *Table) Tree(ctx context.Context, tenant, id string) ([]Task, error) {
	seq, err := b.ledger.LocalSeq(ctx, core.Self(tenant, "reader"), core.TaskPrefix, id)
	if err != nil {
		return nil, err
	}
	var out []Task
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		todo := []uint64{seq}
		for len(todo) > 0 && len(out) < maxTree {
			var t Task
			if err := b.Load(tx, todo[0], &t); err != nil {
				return err
			}
			out = append(out, t)
			var kids []uint64
			if err := children(tx, todo[0], func(child uint64) bool {
				kids = append(kids, child)
				return len(kids) < maxTree
			}); err != nil {
				return err
			}
			todo = append(kids, todo[1:]...)
		}
		return nil
	})
	return out, err
}
