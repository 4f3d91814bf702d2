package store

import (
	"encoding/binary"
	"fmt"
)

// Inventory is what the Tx of a View also knows: all that a tenant has, so that
// nothing can be there unseen.
type Inventory interface {
	// Buckets are the names of the tenant's buckets, in order.
	Buckets() ([]Bucket, error)
	// Counters visits the tenant's counters that were ever written, in order.
	Counters(visit func(name string, n int64)) error
}

var _ Inventory = (*readTx)(nil)

func (tx *readTx) Buckets() (names []Bucket, err error) {
	if err := tx.Over(); err != nil {
		return nil, err
	}
	defer guard(&err, "list the buckets of", Bucket(tx.ts.tenant))
	err = tx.ts.root.ForEachBucket(func(name []byte) error {
		if name[0] != '_' { // those are the store's own
			names = append(names, Bucket(name))
		}
		return nil
	})
	return names, err
}

func (tx *readTx) Counters(visit func(name string, n int64)) error {
	if err := tx.Over(); err != nil {
		return err
	}
	t, err := tx.ts.counters()
	if err != nil {
		return err
	}
	return scan(t, nil, nil, nil, false, func(name, value []byte) (bool, error) {
		if len(value) != 8 {
			return false, fmt.Errorf("counter %s: %w", name, ErrCorrupt)
		}
		visit(string(name), int64(binary.BigEndian.Uint64(value)))
		return true, nil
	})
}
