package cad_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func TestAnAgentOfTheFleetActsAsTheCADAgentItIsBoundTo(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	w.agent("bob", "modeler")
	point := func(by core.Caller, id string) (cad.Done, error) {
		return w.cad.Execute(context.Background(), by, cad.Operation{AgentID: id, Method: "entity.create_point", Params: core.Raw(`{}`)})
	}
	refused := func(id, want string) {
		t.Helper()
		_, err := point(robot, id)
		var f *cad.OpError
		if !errors.As(err, &f) || f.Class != cad.RoleViolation || f.Field != "agent_id" || code(err) != core.Denied || !strings.Contains(err.Error(), want) {
			t.Errorf("as %q: %v, want %q", id, err, want)
		}
	}
	refused("ann", "robot of the fleet is bound to no CAD agent; an operator binds it: cad agent bind ID --fleet robot")
	refused("", "bound to no CAD agent")
	w.bind("ann", "robot")
	for _, id := range []string{"", "ann"} {
		done, err := point(robot, id)
		expect.True(t, err == nil && done.AgentID == "ann" && done.WorkspaceID == "ws_ann", "as %q: %+v, %v", id, done, err)
	}
	refused("bob", "acts as CAD agent ann alone; leave agent_id out")
	_, err := point(robot, "nobody")
	expect.True(t, code(err) == core.NotFound, "as nobody: %v", err)
	expect.Is(t, w.events("cad.agent.refused"), 3, "refusals are audited")
	a := w.now("bob")
	expect.True(t, a.OperationCount == 0 && a.RoleViolations == 0, "what another tried counts: %+v", a)
	expect.Is(t, expect.Of(point(alice, "bob"))(t).AgentID, "bob", "an operator names any")
	_, err = point(alice, "")
	expect.True(t, code(err) == core.InvalidInput, "an operator names none: %v", err)
	w.Close()
	w.Open()
	done, err := point(robot, "")
	expect.True(t, err == nil && done.AgentID == "ann", "after a restart: %+v, %v", done, err)
	expect.Of(w.cad.ShutdownAgent(t.Context(), alice, "ann"))(t)
	refused("", "bound to no CAD agent")
	w.bind("bob", "robot") // who is terminated holds nobody
	w.sound()
}

func TestABindingIsOfOneToOneAndAPersonsToMake(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	w.agent("bob", "modeler")
	w.bind("ann", "robot")
	for name, c := range map[string]struct {
		by        core.Caller
		id, fleet string
		want      core.Code
		says      string
	}{
		"by an agent":                   {robot, "bob", "robot", core.Denied, "only a person binds"},
		"another agent of the fleet":    {alice, "ann", "claude", core.Conflict, "robot of the fleet acts as CAD agent ann; cad agent bind ann --free"},
		"another CAD agent":             {alice, "bob", "robot", core.Conflict, "robot of the fleet acts as CAD agent ann"},
		"free what is free":             {alice, "bob", "", core.Conflict, "bound to no agent of the fleet"},
		"no such CAD agent":             {alice, "nobody", "robot", core.NotFound, "nobody"},
		"a CAD agent of another tenant": {abbott, "ann", "robot", core.ErrForeign.Code, "another tenant"},
	} {
		_, err := w.cad.BindAgent(t.Context(), c.by, c.id, c.fleet)
		expect.True(t, code(err) == c.want && strings.Contains(err.Error(), c.says), "%s: %v", name, err)
	}
	a, err := w.cad.BindAgent(t.Context(), alice, "ann", "")
	expect.True(t, err == nil && a.FleetAgent == "", "%+v, %v", a, err)
	w.bind("bob", "robot")
	expect.True(t, w.events("cad.agent.bound") == 2 && w.events("cad.agent.unbound") == 1, "a binding is not audited")
	w.sound()
}

func TestATaskThatAnAgentGivesIsDoneInItsOwnName(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	w.agent("bob", "designer")
	w.bind("ann", "robot")
	w.run()
	for id, want := range map[string]cad.AssignmentStatus{"ann": cad.Completed, "bob": cad.Failed} {
		a, err := w.cad.Assign(t.Context(), robot, id, core.Raw(`{"description":"A point","operations":[{"method":"entity.create_point","params":{}}]}`))
		expect.No(t, err)
		expect.No(t, w.answer(w.question().ApprovalID, judge.Answer{Approve: true}))
		w.await("its end", func() bool {
			a, err = w.cad.Assignment(t.Context(), home, a.SwarmTask)
			return err == nil && a.Over()
		})
		expect.Is(t, a.Status, want, "as", id, a.Result)
	}
	expect.Is(t, w.now("bob").OperationCount, 0, "bob worked at another's word")
	w.sound()
}
