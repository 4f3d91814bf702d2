package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"swarmdeck/store"
	"swarmdeck/store/postgres"
)

// Options of Copy and Move.
type Options struct {
	// Records is told how much was copied, after each commit; nil tells nobody.
	Records func(Counts)
	// Beside copies what belongs to the records and lies outside the stores. It is
	// called again for what came meanwhile.
	Beside func(ctx context.Context) error
	// Prove refuses a copy that is not equal to the moment that it was made from.
	Prove func(ctx context.Context, moment store.Tx, copied store.Store) error
	// Rest, of a move, is called before the last rows are copied: what would be lost
	// by the move is to come to an end.
	Rest func(ctx context.Context) error
	// Last, of a move, is called with the tenant as it will be, while it takes no
	// updates. It refuses what may not be handed over.
	Last func(moment store.Tx, copied store.Tx) error
}

// How a move follows what is written, as a compaction does.
const (
	fewRows  = 2000 // so many are copied while updates wait
	mostRows = 50_000
	rounds   = 12
)

// Copy copies a tenant as it is at one moment, and settles it once it is proven.
func Copy(ctx context.Context, from store.Store, to Host, mark store.AwayError, o Options) (Counts, error) {
	b := &batch{ctx: ctx, to: to, tenant: mark.Tenant, told: o.Records}
	err := from.View(ctx, mark.Tenant, func(tx store.Tx) error {
		if err := to.Arrive(ctx, mark, tx.Epoch()); err != nil {
			return err
		}
		if err := b.whole(tx); err != nil {
			return err
		}
		return o.proven(ctx, tx, to)
	})
	if err == nil {
		err = to.Settle(ctx, mark)
	}
	return b.all, err
}

// ErrHandedOver says that a move was cut off at its last step: Finish does it.
var ErrHandedOver = errors.New("it is handed over, and the other store does not know it yet: run the same again")

// Move copies a tenant while it is worked on, and hands it over. mark is what it is
// at the host until then, gone what it is at its source from then on; both have the
// same Copy.
func Move(ctx context.Context, from Source, to Host, mark, gone store.AwayError, o Options) (Counts, error) {
	b := &batch{ctx: ctx, to: to, tenant: mark.Tenant, told: o.Records}
	l, err := from.Leave(ctx, mark.Tenant)
	if err != nil {
		return b.all, err
	}
	defer l.End()
	if err := l.Cut(ctx, func(tx store.Tx, _ []store.Row) error {
		if err := to.Arrive(ctx, mark, tx.Epoch()); err != nil {
			return err
		}
		return b.whole(tx)
	}); err != nil {
		return b.all, err
	}
	if err := b.follow(l); err != nil {
		return b.all, err
	}
	if o.Rest != nil {
		if err := o.Rest(ctx); err != nil {
			return b.all, err
		}
	}
	if err := l.Cut(ctx, func(tx store.Tx, rows []store.Row) error {
		if err := b.some(tx, rows); err != nil {
			return err
		}
		return o.proven(ctx, tx, to)
	}); err != nil {
		return b.all, err
	}
	if err := b.follow(l); err != nil {
		return b.all, err
	}
	if err := l.Hold(ctx); err != nil {
		return b.all, err
	}
	if err := l.Cut(ctx, func(tx store.Tx, rows []store.Row) error { return b.rest(tx, rows, o) }); err != nil {
		return b.all, err
	}
	if err := l.Gone(ctx, gone); err != nil {
		return b.all, fmt.Errorf("hand the tenant over: %w", err)
	}
	if err := to.Settle(context.WithoutCancel(ctx), mark); err != nil {
		return b.all, fmt.Errorf("%w: %w", ErrHandedOver, err)
	}
	return b.all, nil
}

// follow copies what was written meanwhile until little is left.
func (b *batch) follow(l store.Leaving) error {
	for round := 0; ; round++ {
		few := false
		if err := l.Cut(b.ctx, func(tx store.Tx, rows []store.Row) error {
			few = len(rows) <= fewRows || round >= rounds && len(rows) <= mostRows
			return b.some(tx, rows)
		}); err != nil {
			return err
		}
		switch {
		case few:
			return nil
		case round > 100*rounds:
			return store.ErrFast
		}
	}
}

// rest copies the last rows, holds them against the source's and has the whole looked
// at once more.
func (b *batch) rest(tx store.Tx, rows []store.Row, o Options) error {
	if err := b.some(tx, rows); err != nil {
		return err
	}
	if o.Beside != nil {
		if err := o.Beside(b.ctx); err != nil {
			return err
		}
	}
	return b.to.View(b.ctx, b.tenant, func(copied store.Tx) error {
		if err := same(tx, copied, rows); err != nil || o.Last == nil {
			return err
		}
		return o.Last(tx, copied)
	})
}

// Finish lets a tenant be worked on at a host that was handed it over by a move which
// was cut off. It reports whether the tenant is there.
func Finish(ctx context.Context, to Host, gone store.AwayError) (bool, error) {
	all, err := to.Away(ctx)
	if err != nil {
		return false, err
	}
	for _, mark := range all {
		if mark.Tenant == gone.Tenant && mark.Copy == gone.Copy && !mark.Moved {
			return true, to.Settle(ctx, *mark)
		}
	}
	err = to.View(ctx, gone.Tenant, func(store.Tx) error { return nil })
	if errors.Is(err, store.ErrNoTenant) {
		return false, nil
	}
	return err == nil, err
}

func (o *Options) proven(ctx context.Context, moment store.Tx, to Host) error {
	if o.Beside != nil {
		if err := o.Beside(ctx); err != nil {
			return err
		}
	}
	if o.Prove == nil {
		return nil
	}
	return o.Prove(ctx, moment, only{to, moment.Tenant()})
}

// only is one tenant of a store, to read.
type only struct {
	store.Store
	tenant string
}

func (o only) Tenants(context.Context) ([]string, error) { return []string{o.tenant}, nil }

func (only) Update(context.Context, string, func(store.Tx) error) error { return store.ErrReadOnly }

func (only) CreateTenant(context.Context, string) error { return store.ErrReadOnly }

// Close implements store.Store. The store is its opener's to close.
func (only) Close() error { return nil }

// Place is a store that this process has to itself, on this machine, to copy to.
type Place struct {
	Host
	Name string // for people; without a password
	Path string // of the data file, or the file that stands for the database
	lock *os.File
}

// Open opens the data file at path, which is made when it is not there, or the
// database that the file stands for. ErrLocked (store.LockedError) while another
// process of this machine has it.
func Open(ctx context.Context, path, database string) (*Place, error) {
	if database == "" {
		db, err := store.Open(path, store.Options{})
		if err != nil {
			return nil, err
		}
		return &Place{Host: db, Name: db.Name(), Path: path}, nil
	}
	lock, err := store.Lock(path+".lock", true)
	if err != nil {
		return nil, err
	}
	db, err := postgres.Open(ctx, database, postgres.Options{Wait: postgres.DefaultLease + 2*time.Second})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Place{Host: db, Name: db.Name(), Path: path, lock: lock}, nil
}

// Close gives it up. A second call does nothing.
func (p *Place) Close() error {
	err := p.Host.Close()
	if p.lock != nil {
		err = errors.Join(err, p.lock.Close())
		p.lock = nil
	}
	return err
}
