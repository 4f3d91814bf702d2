package task

import (
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/record"
)

// Live lists the tasks of a tenant that are not over, or those of one status,
// by their numbers.
func (b *Table) Live(tx *audit.Tx, status Status) (out []uint64, err error) {
	var from, to []byte
	if status != "" {
		from, to = record.Key{status[0]}.Under()
	}
	err = tx.Scan(bLive, from, to, false, func(key, _ []byte) (bool, error) {
		out = append(out, record.LastSeq(key))
		return true, nil
	})
	return out, err
}

// inspectBatch is how many headers one look of Inspect reads.
const inspectBatch = 1000

// Inspect reads a slice of the headers of tasks that are not over, from a key
// on. It names those that can't be read, and returns where to look next, nil
// when it is through.
func (b *Table) Inspect(tx *audit.Tx, from []byte) (bad map[uint64]error, next []byte, err error) {
	n := 0
	bad = map[uint64]error{}
	err = tx.Scan(bLive, from, nil, false, func(key, _ []byte) (bool, error) {
		if n++; n > inspectBatch {
			next = slices.Clone(key)
			return false, nil
		}
		var t Task
		seq := record.LastSeq(key)
		err := load(tx, seq, &t)
		if err == nil && t.Status[0] != key[0] {
			err = Damaged(tx.Tenant(), seq, fmt.Errorf("it is %s, and kept among those that are not", t.Status))
		}
		if err != nil {
			bad[seq] = err
		}
		return true, nil
	})
	return bad, next, err
}
