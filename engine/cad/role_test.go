package cad_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestTheBuiltInRolesAreThoseOfTheContract(t *testing.T) {
	w := newWorld(t)
	all := []string{"entity.list", "entity.query", "workspace.list", "agent.metrics"}
	flat := []string{"entity.create_point", "entity.create_line", "entity.create_circle"}
	want := map[string][]string{
		"designer":          append(slices.Clone(flat), "entity.create_arc"),
		"modeler":           append(slices.Clone(flat), "solid.extrude", "solid.revolve", "solid.boolean", "file.export"),
		"constraint_solver": {"constraint.apply", "constraint.status"},
		"validator":         {"constraint.status", "measure.mass", "measure.interference", "measure.bbox", "measure.distance"},
		"optimizer":         append(slices.Clone(flat), "solid.extrude", "solid.boolean", "file.export"),
		"integrator":        {"workspace.create", "workspace.merge", "workspace.resolve_conflict", "file.import", "file.export", "measure.interference"},
	}
	roles := w.cad.Roles(home)
	expect.Must(t, len(roles) == len(want), "%d roles", len(roles))
	for _, r := range roles {
		expected := append(slices.Clone(want[r.Name]), all...)
		got := slices.Clone(r.AllowedOperations)
		slices.Sort(expected)
		slices.Sort(got)
		expect.True(t, slices.Equal(got, expected) && r.Builtin && r.Description != "" && len(r.ExampleTasks) != 0 && len(r.ForbiddenOperations) != 0,
			"%s allows %v", r.Name, got)
		for _, m := range cad.MethodNames() {
			parent := slices.ContainsFunc(r.AllowedOperations, func(a string) bool { return strings.HasPrefix(m, a+".") })
			expect.Is(t, r.Allows(m), slices.Contains(r.AllowedOperations, m) || parent, r.Name, "Allows", m)
		}
	}
}

func TestWhatIsNoRoleIsRefusedByField(t *testing.T) {
	w := newWorld(t)
	good := func() cad.RoleTemplate {
		return cad.RoleTemplate{
			Name: "drafter", Description: "Draws.", AllowedOperations: []string{"entity.create.point", "solid.boolean.union"},
			ForbiddenOperations: []string{"file.delete"}, ExampleTasks: []string{"Draw a plate"},
		}
	}
	for field, spoil := range map[string]func(*cad.RoleTemplate){
		"name":                    func(r *cad.RoleTemplate) { r.Name = "two words" },
		"description":             func(r *cad.RoleTemplate) { r.Description = " " },
		"example_tasks":           func(r *cad.RoleTemplate) { r.ExampleTasks = nil },
		"example_tasks[0]":        func(r *cad.RoleTemplate) { r.ExampleTasks = []string{""} },
		"allowed_operations":      func(r *cad.RoleTemplate) { r.AllowedOperations = nil },
		"allowed_operations[0]":   func(r *cad.RoleTemplate) { r.AllowedOperations = []string{"solid.loft"} },
		"allowed_operations[1]":   func(r *cad.RoleTemplate) { r.AllowedOperations = []string{"entity.list", "entity.list"} },
		"forbidden_operations[0]": func(r *cad.RoleTemplate) { r.ForbiddenOperations = []string{"entity.create_point"} },
		"forbidden_operations[1]": func(r *cad.RoleTemplate) { r.ForbiddenOperations = []string{"file.delete", "nothing"} },
	} {
		r := good()
		spoil(&r)
		_, _, err := w.cad.PutRole(t.Context(), alice, r)
		expect.True(t, errors.Is(err, core.Kind(core.InvalidInput)) && core.AsError(err).Details["field"] == field,
			"%s: %v %v", field, err, core.AsError(err).Details)
	}
	for _, want := range []string{"created", "unchanged"} {
		r, action, err := w.cad.PutRole(t.Context(), alice, good())
		if err != nil || action != want || !r.Allows("entity.create_point") || !r.Allows("solid.boolean.union") || r.Allows("solid.boolean") || r.Allows("solid.boolean.subtract") {
			t.Errorf("%s %+v, %v", action, r, err)
		}
	}
	if _, _, err := w.cad.PutRole(t.Context(), alice, cad.RoleTemplate{
		Name: "designer", Description: "x", AllowedOperations: []string{"entity.list"}, ExampleTasks: []string{"x"},
	}); code(err) != core.Conflict {
		t.Errorf("a built-in role was changed: %v", err)
	}
	w.again()
	r, err := w.cad.Role(home, "drafter")
	expect.True(t, err == nil && slices.Equal(r.AllowedOperations, []string{"entity.create_point", "solid.boolean.union"}), "after a restart: %+v, %v", r, err)
	expect.Is(t, code(expect.Fault(w.cad.Role(abroad, "drafter"))), core.InvalidInput, "another tenant has it")
	w.sound()
}

func TestOnlyWhatARoleAllowsIsCarriedOut(t *testing.T) {
	w := newWorld(t)
	for _, r := range w.cad.Roles(home) {
		w.agent(r.Name, r.Name)
		for _, m := range append(cad.MethodNames(), "solid.loft", "entity.create.solid", "", "SOLID.EXTRUDE", "entity.list ") {
			before := len(w.pool.calls)
			_, err := w.try(r.Name, m, `{}`)
			allowed := r.Allows(m)
			refused := class(err) == cad.RoleViolation
			expect.True(t, refused != allowed && (!refused || code(err) == core.Denied && len(w.pool.calls) == before), "%s %q: %v", r.Name, m, err)
		}
	}
	w.sound()
}

func TestViolationsAreCountedAndSeen(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	for range 3 {
		_, err := w.try("ann", "solid.extrude", `{}`)
		expect.Must(t, class(err) == cad.RoleViolation && strings.Contains(err.Error(), "the role forbids it"), "%v", err)
	}
	_, err := w.try("ann", "solid.mirror", `{}`)
	e := core.AsError(err)
	expect.True(t, e.Details["error_code"] == "ROLE_VIOLATION" && strings.Contains(e.Message, "neither list"), "%v %v", e, e.Details)
	a := w.now("ann")
	if a.RoleViolations != 4 || a.ViolationsInRow != 4 || a.OperationCount != 4 || a.ErrorCount != 4 || a.Status != cad.Idle || len(a.ErrorLog) != 4 || w.events("cad.role_violation") != 4 {
		t.Errorf("%+v", a)
	}
	w.do("ann", "entity.create_point", `{}`)
	a = w.now("ann")
	expect.True(t, a.ViolationsInRow == 0 && a.RoleViolations == 4 && a.SuccessCount == 1, "%+v", a)
	w.sound()
}

func TestARoleThatChangesBindsItsAgentsAtOnce(t *testing.T) {
	w := newWorld(t)
	role := cad.RoleTemplate{Name: "drafter", Description: "Draws.", AllowedOperations: []string{"entity.create_point"}, ExampleTasks: []string{"x"}}
	_, _, err := w.cad.PutRole(t.Context(), alice, role)
	expect.No(t, err)
	w.agent("ann", "drafter")
	w.do("ann", "entity.create_point", `{}`)
	role.AllowedOperations = []string{"entity.list"}
	_, action, err := w.cad.PutRole(context.Background(), alice, role)
	expect.Must(t, err == nil && action == "changed", "%v %v", action, err)
	expect.Is(t, class(expect.Fault(w.try("ann", "entity.create_point", `{}`))), cad.RoleViolation)
}
