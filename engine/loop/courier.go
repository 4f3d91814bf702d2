package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

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
