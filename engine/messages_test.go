package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// asleep is a runtime whose agents exist and never run.
type asleep struct{ fleet.Runtime }

func (asleep) Check(fleet.Create) error { return nil }

func TestTheFleetsAgentsHaveMailboxes(t *testing.T) {
	_, st := open(t)
	e := expect.Of(Open(t.Context(), Options{Store: st, Runtimes: map[string]fleet.Runtime{"exec": asleep{}}}))(t)
	defer e.Close()
	for _, tenant := range []string{"t_acme", "t_other"} {
		expect.Of(e.Swarm.CreateTenant(t.Context(), alice, tenant))(t)
	}
	other := alice
	other.Tenant = "t_other"
	for by, name := range map[core.Caller]string{alice: "ann", other: "zoe"} {
		expect.Of(e.Fleet.Create(t.Context(), by, fleet.Create{Name: name, Project: "p", Role: "r", Command: []string{"x"}}))(t)
	}
	send := func(to string) error {
		_, err := e.Bus.Accept(t.Context(), alice, bus.Send{Recipient: to, Payload: core.Raw(`{}`)})
		return err
	}
	for to, want := range map[string]core.Code{"ann": "", "broadcast": "", "zoe": core.Denied, "nobody": core.InvalidInput} {
		err := send(to)
		if got := core.Code(""); err != nil {
			got = core.AsError(err).Code
			expect.Is(t, got, want, "to", to, err)
		} else if want != "" {
			t.Errorf("to %s: accepted", to)
		}
	}
	s := e.Snapshot("t_acme")
	expect.True(t, s.Bus.Messages == 2 && s.Bus.Open == 2 && s.Err == nil, "%+v, %v", s.Bus, s.Err)
	s = e.Snapshot("t_other")
	expect.True(t, s.Bus.Messages == 0, "%+v", s.Bus)
	expect.Of(e.Bus.Read(t.Context(), alice, "ann", 10))(t)
	s = e.Snapshot("t_acme")
	expect.True(t, s.Bus.Open == 0, "after the reading: %+v", s.Bus)
	deltas, err := e.Reconcile(t.Context(), "t_acme")
	expect.True(t, err == nil && len(deltas) == 0, "reconcile: %v, %v", deltas, err)
}

func TestWhatTheEngineDoesWakesSubscribers(t *testing.T) {
	e, _ := open(t)
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, "t_acme"))(t)
	s := expect.Of(e.Bus.Subscribe(t.Context(), "t_acme", bus.SubscribeOptions{Pattern: "sys.session.*"}))(t)
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	got := expect.Later(func() bus.Message {
		d, err := s.Next(ctx)
		expect.Is(t, err, nil)
		return d.Message
	})
	ses := expect.Of(e.Swarm.Sessions.Create(t.Context(), alice, "day"))(t)
	m := <-got
	expect.True(t, m.Topic == "sys.session.created" && strings.Contains(string(m.Payload), ses.SessionID), "%s %s", m.Topic, m.Payload)
}
