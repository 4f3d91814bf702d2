//go:build linux

package app

import (
	"slices"
	"time"

	"swarmdeck/store/postgres"
)

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
