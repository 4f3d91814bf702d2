package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/store"
)

// sureFor is how much of a lease, from when it was asked for, its owner takes for sure. The
// rest is for clocks that run at different speeds.
func (db *DB) sureFor() time.Duration { return db.opt.Lease * 2 / 3 }

// held notes that the database gave a lease after an instant.
func (t *tenant) held(since time.Time) {
	until := since.Add(t.db.sureFor())
	for {
		was := t.until.Load()
		if was != nil && !was.Before(until) || t.until.CompareAndSwap(was, &until) {
			return
		}
	}
}

// isSure reports whether nobody else can have the tenant now. By a negative lease anybody
// can at any time, and commits alone find out.
func (t *tenant) isSure() bool {
	until := t.until.Load()
	return t.db.opt.Lease <= 0 || until != nil && time.Now().Before(*until)
}

// enter begins a View of the present moment, at which the tenant is ours.
func (t *tenant) enter(ctx context.Context) (*moment, error) {
	for {
		m, err := t.present(ctx)
		if m != nil || err != nil {
			return m, err
		}
		if err := t.confirm(ctx); err != nil {
			return nil, err
		}
	}
}

// present begins a View of the present moment; nil is that it may not be the newest.
func (t *tenant) present(ctx context.Context) (*moment, error) {
	select {
	case t.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-t.gate }()
	if err := t.fatal(); err != nil {
		return nil, err
	}
	if !t.isSure() {
		return nil, nil
	}
	t.now.mu.Lock()
	defer t.now.mu.Unlock()
	t.now.views++
	return t.now, nil
}

// confirm has the database say that the tenant is still ours, unless that is sure: another
// may have taken it from an owner who was suspended or cut off, and knows better than what
// is in memory here. It waits for as long as a commit does.
func (t *tenant) confirm(ctx context.Context) error {
	select {
	case t.asking <- struct{}{}:
		defer func() { <-t.asking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.isSure() { // who was before says so
		return nil
	}
	return patiently(ctx, func() error {
		if err := t.fatal(); err != nil {
			return err
		}
		since := time.Now()
		short, cancel := context.WithTimeout(ctx, t.db.opt.Lease/2) // a dead connection must not cost the next try
		defer cancel()
		ours, err := t.db.renewal(short, []*tenant{t})
		switch {
		case err != nil:
			return err
		case !ours[t.name]:
			err = t.fenced()
			t.fail(err)
			return err
		}
		t.db.hold(t, since)
		return nil
	})
}

// renewal renews the leases of tenants and says which of them are ours. Where the server is
// heard no more it says nothing: it would carry a renewal out whose answer comes to nobody,
// and keep the tenants from those who hear it.
func (db *DB) renewal(ctx context.Context, of []*tenant) (ours map[string]bool, err error) {
	defer db.asks(&err)()
	var names, epochs, commits [][]byte
	for _, t := range of {
		names, epochs, commits = append(names, []byte(t.name)), append(epochs, fmt.Append(nil, t.epoch)), append(commits, fmt.Append(nil, t.last()))
	}
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return nil, db.lost(ctx, err)
	}
	defer conn.Release()
	if err := conn.Ping(ctx); err != nil {
		return nil, db.lost(ctx, err)
	}
	rows, err := db.query(ctx, conn, keepSQL, names, epochs, db.opt.Lease, db.opt.Engine, commits)
	if err != nil {
		return nil, err
	}
	ours = map[string]bool{}
	for _, row := range rows {
		ours[string(row[0])] = true
	}
	return ours, nil
}

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
