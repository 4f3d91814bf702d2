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
	e := mine.Engines[0]
	expect.True(t, reflect.DeepEqual(e.Tenants, []string{"t_b"}) && e.Count == 2, "%+v", e)
	e = mine.Engines[1]
	expect.True(t, len(e.Tenants) == 0 && e.Tenants != nil && e.Count == 1, "%+v", e)
	expect.True(t, len(mine.Free) == 0 && len(all.Of("t_d").Free) == 1, "free: %v", mine.Free)
	expect.True(t, reflect.DeepEqual(all, two()), "what others see was changed: %+v", all)
	e, is := all.Owner("t_c")
	expect.True(t, is && e.Name == "b", "%+v", e)
	_, is = all.Owner("t_d")
	expect.True(t, !is, "somebody has what is free")
}

func TestOnlyWhatIsWorthALookIsAChange(t *testing.T) {
	b := cluster.New(func(context.Context) (cluster.Cluster, error) { return two(), nil })
	expect.True(t, b.Note(two()) && !b.Note(two()), "the same is another thing, or something is nothing")
	now := two()
	now.Engines[0].Silent = 999
	expect.True(t, !b.Note(now), "an engine that is as it was is another one")
	now = two()
	now.Engines[0].State = cluster.Late
	expect.True(t, b.Note(now) && b.Known(nil).Engines[0].State == cluster.Late, "an engine that is late is nothing new")
	now = two()
	expect.True(t, b.Note(cluster.Cluster{Engines: now.Engines}), "tenants that were taken are nothing new")
}

func TestTheOneEngineOfADataFileHasAllTenants(t *testing.T) {
	b := cluster.Alone(cluster.Engine{Name: "me"}, func(context.Context) ([]string, error) { return []string{"t_a", "t_b"}, nil })
	c, err := b.Look(t.Context())
	expect.True(t, err == nil && len(c.Engines) == 1 && c.Engines[0].Here && c.Engines[0].State == cluster.Up && c.Engines[0].Count == 2, "%+v, %v", c, err)
	var none *cluster.Book
	c, err = none.Look(t.Context())
	expect.True(t, err == nil && len(c.Engines) == 0 && len(none.Known(nil).Engines) == 0, "%+v, %v", c, err)
}

func TestTheSilenceOfAnEngineGrowsUnlessItIsUp(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := cluster.Cluster{At: at, Free: []string{"t_c"}, Engines: []cluster.Engine{
		{Name: "up", State: cluster.Up, Silent: 1000, Tenants: []string{"t_d", "t_a"}}, {Name: "late", State: cluster.Late, Silent: 3000, Tenants: []string{"t_b"}},
	}}
	up, late := c.Silence(c.Engines[0], at.Add(time.Minute)), c.Silence(c.Engines[1], at.Add(time.Minute))
	expect.True(t, up == time.Second && late == 63*time.Second, "%s, %s", up, late)
	expect.Is(t, c.Silence(c.Engines[1], at.Add(-time.Minute)), 3*time.Second, "a clock that was set back")
	all := c.Tenants()
	expect.True(t, reflect.DeepEqual(all, []string{"t_a", "t_b", "t_c", "t_d"}), "%v", all)
}
