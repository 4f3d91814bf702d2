//go:build linux

package app

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"swarmdeck/store/postgres"
)

// The pause before a tenant is taken again whose engine failed: doubled at each failure
// in a row, and up to a quarter longer by chance, so that engines and tenants that fail
// for one reason don't return at one instant. One that worked for as long as the longest
// starts anew.
const (
	minRetake = shareEvery
	maxRetake = 30 * time.Second
)

// retakes are the tenants whose engine failed here. The zero value has none.
type retakes struct {
	mu  sync.Mutex
	all map[string]retake
}

type retake struct {
	pause  time.Duration
	next   time.Time // when it may be taken again
	opened time.Time // zero while it is not open
}

// rests says that it is too early to take a tenant again.
func (r *retakes) rests(tenant string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.all[tenant].next)
}

// failed notes that the engine of a tenant could not be opened, or ended by itself, and
// tells when it is tried again.
func (r *retakes) failed(tenant string) (next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, now := r.all[tenant], time.Now()
	if !was.opened.IsZero() && now.Sub(was.opened) >= maxRetake {
		was = retake{}
	}
	pause := min(max(2*was.pause, minRetake), maxRetake)
	if r.all == nil {
		r.all = map[string]retake{}
	}
	next = now.Add(pause + rand.N(pause/4))
	r.all[tenant] = retake{pause: pause, next: next}
	return next
}

// opened notes that a tenant has its engine.
func (r *retakes) opened(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, failed := r.all[tenant]; failed {
		was.opened, was.next = time.Now(), time.Time{}
		r.all[tenant] = was
	}
}

// forget ends the count of the tenants that others have, and of those that have worked
// here for long. It tells which had failed.
func (r *retakes) forget(others func(tenant string) bool) (over []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for tenant, was := range r.all {
		if others(tenant) || !was.opened.IsZero() && time.Since(was.opened) >= maxRetake {
			delete(r.all, tenant)
			over = append(over, tenant)
		}
	}
	return over
}

// The pause before a tenant is handed to an engine again from which it came back, as from
// one that can't open it: doubled each time.
const (
	minGive = 10 * time.Second
	maxGive = 10 * time.Minute
)

// given are the tenants that were handed over. The zero value has none. It is for one
// goroutine.
type given struct{ all map[gift]pause }

type pause struct {
	long time.Duration
	end  time.Time
}

// rests says that it is too early to hand a tenant to an engine again.
func (g *given) rests(what gift) bool { return time.Now().Before(g.all[what].end) }

// note keeps that a tenant is handed over.
func (g *given) note(what gift) {
	if g.all == nil {
		g.all = map[gift]pause{}
	}
	long := min(max(2*g.all[what].long, minGive), maxGive)
	g.all[what] = pause{long, time.Now().Add(long)}
}

// forget ends the pauses of engines that are no more. One that is started again has
// another name.
func (g *given) forget(engines []postgres.Engine) {
	for what := range g.all {
		if !slices.ContainsFunc(engines, func(e postgres.Engine) bool { return e.Name == what.to }) {
			delete(g.all, what)
		}
	}
}
