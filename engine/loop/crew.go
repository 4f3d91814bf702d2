package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// restAfter is how long a worker rests that failed.
const restAfter = 10 * time.Second

// Crew keeps a worker at each record of a kind: one comes with it, goes with it,
// and gives way to another when it changes.
type Crew[V any] struct {
	Component string // names it among troubles
	Kind      record.Table[V]
	Health    *health.Troubles
	Tenants   func(context.Context) ([]string, error)
	// Same says that a worker need not be exchanged for another. Without it every
	// change exchanges it.
	Same func(old, now *V) bool
	// Work is a worker; nil are none. When it returns without an error, it is over until
	// its record changes; else it begins again after a rest.
	Work func(context.Context, *V) error

	Changed chan struct{} // one slot
}

// Follow is the kind's.
func (c *Crew[V]) Follow(string, string, *V) { Ring(c.Changed) }

type place struct{ tenant, id string }

// Run ends with ctx, and with it all workers. Its error is what no tenant is the
// cause of.
func (c *Crew[V]) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	type worker struct {
		at   *V
		end  context.CancelFunc
		gone chan struct{}
	}
	at := map[place]worker{}
	if c.Work == nil {
		<-ctx.Done()
	}
	for {
		wanted, unread, err := c.wanted(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("read each %s: %w", c.Kind.Called(), err)
		}
		for k, w := range at {
			if v := wanted[k]; !unread[k.tenant] && (v == nil || !c.same(w.at, v)) {
				w.end()
				<-w.gone // two never work side by side
				delete(at, k)
			}
		}
		for k, v := range wanted {
			if at[k].at != nil {
				continue
			}
			work, end := context.WithCancel(ctx)
			w := worker{v, end, make(chan struct{})}
			at[k] = w
			all.Go(func() {
				defer close(w.gone)
				defer end()
				c.keep(work, k, v)
			})
		}
		rest := time.Duration(-1)
		if len(unread) > 0 {
			rest = restAfter
		}
		Wait(ctx, c.Changed, rest)
		if ctx.Err() != nil {
			return nil
		}
	}
}

func (c *Crew[V]) same(old, now *V) bool {
	if c.Same == nil {
		return reflect.DeepEqual(old, now)
	}
	return c.Same(old, now)
}

// wanted are the records that want a worker. Tenants that can't be read now keep the
// workers that they have.
func (c *Crew[V]) wanted(ctx context.Context) (all map[place]*V, unread map[string]bool, err error) {
	tenants, err := c.Tenants(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, unread = map[place]*V{}, map[string]bool{}
	err = c.Health.Tenants(ctx, c.Component, tenants, func(tenant string) error {
		unread[tenant] = true
		found, err := c.Kind.Map(ctx, tenant)
		if err != nil && !errors.Is(err, store.ErrNoTenant) {
			return err
		}
		delete(unread, tenant)
		c.Health.Clear(tenant, c.Component, "")
		for id, v := range found {
			all[place{tenant, id}] = v
		}
		return nil
	})
	return all, unread, err
}

func (c *Crew[V]) keep(ctx context.Context, at place, v *V) {
	about := c.Kind.Called() + " " + at.id
	for {
		err := health.Caught(func() error { return c.Work(ctx, v) })
		if ctx.Err() != nil {
			return
		}
		if err == nil || errors.Is(err, errOver) {
			c.Health.Clear(at.tenant, c.Component, about)
			return
		}
		c.Health.Report(at.tenant, c.Component, about, err)
		Wait(ctx, nil, restAfter)
	}
}

// errOver ends a worker whose record is gone, or another by now.
var errOver = errors.New("the record is another one")

// Courier is a worker of a crew that keeps beside its record how far it came, so
// that the next one goes on from there.
type Courier[V, S any] struct {
	Ledger *audit.Ledger
	Kind   record.Table[V]
	Rows   record.Rows[S] // by the record's id
	By     core.Caller
	ID     string
	Same   func(now *V) bool // the record is still the worker's
	St     S                 // as it is on disk
}

// Load reads how far it came.
func (c *Courier[V, S]) Load(ctx context.Context) error {
	return c.Ledger.View(ctx, c.By.Tenant, func(tx *audit.Tx) (err error) {
		c.St, _, err = c.Rows.Get(tx, record.Key(c.ID))
		return err
	})
}

// Keep changes how far it came, with an audit event unless its type is "".
func (c *Courier[V, S]) Keep(ctx context.Context, e record.Event, change func(*S)) error {
	next := c.St
	change(&next)
	write := c.Ledger.Append
	if e.Type != "" {
		write = c.Ledger.Update
	}
	err := write(ctx, c.By, func(tx *audit.Tx) error {
		now, err := c.Kind.Load(tx, c.ID)
		if err == nil && (now == nil || !c.Same(now)) {
			err = errOver
		}
		if err == nil && e.Type != "" {
			err = c.Kind.Tell(tx, e, now)
		}
		return errors.Join(err, c.Rows.Put(tx, record.Key(c.ID), next))
	})
	if err != nil {
		return fmt.Errorf("keep how far %s %s is: %w", c.Kind.Called(), c.ID, err)
	}
	c.St = next
	return nil
}

// Wait waits for a time, less than none for ever, or until the bell rings, nil for
// never: then it is true. A bell is closed when ctx ends.
func Wait(ctx context.Context, bell <-chan struct{}, d time.Duration) (rang bool) {
	var over <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-over:
		return false
	case _, rang = <-bell:
		if !rang {
			<-ctx.Done()
		}
		return rang
	}
}
