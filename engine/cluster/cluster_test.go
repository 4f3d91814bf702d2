package cluster_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"swarmdeck/engine/cluster"
	"swarmdeck/expect"
)

func two() cluster.Cluster {
	return cluster.Cluster{
		Engines: []cluster.Engine{
			{Name: "a", State: cluster.Up, Count: 2, Tenants: []string{"t_a", "t_b"}, Silent: 10},
			{Name: "b", State: cluster.Up, Count: 1, Tenants: []string{"t_c"}},
		},
		Free: []string{"t_d", "t_e"},
	}
}

func TestWhoMayKnowOneTenantSeesTheOthersAsACount(t *testing.T) {
	all := two()
	mine := all.Of("t_b")
	if e := mine.Engines[0]; !reflect.DeepEqual(e.Tenants, []string{"t_b"}) || e.Count != 2 {
		t.Errorf("%+v", e)
	}
	if e := mine.Engines[1]; len(e.Tenants) != 0 || e.Tenants == nil || e.Count != 1 {
		t.Errorf("%+v", e)
	}
	if len(mine.Free) != 0 || len(all.Of("t_d").Free) != 1 {
		t.Errorf("free: %v", mine.Free)
	}
	if !reflect.DeepEqual(all, two()) {
		t.Errorf("what others see was changed: %+v", all)
	}
	if e, is := all.Owner("t_c"); !is || e.Name != "b" {
		t.Errorf("%+v", e)
	}
	if _, is := all.Owner("t_d"); is {
		t.Error("somebody has what is free")
	}
}

func TestOnlyWhatIsWorthALookIsAChange(t *testing.T) {
	b := cluster.New(func(context.Context) (cluster.Cluster, error) { return two(), nil })
	if !b.Note(two()) || b.Note(two()) {
		t.Error("the same is another thing, or something is nothing")
	}
	now := two()
	if now.Engines[0].Silent = 999; b.Note(now) {
		t.Error("an engine that is as it was is another one")
	}
	now = two()
	if now.Engines[0].State = cluster.Late; !b.Note(now) || b.Known(nil).Engines[0].State != cluster.Late {
		t.Error("an engine that is late is nothing new")
	}
	if now = two(); !b.Note(cluster.Cluster{Engines: now.Engines}) {
		t.Error("tenants that were taken are nothing new")
	}
}

func TestTheOneEngineOfADataFileHasAllTenants(t *testing.T) {
	b := cluster.Alone(cluster.Engine{Name: "me"}, func(context.Context) ([]string, error) { return []string{"t_a", "t_b"}, nil })
	c, err := b.Look(t.Context())
	if err != nil || len(c.Engines) != 1 || !c.Engines[0].Here || c.Engines[0].State != cluster.Up || c.Engines[0].Count != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	var none *cluster.Book
	if c, err := none.Look(t.Context()); err != nil || len(c.Engines) != 0 || len(none.Known(nil).Engines) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestTheSilenceOfAnEngineGrowsUnlessItIsUp(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := cluster.Cluster{At: at, Free: []string{"t_c"}, Engines: []cluster.Engine{
		{Name: "up", State: cluster.Up, Silent: 1000, Tenants: []string{"t_d", "t_a"}}, {Name: "late", State: cluster.Late, Silent: 3000, Tenants: []string{"t_b"}},
	}}
	if up, late := c.Silence(c.Engines[0], at.Add(time.Minute)), c.Silence(c.Engines[1], at.Add(time.Minute)); up != time.Second || late != 63*time.Second {
		t.Errorf("%s, %s", up, late)
	}
	expect.Is(t, c.Silence(c.Engines[1], at.Add(-time.Minute)), 3*time.Second, "a clock that was set back")
	if all := c.Tenants(); !reflect.DeepEqual(all, []string{"t_a", "t_b", "t_c", "t_d"}) {
		t.Error(all)
	}
}
