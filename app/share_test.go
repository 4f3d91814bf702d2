//go:build linux

package app

import (
	"fmt"
	"slices"
	"testing"

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
					if p.to == "" {
						continue
					}
					i := slices.IndexFunc(owned, func(o postgres.Owned) bool { return o.Tenant == p.mine[0] })
					owned[i].Engine = p.to
					moves++
				}
			}
			has := map[string]int{}
			for _, o := range owned {
				if o.Free || o.Engine == "dead" {
					t.Errorf("%d tenants, %d engines: nobody has %s", tenants, n, o.Tenant)
				}
				has[o.Engine]++
			}
			for _, e := range engines {
				if c := has[e.Name]; c < tenants/n || c > (tenants+n-1)/n {
					t.Errorf("%d tenants, %d engines: %s has %d", tenants, n, e.Name, c)
				}
				if p := shareOf(e.Name, engines, owned, awake); len(p.take) > 0 || p.to != "" {
					t.Errorf("%d tenants, %d engines: %s goes on: %+v", tenants, n, e.Name, p)
				}
			}
			if moves > tenants {
				t.Errorf("%d tenants, %d engines: %d moves", tenants, n, moves)
			}
		}
	}
}

func TestAnEngineThatLetsNobodyInLeavesTheTenantsToThoseThatDo(t *testing.T) {
	engines := []postgres.Engine{{Name: "cockpit", Live: true}, {Name: "one", Live: true, Address: "one:22"}, {Name: "two", Live: true, Address: "two:22"}, {Name: "old", Address: "old:22"}}
	owned := []postgres.Owned{{Tenant: "t_aa", Engine: "cockpit"}, {Tenant: "t_bb", Engine: "one"}, {Tenant: "t_cc", Free: true}}
	if p := shareOf("cockpit", engines, owned, awake); len(p.take) > 0 || p.to != "two" || !slices.Equal(p.mine, []string{"t_aa"}) {
		t.Errorf("%+v", p)
	}
	if p := shareOf("two", engines, owned, awake); !slices.Equal(p.take, []string{"t_cc"}) {
		t.Errorf("%+v", p)
	}
	if p := shareOf("cockpit", engines[:1], owned, awake); !slices.Equal(p.take, []string{"t_cc"}) || p.to != "" {
		t.Errorf("alone: %+v", p)
	}
}

func TestATenantOfAnEngineThatIsNotLiveIsTakenOnlyOnceItsLeaseIsOver(t *testing.T) {
	engines := []postgres.Engine{{Name: "here", Live: true}, {Name: "paused"}}
	p := shareOf("here", engines, []postgres.Owned{{Tenant: "t_acme", Engine: "paused"}, {Tenant: "t_other", Engine: "paused", Free: true}}, awake)
	if len(p.take) != 1 || p.take[0] != "t_other" {
		t.Errorf("takes %v", p.take)
	}
}

func awake(string) bool { return false }

func TestATenantThatRestsLeavesItsPlaceToTheOthers(t *testing.T) {
	engines := []postgres.Engine{{Name: "here", Live: true}, {Name: "other", Live: true}}
	owned := []postgres.Owned{{Tenant: "t_bad", Free: true}, {Tenant: "t_good", Free: true}}
	if p := shareOf("here", engines, owned, func(tenant string) bool { return tenant == "t_bad" }); !slices.Equal(p.take, []string{"t_good"}) {
		t.Errorf("takes %v", p.take)
	}
}
