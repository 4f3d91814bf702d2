package host_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/host"
	"swarmdeck/expect"
)

// stand is a driver that says of each host what a test wants.
type stand struct{ state map[string]string }

func (stand) Keep(ctx context.Context, _ host.Host) error { <-ctx.Done(); return nil }
func (stand) Clear(context.Context, host.Host) error      { return nil }
func (s stand) Link(_, name string) host.Link             { return host.Link{State: s.state[name]} }

func TestTheLeastFullHostWithTheLabelsIsChosen(t *testing.T) {
	var hosts *host.Hosts
	on := map[string]int{}
	links := stand{map[string]string{}}
	w := enginetest.New(t, enginetest.Options{Build: func(w *enginetest.World) {
		hosts = host.New(host.Options{Ledger: w.Ledger, Driver: links, Tenants: w.DB.Tenants, Agents: func(_, name string) (all []string) {
			for i := range on[name] {
				all = append(all, fmt.Sprint("a", i))
			}
			return all
		}})
	}})
	by, ctx := enginetest.Alice(), t.Context()
	choose := func(selector, want string) {
		t.Helper()
		got, err := hosts.Choose(ctx, enginetest.Acme, selector)
		if err == nil {
			got = "is " + got
		} else if got = err.Error(); !errors.Is(err, core.Kind(core.Conflict)) {
			t.Errorf("%s: %v is no conflict", selector, err)
		}
		expect.Has(t, got, want, selector)
	}
	choose("a=b", "there is none; host add makes one")
	for _, h := range []host.Host{
		{Name: "ant", Slots: 4, Labels: map[string]string{"arch": "amd64"}},
		{Name: "bee", Slots: 8, Labels: map[string]string{"arch": "amd64", "gpu": "yes"}},
		{Name: "cat", Slots: 4, Labels: map[string]string{"arch": "arm64", "gpu": "yes"}},
	} {
		h.Address = "ssh://" + h.Name
		_, _, err := hosts.Add(ctx, by, h)
		expect.No(w.T, err)
		links.state[h.Name] = host.Up
	}
	choose("arch=amd64", "is ant") // equally full: by name
	on["ant"] = 1
	choose("arch=amd64", "is bee")
	on["bee"] = 2
	choose("arch=amd64", "is ant") // a quarter of each
	on["bee"] = 1
	choose("arch=amd64", "is bee")
	links.state["bee"] = host.Refused
	choose("arch=amd64", "is ant") // with a link before one without
	choose("arch=amd64, gpu=yes", "is bee")
	on["ant"] = 4
	choose("arch=amd64", "is bee")
	expect.Of(hosts.Drain(ctx, by, "bee", true))(t)
	choose("arch=amd64", "on arch=amd64: no host takes the agent: ant: it is full, with 4 of 4 agents; bee: it is draining; cat: its label arch is arm64")
	choose("gpu=yes,arch=amd64", "ant: it has no label gpu; bee: it is draining; cat: its label arch is arm64")
	expect.Err(t, expect.Fault(hosts.Choose(ctx, enginetest.Acme, "gpu")), core.Kind(core.InvalidInput))
}

func FuzzParseSelector(f *testing.F) {
	for _, s := range []string{"a=b", "a=b,c=d", "a=", "=b", ",", "a=b=c", "a=b,a=c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := host.ParseSelector("on", text)
		if err != nil {
			return
		}
		again, err := host.ParseSelector("on", s.String())
		expect.Must(t, err == nil && again.String() == s.String() && len(s) != 0, "%q: %q, then %q %v", text, s, again, err)
	})
}
