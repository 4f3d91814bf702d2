package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/store"
)

// outage is a time in which the server's disk is full.
type outage struct {
	since time.Time
	why   error
}

// fault is an error of the database, which it names.
func (db *DB) fault(err error) error { return &store.DatabaseError{Name: db.Name(), Err: err} }

// heldError is an ErrLocked of a tenant that another engine has.
type heldError struct{ database, tenant, by string }

func (e *heldError) Error() string {
	return fmt.Sprintf("database %s: tenant %.80q: %s has it", e.database, e.tenant, e.by)
}
func (*heldError) Unwrap() error { return store.ErrLocked }

// asks notes that the server is asked something. The returned function is called with
// the outcome in err.
func (db *DB) asks(err *error) func() {
	now := time.Now()
	db.silent.CompareAndSwap(nil, &now)
	return func() {
		if errors.Is(*err, errLost) {
			db.why.Store(err)
			return
		}
		db.silent.Store(nil)
		db.why.Store(nil)
		if errors.Is(*err, store.ErrFull) {
			db.full.CompareAndSwap(nil, &outage{now, *err})
		}
	}
}

// Stuck is why nothing can be asked of the server or written, and since when; nil while all
// is well.
func (db *DB) Stuck() (since time.Time, why error) {
	if at := db.silent.Load(); at != nil {
		why = fmt.Errorf("no answer for %s", time.Since(*at).Round(time.Second))
		var told *store.DatabaseError
		if last := db.why.Load(); last != nil && errors.As(*last, &told) && !errors.Is(told.Err, context.DeadlineExceeded) {
			why = fmt.Errorf("%w: %w", why, told.Err)
		}
		return *at, db.fault(why)
	}
	if full := db.full.Load(); full != nil {
		return full.since, full.why
	}
	return time.Time{}, nil
}
