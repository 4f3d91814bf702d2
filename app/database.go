//go:build linux

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/ui/command"
)

// onDatabase is a database with the lock that keeps other processes of this machine from
// it: they take turns, or ask the one that has it, as with a file.
type onDatabase struct {
	*postgres.DB
	lock *os.File
}

// Close implements store.Store.
func (o onDatabase) Close() error { return errors.Join(o.DB.Close(), o.lock.Close()) }

// openDatabase opens the database that a data file points to. An engine on another
// machine keeps its tenants: who comes waits until its lease would have run out.
func (h *house) openDatabase(ctx context.Context, need command.Need, dsn string, opt store.Options) (_ store.Store, err error) {
	lock, err := store.Lock(need.Data+".lock", !opt.ReadOnly)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	o := postgres.Options{Options: opt, Wait: postgres.DefaultLease + LockPatience, Held: h.lease.hold, Lost: h.lost}
	if need.NoWait {
		o.Wait = 0
	}
	db, err := postgres.Open(ctx, dsn, o)
	if err != nil {
		return nil, err
	}
	if err := hasKey(ctx, need, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return onDatabase{db, lock}, nil
}

// lost ends the command of an engine that another took a tenant from: what it has in
// memory is past. Its cells stand still from before then until they are ended.
func (h *house) lost(err error) {
	h.fail(&command.ExitError{Code: command.ExitStore, Err: fmt.Errorf("the engine stopped: %w", err)})
}

// lease hands on until when the data is surely this engine's.
type lease struct {
	mu    sync.Mutex
	until time.Time
	cells *cell.Supervisor // nil until there is one
}

func (l *lease) hold(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = until
	if l.cells != nil {
		l.cells.Hold(until)
	}
}

// bind has cells live by the lease from now on; nil is none.
func (l *lease) bind(cells *cell.Supervisor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cells = cells; cells != nil {
		cells.Hold(l.until)
	}
}

// hasKey refuses to write to a database whose log was signed on another machine:
// a key made here would stand in it unsigned for ever.
func hasKey(ctx context.Context, need command.Need, db store.Store) error {
	if _, err := os.Lstat(need.Data + ".key"); need.ReadOnly || err == nil {
		return nil
	}
	tenants, err := db.Tenants(ctx)
	if err != nil || len(tenants) == 0 {
		return err
	}
	return fmt.Errorf("%w: the log in this database is signed with a key of another machine; copy what ends in .key from there to %s.key and %s.secrets.key first",
		store.ErrUnusable, need.Data, need.Data)
}
