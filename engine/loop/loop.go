// Package loop drives what services do by themselves. A Loop makes a pass for a
// tenant when something of it is due or somebody rings; a Crew keeps one worker
// at each thing that is wanted. In both, what goes wrong with one is reported
// (see health) and tried again later, and keeps no other waiting.
package loop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
)

// Options of New.
type Options struct {
	Component string // names it among troubles
	Health    *health.Troubles
	Clock     core.Clock // by which things are due
	// Tenants get a pass as Run begins; nil is none.
	Tenants func(context.Context) ([]string, error)
	// Pass does what there is to do for a tenant. due says that something was
	// due, not only rung for. next is when to look again, zero for a ring.
	Pass func(ctx context.Context, tenant string, due bool) (next time.Time, err error)
	// Gather is how long a ring waits for others.
	Gather time.Duration
}

// Loop makes one pass after the other. Ring and Due may be called anywhere, also
// on the store's goroutine.
type Loop struct {
	opt   Options
	guard *health.Guard
	bell  chan struct{} // one slot

	mu   sync.Mutex
	rung map[string]bool
	due  map[string]time.Time
}

// New makes a loop, which does nothing before Run.
func New(opt Options) *Loop {
	return &Loop{
		opt: opt, guard: opt.Health.Guard(opt.Component), bell: make(chan struct{}, 1),
		rung: map[string]bool{}, due: map[string]time.Time{},
	}
}

// Ring has a tenant looked at.
func (l *Loop) Ring(tenant string) {
	l.mu.Lock()
	fresh := !l.rung[tenant]
	l.rung[tenant] = true
	l.mu.Unlock()
	if fresh {
		Ring(l.bell)
	}
}

// Due has a tenant looked at from a time on, the earliest of those that are
// given; zero is now.
func (l *Loop) Due(tenant string, at time.Time) {
	l.mu.Lock()
	known, ok := l.due[tenant]
	sooner := !ok || at.Before(known)
	if sooner {
		l.due[tenant] = at
	}
	l.mu.Unlock()
	if sooner {
		Ring(l.bell)
	}
}

// All has every tenant looked at that waits for its time.
func (l *Loop) All() {
	l.mu.Lock()
	for tenant := range l.due {
		l.due[tenant] = time.Time{}
	}
	l.mu.Unlock()
	Ring(l.bell)
}

// Run makes passes until ctx ends. Its error is what no tenant is the cause of.
func (l *Loop) Run(ctx context.Context) error {
	if l.opt.Tenants != nil {
		all, err := l.opt.Tenants(ctx)
		if err != nil {
			return fmt.Errorf("%s: list the tenants: %w", l.opt.Component, err)
		}
		for _, tenant := range all {
			l.Due(tenant, time.Time{})
		}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.bell:
			if l.opt.Gather > 0 {
				Wait(ctx, nil, l.opt.Gather)
			}
		case <-timer.C:
		}
		wait, err := l.Step(ctx)
		if err != nil {
			return err
		}
		timer.Reset(wait)
	}
}

// Step makes the passes that there are to make now, and says when the next is
// due. Run calls it; a test may in its place.
func (l *Loop) Step(ctx context.Context) (wait time.Duration, err error) {
	look, wait := l.take()
	for tenant, due := range look {
		if err := l.pass(ctx, tenant, due); err != nil {
			return wait, err
		}
	}
	return wait, nil
}

func (l *Loop) pass(ctx context.Context, tenant string, due bool) error {
	var next time.Time
	rest, err := l.guard.Try(ctx, tenant, func() (err error) {
		next, err = l.opt.Pass(ctx, tenant, due)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("%s of %s: %w", l.opt.Component, tenant, err)
	case rest > 0:
		next = l.opt.Clock.Now().Add(rest)
	}
	if !next.IsZero() {
		l.Due(tenant, next)
	}
	return nil
}

// take returns the tenants to look at, true where something is due, and how
// long to wait for the next; timers stand while the machine sleeps.
func (l *Loop) take() (look map[string]bool, wait time.Duration) {
	now := l.opt.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	look, wait = map[string]bool{}, time.Minute
	for tenant := range l.rung {
		look[tenant] = false
	}
	clear(l.rung)
	for tenant, at := range l.due {
		if left := at.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		look[tenant] = true
		delete(l.due, tenant)
	}
	return look, max(wait, time.Millisecond)
}

// Ring fills a bell of one slot, which may be full.
func Ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
