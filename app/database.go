//go:build linux

package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/ui/command"
)

// onDatabase is a database with the lock that keeps other processes of this machine from
// it: they take turns, or ask the one that has it, as with a file.
type onDatabase struct {
	*postgres.DB
	lock *os.File // nil for who watches: it keeps nobody from it
}

func (o onDatabase) Close() error {
	err := o.DB.Close()
	if o.lock != nil {
		err = errors.Join(err, o.lock.Close())
	}
	return err
}

// openDatabase opens the database that a data file points to.
func (d *engines) openDatabase(ctx context.Context, need command.Need) (_ store.Store, err error) {
	if err := os.MkdirAll(need.Data+".run", 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnusable, err)
	}
	lock, err := store.Lock(need.Data+".run/lock", !need.ReadOnly)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	db, err := postgres.Open(ctx, command.DatabaseIn(need.Data), postgres.Options{
		Options: store.Options{ReadOnly: need.ReadOnly, Seal: func(tx store.Tx) error { return d.sealer.Seal(tx) }},
		Engine:  command.Machine() + "-" + rand.Text()[:8],
		Held:    func(tenant string, until time.Time) { d.lease(tenant).hold(until) },
		Lost:    d.lost,
	})
	if err != nil {
		return nil, err
	}
	if need.ReadOnly && need.Watch {
		return onDatabase{DB: db}, lock.Close()
	}
	return onDatabase{db, lock}, nil
}

// lease hands on until when a tenant is surely this process's.
type lease struct {
	mu    sync.Mutex
	until time.Time
	bound []leased
}

// leased runs cells only until a time that it is told, again and again.
type leased interface{ Hold(until time.Time) }

func (l *lease) hold(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = until
	for _, h := range l.bound {
		h.Hold(until)
	}
}

// bind has cells live by the lease from now on, these and no others.
func (l *lease) bind(all ...leased) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bound = all
	for _, h := range all {
		h.Hold(l.until)
	}
}

// epochs reads the epochs of a store's owners.
func epochs(st store.Store) func(ctx context.Context, tenant string) (uint64, error) {
	return func(ctx context.Context, tenant string) (epoch uint64, err error) {
		err = st.View(ctx, tenant, func(tx store.Tx) error {
			epoch = tx.Epoch()
			return nil
		})
		return epoch, err
	}
}
