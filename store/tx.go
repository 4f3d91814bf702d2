package store

import (
	"errors"
	"fmt"
)

var (
	errOver     = errors.New("transaction is over")
	errScanning = errors.New("no writing inside a scan")
)

// tenant is what the writer knows of one tenant: its buckets in the current
// transaction and its counters.
type tenant struct {
	tables
	ledger
	touched bool // an update of this commit wrote something
}

// writeTx is the transaction handed to the fn of one Update.
type writeTx struct {
	t      *tenant // nil once fn has returned
	o      *overlay
	tenant string
	epoch  uint64
}

func (tx *writeTx) Tenant() string { return tx.tenant }

func (tx *writeTx) Epoch() uint64 { return tx.epoch }

func (tx *writeTx) Alloc(n int) []byte {
	if tx.t == nil {
		return make([]byte, 0, n)
	}
	return tx.o.room.take(n)
}

func (tx *writeTx) Get(b Bucket, key []byte) ([]byte, error) {
	if tx.t == nil {
		return nil, errOver
	}
	t, err := tx.t.find(b)
	if err != nil {
		return nil, tx.o.fail(err)
	}
	if op := tx.o.find(t, key); op != nil {
		if op.remove {
			return nil, nil
		}
		return op.value, nil
	}
	value, err := t.get(key)
	if err != nil {
		return nil, tx.o.fail(err)
	}
	return value, nil
}

func (tx *writeTx) Put(b Bucket, key, value []byte) error {
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

func (tx *writeTx) Delete(b Bucket, key []byte) error {
	t, err := tx.target(b, key)
	if err != nil {
		return err
	}
	tx.o.set(t, key, nil, true)
	return nil
}

// target finds the table to write to.
func (tx *writeTx) target(b Bucket, key []byte) (*table, error) {
	if tx.t == nil {
		return nil, errOver
	}
	if tx.o.scans > 0 {
		return nil, tx.o.fail(errScanning)
	}
	if err := checkKey(b, key); err != nil {
		return nil, tx.o.fail(err)
	}
	t, err := tx.t.find(b)
	if err != nil {
		return nil, tx.o.fail(err)
	}
	return t, nil
}

func (tx *writeTx) Scan(b Bucket, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
	if tx.t == nil {
		return errOver
	}
	t, err := tx.t.find(b)
	if err != nil {
		return tx.o.fail(err)
	}
	tx.o.scans++
	defer func() { tx.o.scans-- }()
	if err := scan(t, tx.o, from, to, reverse, fn); err != nil {
		return tx.o.fail(err)
	}
	return nil
}

func (tx *writeTx) Counter(name string) int64 { return tx.Add(name, 0) }

func (tx *writeTx) Add(name string, n int64) int64 {
	if tx.t == nil {
		return 0
	}
	if n != 0 && tx.o.scans > 0 {
		tx.o.fail(errScanning)
		return 0
	}
	c, err := tx.t.cell(&tx.t.tables, name)
	if err != nil {
		tx.o.fail(err)
		return 0
	}
	return tx.o.add(c, n)
}

func (tx *writeTx) OnCommit(fn func()) {
	if tx.t != nil {
		tx.o.hooks = append(tx.o.hooks, fn)
	}
}

// readTx is the transaction handed to the fn of one View.
type readTx struct {
	tables
	epoch uint64
	over  bool
	err   error
}

func (tx *readTx) Tenant() string { return tx.tenant }

func (tx *readTx) Epoch() uint64 { return tx.epoch }

func (tx *readTx) Alloc(n int) []byte { return make([]byte, 0, n) }

func (tx *readTx) Get(b Bucket, key []byte) ([]byte, error) {
	if tx.over {
		return nil, errOver
	}
	t, err := tx.find(b)
	if err != nil {
		return nil, err
	}
	return t.get(key)
}

func (tx *readTx) Scan(b Bucket, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
	if tx.over {
		return errOver
	}
	t, err := tx.find(b)
	if err != nil {
		return err
	}
	return scan(t, nil, from, to, reverse, fn)
}

func (tx *readTx) Counter(name string) int64 {
	if tx.over {
		return 0
	}
	n, err := readCounter(&tx.tables, name)
	if err != nil && tx.err == nil {
		tx.err = err
	}
	return n
}

func (tx *readTx) Put(b Bucket, _, _ []byte) error { return tx.refuse("put into " + string(b)) }

func (tx *readTx) Delete(b Bucket, _ []byte) error { return tx.refuse("delete from " + string(b)) }

func (tx *readTx) Add(name string, _ int64) int64 {
	_ = tx.refuse("change counter " + name)
	return 0
}

// OnCommit does nothing: a View commits nothing.
func (tx *readTx) OnCommit(func()) {}

// refuse fails the View even if fn ignores the error.
func (tx *readTx) refuse(doing string) error {
	err := fmt.Errorf("%s in a View: %w", doing, ErrReadOnly)
	if tx.err == nil {
		tx.err = err
	}
	return err
}
