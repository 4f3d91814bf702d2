package engine

import (
	"errors"
	"testing"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func TestCADAgentsStandBesideAllOthers(t *testing.T) {
	_, st := open(t)
	e := expect.Of(Open(t.Context(), Options{Store: st, Runtimes: map[string]fleet.Runtime{"exec": asleep{}}}))(t)
	defer e.Close()
	ctx := t.Context()
	expect.Of(e.Swarm.CreateTenant(ctx, alice, alice.Tenant))(t)
	create := func(id string) error {
		_, err := e.CAD.CreateAgent(ctx, alice, cad.CreateAgent{AgentID: id, RoleName: "designer", WorkspaceID: "main"})
		return err
	}
	bell := e.Watch(ctx)
	expect.No(t, errors.Join(create("ann"), create("bob")))
	<-bell
	s := e.Snapshot(alice.Tenant)
	expect.True(t, s.Err == nil && len(s.CADAgents) == 2 && s.CADAgents[0].AgentID == "ann" && s.CADAgents[0].Shown() == "idle", "%+v", s)
	if _, err := e.Fleet.Create(ctx, alice, fleet.Create{Name: "ann", Project: "p", Role: "r", Command: []string{"x"}}); !errors.Is(err, core.Kind(core.Conflict)) {
		t.Errorf("two agents with one name: %v", err)
	}
	expect.Of(e.Fleet.Create(ctx, alice, fleet.Create{Name: "zoe", Project: "p", Role: "r", Command: []string{"x"}}))(t)
	expect.Err(t, create("zoe"), core.Kind(core.Conflict), "two agents with one name")
	all := e.Parties(alice.Tenant)
	expect.True(t, len(all) == 3, "parties: %v", all)
	_, err := e.Bus.Accept(ctx, alice, bus.Send{Recipient: "ann", Payload: core.Raw(`{}`)})
	expect.No(t, err, "to its mailbox")
	_, err = e.CAD.Execute(ctx, alice, cad.Operation{AgentID: "ann", Method: "entity.create_point"})
	expect.Err(t, err, core.Kind(core.Unavailable), "without workers")
	expect.Is(t, e.Snapshot(alice.Tenant).CADAgents[0].Shown(), "failed", "after a failure")
	expect.Of(e.CAD.ShutdownAgent(ctx, alice, "bob"))(t)
	s = e.Snapshot(alice.Tenant)
	expect.True(t, len(s.CADAgents) == 1, "%+v", s.CADAgents)
	deltas, err := e.Reconcile(ctx, alice.Tenant)
	expect.True(t, err == nil && len(deltas) == 0, "%+v, %v", deltas, err)
}
