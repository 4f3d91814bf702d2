//go:build linux

package app

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store/postgres"
)

func TestEnginesComeToAnEvenShareAndStayThere(t *testing.T) {
	for _, tenants := range []int{0, 1, 3, 16, 17} {
		for _, n := range []int{1, 2, 3, 4, 20} {
			var engines []postgres.Engine
			for i := range n {
				engines = append(engines, postgres.Engine{Name: fmt.Sprint("e", i), Live: true})
			}
			owned := make([]postgres.Owned, tenants)
			for i := range owned { // the first has some, a dead one had others, the rest nobody had
				owned[i] = postgres.Owned{Tenant: fmt.Sprintf("t_%02d", i), Engine: []string{"e0", "dead", ""}[i%3], Free: i%3 > 0}
			}
			moves := 0
			for range 3 * tenants {
				for _, e := range engines {
					p := shareOf(e.Name, engines, owned, awake)
					for i, o := range owned {
						if slices.Contains(p.take, o.Tenant) {
							owned[i] = postgres.Owned{Tenant: o.Tenant, Engine: e.Name}
						}
					}
					if len(p.give) == 0 {
						continue
					}
					i := slices.IndexFunc(owned, func(o postgres.Owned) bool { return o.Tenant == p.give[0].tenant })
					owned[i].Engine = p.give[0].to
					moves++
				}
			}
			has := map[string]int{}
			for _, o := range owned {
				expect.True(t, !o.Free && o.Engine != "dead", "%d tenants, %d engines: nobody has %s", tenants, n, o.Tenant)
				has[o.Engine]++
			}
			for _, e := range engines {
				c := has[e.Name]
				expect.True(t, c >= tenants/n && c <= (tenants+n-1)/n, "%d tenants, %d engines: %s has %d", tenants, n, e.Name, c)
				p := shareOf(e.Name, engines, owned, awake)
				expect.True(t, len(p.take) == 0 && len(p.give) == 0, "%d tenants, %d engines: %s goes on: %+v", tenants, n, e.Name, p)
			}
			expect.True(t, moves <= tenants, "%d tenants, %d engines: %d moves", tenants, n, moves)
		}
	}
}

func TestAnEngineThatLetsNobodyInLeavesTheTenantsToThoseThatDo(t *testing.T) {
	engines := []postgres.Engine{{Name: "cockpit", Live: true}, {Name: "one", Live: true, Address: "one:22"}, {Name: "two", Live: true, Address: "two:22"}, {Name: "old", Address: "old:22"}}
	owned := []postgres.Owned{{Tenant: "t_aa", Engine: "cockpit"}, {Tenant: "t_bb", Engine: "one"}, {Tenant: "t_cc", Free: true}}
	p := shareOf("cockpit", engines, owned, awake)
	expect.True(t, len(p.take) == 0 && slices.Equal(p.give, []gift{{"t_aa", "two"}}), "%+v", p)
	p = shareOf("two", engines, owned, awake)
	expect.True(t, slices.Equal(p.take, []string{"t_cc"}), "%+v", p)
	p = shareOf("cockpit", engines[:1], owned, awake)
	expect.True(t, slices.Equal(p.take, []string{"t_cc"}) && len(p.give) == 0, "alone: %+v", p)
}

func TestATenantOfAnEngineThatIsNotLiveIsTakenOnlyOnceItsLeaseIsOver(t *testing.T) {
	engines := []postgres.Engine{{Name: "here", Live: true}, {Name: "paused"}}
	p := shareOf("here", engines, []postgres.Owned{{Tenant: "t_acme", Engine: "paused"}, {Tenant: "t_other", Engine: "paused", Free: true}}, awake)
	expect.True(t, len(p.take) == 1 && p.take[0] == "t_other", "takes %v", p.take)
}

func TestAnEngineWhoseRowIsStaleGivesNothingAwayForThat(t *testing.T) {
	engines := []postgres.Engine{{Name: "here"}, {Name: "other", Live: true}} // the database stood still, and the other was seen first
	owned := []postgres.Owned{{Tenant: "t_acme", Engine: "here"}, {Tenant: "t_other", Free: true}}
	p := shareOf("here", engines, owned, awake)
	expect.True(t, len(p.give) == 0 && len(p.take) == 0, "%+v", p)
	p = shareOf("here", engines[:1], owned, awake)
	expect.True(t, len(p.give) == 0 && slices.Equal(p.take, []string{"t_other"}), "no other is seen: %+v", p)
}

func awake(string) bool { return false }

func TestAnEngineThatIsStoppedIsGivenNothingAndCountsForNothing(t *testing.T) {
	engines := []postgres.Engine{{Name: "here", Live: true}, {Name: "stopped", Live: true, Draining: true}}
	owned := []postgres.Owned{{Tenant: "t_aa", Engine: "here"}, {Tenant: "t_bb", Engine: "here"}, {Tenant: "t_cc", Free: true}, {Tenant: "t_dd", Free: true}}
	p := shareOf("here", engines, owned, awake)
	expect.True(t, len(p.take) == 2 && len(p.give) == 0, "%+v", p)
}

func TestATenantThatCameBackIsHandedThereEverMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all given
		there, what := []postgres.Engine{{Name: "there"}}, gift{"t_acme", "there"}
		for _, long := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
			all.forget(there)
			expect.True(t, !all.rests(what), "it rests")
			all.note(what)
			time.Sleep(long - time.Second)
			all.forget(there)
			expect.True(t, all.rests(what) && !all.rests(gift{"t_acme", "other"}), "within %s it may go, or to nobody", long)
			time.Sleep(time.Second)
		}
		all.note(what)
		all.forget(nil)
		expect.True(t, !all.rests(what), "one that was started again waits for the one before")
	})
}

func TestATenantThatRestsLeavesItsPlaceToTheOthers(t *testing.T) {
	engines := []postgres.Engine{{Name: "here", Live: true}, {Name: "other", Live: true}}
	owned := []postgres.Owned{{Tenant: "t_bad", Free: true}, {Tenant: "t_good", Free: true}}
	expect.Same(t, shareOf("here", engines, owned, func(tenant string) bool { return tenant == "t_bad" }).take, []string{"t_good"}, "takes")
}

func TestAnEngineLooksForTenantsWhenALeaseEnds(t *testing.T) {
	const soon = 40 * time.Millisecond
	for want, owned := range map[time.Duration][]postgres.Owned{
		shareEvery:       {{Tenant: "t_a", Engine: "here", Left: soon}, {Tenant: "t_b", Engine: "other", Left: 4 * time.Second}, {Tenant: "t_c", Free: true}},
		soon + leaseOver: {{Tenant: "t_a", Engine: "here", Left: time.Millisecond}, {Tenant: "t_b", Engine: "other", Left: 2 * soon}, {Tenant: "t_c", Engine: "gone", Left: soon}},
	} {
		expect.Is(t, nextLook("here", owned), want, "it looks again after")
	}
}
