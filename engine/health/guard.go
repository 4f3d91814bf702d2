package health

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"swarmdeck/store"
)

// The rest of a tenant whose pass failed: doubled at each failure in a row.
const (
	minRest = time.Second
	maxRest = time.Minute
)

// Guard isolates the passes of one loop: what goes wrong with one tenant is
// reported, and its next pass waits; the others go on.
type Guard struct {
	troubles  *Troubles
	component string
	now       func() time.Time

	mu   sync.Mutex
	rest map[string]rest // by tenant
}

type rest struct {
	until time.Time
	pause time.Duration
}

// Guard makes the one of a loop. Its clock is the machine's monotonic one.
func (t *Troubles) Guard(component string) *Guard {
	return &Guard{troubles: t, component: component, now: time.Now, rest: map[string]rest{}}
}

// Try makes a pass for a tenant, unless it rests. wait is how long it rests
// from here on, 0 after a pass that went well. err is what ends the loop for
// all: the end of ctx, or what WholeEngine says.
func (g *Guard) Try(ctx context.Context, tenant string, pass func() error) (wait time.Duration, err error) {
	g.mu.Lock()
	was, resting := g.rest[tenant]
	g.mu.Unlock()
	if left := was.until.Sub(g.now()); resting && left > 0 {
		return left, nil
	}
	err = Caught(pass)
	switch {
	case err == nil || errors.Is(err, store.ErrNoTenant):
		if resting {
			g.mu.Lock()
			delete(g.rest, tenant)
			g.mu.Unlock()
			g.troubles.Clear(tenant, g.component, "")
		}
		return 0, nil
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case WholeEngine(err):
		return 0, err
	}
	if errors.Is(err, store.ErrFull) { // a trouble of the store, not of the tenant
		g.mu.Lock()
		g.rest[tenant] = rest{until: g.now().Add(minRest), pause: was.pause}
		g.mu.Unlock()
		return minRest, nil
	}
	g.troubles.note(tenant, place{g.component, ""}, err)
	pause := min(max(2*was.pause, minRest), maxRest)
	g.mu.Lock()
	g.rest[tenant] = rest{until: g.now().Add(pause), pause: pause}
	g.mu.Unlock()
	return pause, nil
}

// Caught runs fn; a panic of it is a *Panic with its stack.
func Caught(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	return fn()
}

// WholeEngine reports an error that no tenant is the cause of: the store is
// closed, can't be used or written, or has another owner.
func WholeEngine(err error) bool {
	return slices.ContainsFunc([]error{store.ErrClosed, store.ErrUnusable, store.ErrReadOnly, store.ErrFenced}, func(all error) bool {
		return errors.Is(err, all)
	})
}

// Tenants runs fn for each tenant, as the start of a service does. What fails is
// reported as that tenant's, and the others go on; the error is WholeEngine's,
// or the end of ctx.
func (t *Troubles) Tenants(ctx context.Context, component string, tenants []string, fn func(tenant string) error) error {
	for _, tenant := range tenants {
		err := Caught(func() error { return fn(tenant) })
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case WholeEngine(err):
			return err
		default:
			t.Report(tenant, component, "", err)
		}
	}
	return nil
}
