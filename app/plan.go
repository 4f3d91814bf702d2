//go:build linux

package app

import (
	"cmp"
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

// shareOf plans the share of one engine. The tenants that some engines want are shared by
// those, all others by all: each has as many as any other of those, or one more, and who has
// fewer in all is the first to have one more. Where some engines let others in, those share
// all: a tenant of a cockpit's engine is out of reach elsewhere. What rests is not taken.
//
// Each gift brings the shares nearer to each other, or those that are as near the sums of
// all: engines that plan by what is so come to an end.
func shareOf(me string, engines []postgres.Engine, owned []postgres.Owned, rests func(tenant string) bool, wants func(e *postgres.Engine, tenant string) bool) (p plan) {
	engines = slices.DeleteFunc(slices.Clone(engines), func(e postgres.Engine) bool {
		return !e.Live && e.Name != me || e.Draining || e.Visits() // who plans is there, seen or not
	})
	if open := slices.DeleteFunc(slices.Clone(engines), func(e postgres.Engine) bool { return e.Address == "" }); len(open) > 0 {
		engines = open
	}
	if len(engines) == 0 { // it has not joined, and no other is seen
		engines = []postgres.Engine{{Name: me}}
	}
	sums := map[string]int{}
	for _, o := range owned {
		if !o.Free {
			sums[o.Engine]++
		}
		if !o.Free && o.Engine == me {
			p.mine = append(p.mine, o.Tenant)
		}
	}
	for _, g := range groupsOf(engines, owned, wants) {
		take, give := g.share(me, sums, rests)
		p.take, p.give = append(p.take, take...), append(p.give, give...)
	}
	return p
}

// group is tenants and the engines that share them.
type group struct {
	engines []string
	owned   []postgres.Owned
}

// groupsOf parts the tenants by who wants them.
func groupsOf(engines []postgres.Engine, owned []postgres.Owned, wants func(e *postgres.Engine, tenant string) bool) []*group {
	all := &group{}
	for i := range engines {
		all.engines = append(all.engines, engines[i].Name)
	}
	groups := []*group{all}
	for _, o := range owned {
		var wanted []string
		for i := range engines {
			if wants(&engines[i], o.Tenant) {
				wanted = append(wanted, engines[i].Name)
			}
		}
		of := all
		if len(wanted) > 0 && len(wanted) < len(engines) {
			i := slices.IndexFunc(groups, func(g *group) bool { return slices.Equal(g.engines, wanted) })
			if i < 0 {
				i = len(groups)
				groups = append(groups, &group{engines: wanted})
			}
			of = groups[i]
		}
		of.owned = append(of.owned, o)
	}
	return groups
}

// share plans what one engine takes and gives of the group. Sums are how many tenants of
// any group each engine has.
func (g *group) share(me string, sums map[string]int, rests func(tenant string) bool) (take []string, give []gift) {
	has := map[string]int{}
	var free, mine []string
	for _, o := range g.owned {
		switch {
		case o.Free:
			free = append(free, o.Tenant)
			continue
		case o.Engine == me:
			mine = append(mine, o.Tenant)
		}
		has[o.Engine]++
	}
	shares := slices.Contains(g.engines, me)
	free = slices.DeleteFunc(free, rests)
	if shares {
		most := (len(g.owned) + len(g.engines) - 1) / len(g.engines)
		take = free[:min(len(free), max(0, most-has[me]))]
	}
	to := slices.MinFunc(g.engines, func(a, b string) int { return cmp.Or(has[a]-has[b], sums[a]-sums[b]) })
	fewer := has[to] < has[me]-1 || has[to] == has[me]-1 && sums[to] < sums[me]-1
	if to == me || shares && (len(free) > 0 || !fewer) {
		return take, nil
	}
	for _, tenant := range mine {
		give = append(give, gift{tenant, to})
	}
	return take, give
}
