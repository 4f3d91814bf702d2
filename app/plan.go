//go:build linux

package app

import (
	"slices"

	"swarmdeck/store/postgres"
)

// plan is what one engine is to do for its share.
type plan struct {
	take []string // tenants that nobody has
	mine []string
	give []gift // of which the first one that can go goes
}

// gift is a tenant that another engine is to have.
type gift struct{ tenant, to string }

// shareOf plans the share of one engine: each has as many tenants as any other, or one
// more. Where some engines let others in, those share all: a tenant of a cockpit's engine
// is out of reach elsewhere. What rests is not taken.
//
// Each gift brings the shares nearer to each other: engines that plan by what is so come
// to an end.
func shareOf(me string, engines []postgres.Engine, owned []postgres.Owned, rests func(tenant string) bool) (p plan) {
	engines = slices.DeleteFunc(slices.Clone(engines), func(e postgres.Engine) bool {
		return !e.Live && e.Name != me || e.Draining || e.Visits() // who plans is there, seen or not
	})
	if open := slices.DeleteFunc(slices.Clone(engines), func(e postgres.Engine) bool { return e.Address == "" }); len(open) > 0 {
		engines = open
	}
	if len(engines) == 0 { // it has not joined, and no other is seen
		engines = []postgres.Engine{{Name: me}}
	}
	has := map[string]int{}
	var free []string
	for _, o := range owned {
		switch {
		case o.Free:
			free = append(free, o.Tenant)
			continue
		case o.Engine == me:
			p.mine = append(p.mine, o.Tenant)
		}
		has[o.Engine]++
	}
	shares := slices.ContainsFunc(engines, func(e postgres.Engine) bool { return e.Name == me })
	free = slices.DeleteFunc(free, rests)
	if shares {
		most := (len(owned) + len(engines) - 1) / len(engines)
		p.take = free[:min(len(free), max(0, most-has[me]))]
	}
	to := slices.MinFunc(engines, func(a, b postgres.Engine) int { return has[a.Name] - has[b.Name] }).Name
	if to == me || shares && (len(free) > 0 || has[to] >= has[me]-1) {
		return p
	}
	for _, tenant := range p.mine {
		p.give = append(p.give, gift{tenant, to})
	}
	return p
}
