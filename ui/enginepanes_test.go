package ui

import (
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/cluster"
	"swarmdeck/expect"
)

// twoOfThree are three engines on one database: one is late, one was killed, whose tenant
// nobody has taken yet.
func twoOfThree() cluster.Cluster {
	return cluster.Cluster{
		Shared: true, At: start,
		Engines: []cluster.Engine{
			{Name: "deck1-AAAA2222", Host: "deck1", Version: "v1.4.0", Address: "deck1.example:2222", State: cluster.Up, Here: true, Since: start.Add(-26 * time.Hour), Seen: start, Silent: 400, Count: 2, Tenants: []string{"t_acme", "t_other"}},
			{Name: "deck2-BBBB3333", Host: "deck2", Version: "v1.4.0", State: cluster.Late, Since: start.Add(-time.Hour), Seen: start.Add(-3 * time.Second), Silent: 3100, Count: 1, Tenants: []string{"t_far"}},
			{Name: "deck3-CCCC4444", Host: "deck3", Version: "v1.3.9", Address: "deck3.example:2222", State: cluster.Gone, Since: start.Add(-time.Hour), Seen: start.Add(-5 * time.Second), Silent: 5200, Tenants: []string{}},
		},
		Free: []string{"t_stray"},
	}
}

func engineRig(t testing.TB, w, h int) *rig {
	world := newWorld()
	world.cluster = twoOfThree()
	return rigOn(t, world, w, h, Options{})
}

func TestThePaneOfEnginesLooksRight(t *testing.T) {
	views(t, [][2]int{{80, 24}, {200, 50}}, engineRig, [][2]string{
		{"tenants-shared", "T"},
		{"engines", "T e"},
		{"engine-late", "T e j enter"},
	})
}

func TestADataFileHasNoEnginesToShow(t *testing.T) {
	r := newRig(t, 80, 24)
	r.change(func() {
		r.w.cluster = twoOfThree()
		r.w.cluster.Shared, r.w.cluster.Free = false, nil
	})
	r.keys("T")
	text := r.text()
	expect.True(t, !strings.Contains(text, "deck1") && !strings.Contains(text, "ngine"), "engines are drawn:\n%s", text)
	r.keys("e")
	r.has("a data file has no engines that share it")
}

func TestAnEngineThatGoesIsSeenAtOnceAndItsSilenceGrows(t *testing.T) {
	r := engineRig(t, 80, 24)
	r.keys("T")
	r.has("late 4s")
	r.wait(4 * time.Second)
	r.has("late 8s")
	r.change(func() {
		r.w.cluster.Engines[1].State, r.w.cluster.Engines[1].Tenants, r.w.cluster.Engines[1].Count = cluster.Gone, nil, 0
		r.w.cluster.Free = []string{"t_far", "t_stray"}
	})
	text := r.text()
	expect.True(t, strings.Count(text, "no engine") == 2 && !strings.Contains(text, "late"), "a tenant that nobody has does not say so:\n%s", text)
	r.keys("e")
	text = r.text()
	expect.True(t, strings.Count(text, "gone") == 2, "an engine that is gone does not say so:\n%s", text)
}

func TestATenantOfAnotherEngineSaysHowItIsShown(t *testing.T) {
	r := engineRig(t, 80, 24)
	r.keys("T", "j", "enter")
	r.has("t_far has a cockpit of its own: swarmdeck --tenant t_far")
	expect.Is(t, r.m.tenant, tenant)
}
