package group

import (
	"cmp"
	"fmt"
)

// Base is one tenant's records as an Update or a View finds them.
type Base[B ~string, T comparable] interface {
	// Find returns the table of a bucket, whether or not the bucket exists yet.
	Find(name B) (T, error)
	// Get returns the value of a key, nil when absent.
	Get(t T, key []byte) ([]byte, error)
	// Scan calls fn for the records in [from, to), merged with the operations
	// of an overlay, which may be nil.
	Scan(t T, o *Overlay[T], from, to []byte, reverse bool, visit Visit) error
	// Count reads a counter's record.
	Count(name string) (int64, error)
}

// WriteBase is the Base of an Update.
type WriteBase[B ~string, T comparable] interface {
	Base[B, T]
	// Cell is a counter as the updates before this one left it.
	Cell(name string) (*Counter, error)
}

// WriteTx is the transaction handed to the fn of one Update.
type WriteTx[B ~string, T comparable] struct {
	base   WriteBase[B, T] // nil once fn has returned
	o      *Overlay[T]
	tenant string
	epoch  uint64
}

// Write returns the transaction of an update whose changes go to an overlay,
// which was reset.
func Write[B ~string, T comparable](base WriteBase[B, T], o *Overlay[T], tenant string, epoch uint64) *WriteTx[B, T] {
	return &WriteTx[B, T]{base: base, o: o, tenant: tenant, epoch: epoch}
}

// End makes it do nothing any more.
func (tx *WriteTx[B, T]) End() { tx.base = nil }

// Tenant implements store.Tx, as the methods below do.
func (tx *WriteTx[B, T]) Tenant() string { return tx.tenant }

// Epoch is the owner's fencing token.
func (tx *WriteTx[B, T]) Epoch() uint64 { return tx.epoch }

// Alloc lends memory until the transaction ends.
func (tx *WriteTx[B, T]) Alloc(n int) []byte {
	if tx.base == nil {
		return make([]byte, 0, n)
	}
	return tx.o.room.Take(n)
}

// Get looks into the overlay, then below it.
func (tx *WriteTx[B, T]) Get(b B, key []byte) ([]byte, error) {
	if tx.base == nil {
		return nil, ErrOver
	}
	t, err := tx.base.Find(b)
	if err != nil {
		return nil, tx.o.fail(err)
	}
	if op := tx.o.find(t, key); op != nil {
		if op.Remove {
			return nil, nil
		}
		return op.Value, nil
	}
	value, err := tx.base.Get(t, key)
	if err != nil {
		return nil, tx.o.fail(err)
	}
	return value, nil
}

// Put writes into the overlay.
func (tx *WriteTx[B, T]) Put(b B, key, value []byte) error {
	t, err := tx.target(b, key)
	if err != nil {
		return err
	}
	if len(value) > MaxValue {
		return tx.o.fail(fmt.Errorf("bucket %s: value of %d bytes; at most %d", b, len(value), MaxValue))
	}
	if value == nil {
		value = []byte{} // present and empty, unlike absent
	}
	tx.o.set(t, key, value, false)
	return nil
}

// Delete writes into the overlay.
func (tx *WriteTx[B, T]) Delete(b B, key []byte) error {
	t, err := tx.target(b, key)
	if err != nil {
		return err
	}
	tx.o.set(t, key, nil, true)
	return nil
}

// target finds the table to write to.
func (tx *WriteTx[B, T]) target(b B, key []byte) (t T, err error) {
	if tx.base == nil {
		return t, ErrOver
	}
	if tx.o.scans > 0 {
		return t, tx.o.fail(errScanning)
	}
	if err := checkKey(b, key); err != nil {
		return t, tx.o.fail(err)
	}
	if t, err = tx.base.Find(b); err != nil {
		return t, tx.o.fail(err)
	}
	return t, nil
}

// Scan reads what is below merged with the overlay.
func (tx *WriteTx[B, T]) Scan(b B, from, to []byte, reverse bool, visit Visit) error {
	if tx.base == nil {
		return ErrOver
	}
	t, err := tx.base.Find(b)
	if err != nil {
		return tx.o.fail(err)
	}
	tx.o.scans++
	defer func() { tx.o.scans-- }()
	var bad error // of a visit, which is no failure of the transaction
	if err := tx.base.Scan(t, tx.o, from, to, reverse, func(key, value []byte) (more bool, _ error) {
		more, bad = visit(key, value)
		return more && bad == nil, nil
	}); err != nil {
		return tx.o.fail(err)
	}
	return bad
}

// Counter reads a counter with what this update added.
func (tx *WriteTx[B, T]) Counter(name string) int64 { return tx.Add(name, 0) }

// Add changes a counter in the overlay.
func (tx *WriteTx[B, T]) Add(name string, n int64) int64 {
	if tx.base == nil {
		return 0
	}
	if n != 0 && tx.o.scans > 0 {
		_ = tx.o.fail(errScanning)
		return 0
	}
	c, err := tx.base.Cell(name)
	if err != nil {
		_ = tx.o.fail(err)
		return 0
	}
	return tx.o.add(c, n)
}

// OnCommit keeps fn for after the commit.
func (tx *WriteTx[B, T]) OnCommit(fn func()) {
	if tx.base != nil {
		tx.o.Hooks = append(tx.o.Hooks, fn)
	}
}

// ReadTx is the transaction handed to the fn of one View.
type ReadTx[B ~string, T comparable] struct {
	base   Base[B, T] // nil once fn has returned
	tenant string
	epoch  uint64
	err    error
}

// Read returns the transaction of a View.
func Read[B ~string, T comparable](base Base[B, T], tenant string, epoch uint64) *ReadTx[B, T] {
	return &ReadTx[B, T]{base: base, tenant: tenant, epoch: epoch}
}

// End makes it do nothing any more.
func (tx *ReadTx[B, T]) End() { tx.base = nil }

// Over is ErrOver once it has ended.
func (tx *ReadTx[B, T]) Over() error {
	if tx.base == nil {
		return ErrOver
	}
	return nil
}

// Err is the first refused call, which fails the View even if fn ignores it.
func (tx *ReadTx[B, T]) Err() error { return tx.err }

// Tenant implements store.Tx, as the methods below do.
func (tx *ReadTx[B, T]) Tenant() string { return tx.tenant }

// Epoch is the owner's fencing token.
func (tx *ReadTx[B, T]) Epoch() uint64 { return tx.epoch }

// Alloc is memory of the heap: a View has no end that all of it shares.
func (tx *ReadTx[B, T]) Alloc(n int) []byte { return make([]byte, 0, n) }

// Get reads one record.
func (tx *ReadTx[B, T]) Get(b B, key []byte) ([]byte, error) {
	if tx.base == nil {
		return nil, ErrOver
	}
	t, err := tx.base.Find(b)
	if err != nil {
		return nil, err
	}
	return tx.base.Get(t, key)
}

// Scan reads a range.
func (tx *ReadTx[B, T]) Scan(b B, from, to []byte, reverse bool, visit Visit) error {
	if tx.base == nil {
		return ErrOver
	}
	t, err := tx.base.Find(b)
	if err != nil {
		return err
	}
	return tx.base.Scan(t, nil, from, to, reverse, visit)
}

// Counter reads a counter's record.
func (tx *ReadTx[B, T]) Counter(name string) int64 {
	if tx.base == nil {
		return 0
	}
	n, err := tx.base.Count(name)
	if err != nil && tx.err == nil {
		tx.err = err
	}
	return n
}

// Put is refused.
func (tx *ReadTx[B, T]) Put(b B, _, _ []byte) error { return tx.refuse("put into " + string(b)) }

// Delete is refused.
func (tx *ReadTx[B, T]) Delete(b B, _ []byte) error { return tx.refuse("delete from " + string(b)) }

// Add is refused.
func (tx *ReadTx[B, T]) Add(name string, _ int64) int64 {
	_ = tx.refuse("change counter " + name)
	return 0
}

// OnCommit does nothing: a View commits nothing.
func (tx *ReadTx[B, T]) OnCommit(func()) {}

func (tx *ReadTx[B, T]) refuse(doing string) error {
	err := fmt.Errorf("%s in a View: %w", doing, ErrReadOnly)
	tx.err = cmp.Or(tx.err, err)
	return err
}
