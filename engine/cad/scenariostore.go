package cad

import (
	"context"
	"maps"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/record"
)

func (c *Controller) scenarioKind() record.Kind[Scenario] {
	return record.Kind[Scenario]{
		Noun: "cad.scenario", Bucket: "cad.scenario", Ledger: c.ledger,
		ID:   func(s *Scenario) string { return s.Name },
		Head: func(s *Scenario) record.Head { return record.Head{Seq: &s.AuditSeq} },
	}
}

// Scenarios are those of a tenant: the built-in ones, then its own, by name.
func (c *Controller) Scenarios(ctx context.Context, tenant string) ([]Scenario, error) {
	var all []Scenario
	for _, name := range slices.Sorted(maps.Keys(c.work.scenarios)) {
		all = append(all, c.work.scenarios[name])
	}
	own, err := c.kinds.scenario.List(ctx, tenant)
	return append(all, own...), explain("list the scenarios", err)
}

// Scenario is one of a tenant's scenarios.
func (c *Controller) Scenario(tenant, name string) (Scenario, error) {
	all, err := c.Scenarios(context.Background(), tenant)
	if err != nil {
		return Scenario{}, err
	}
	names := make([]string, len(all))
	for i, s := range all {
		if names[i] = s.Name; s.Name == name {
			return s, nil
		}
	}
	return Scenario{}, core.Invalid("scenario", name, listed(names))
}

// CheckScenario reports to r everything that is wrong with a scenario of a file.
// roles are those of the file, which count beside the tenant's.
func (c *Controller) CheckScenario(tenant string, r *document.Reader, w *WrittenScenario, roles []RoleTemplate) {
	s, flaws := w.Scenario.check(finderOf(append(slices.Clone(roles), c.Roles(tenant)...)))
	if _, builtin := c.work.scenarios[s.Name]; builtin {
		flaws = append(flaws, flaw{"scenario_name", builtinScenario(s.Name)})
	}
	w.report(r, flaws)
}

func builtinScenario(name string) error {
	return core.Errorf(core.Conflict, "scenario %s: the program has one of this name, which stays as it is", name).With("field", "scenario_name").With("value", name)
}

// PutScenario makes a scenario of the tenant's own as it is given and says what
// that did: created, changed or unchanged. Runs that are under way go on as they
// began.
func (c *Controller) PutScenario(ctx context.Context, by core.Caller, s Scenario) (_ Scenario, action string, err error) {
	s, flaws := s.check(finderOf(c.Roles(by.Tenant)))
	if err := checkFlaws(flaws); err != nil {
		return s, "", err
	}
	if _, builtin := c.work.scenarios[s.Name]; builtin {
		return s, "", builtinScenario(s.Name)
	}
	s.Builtin = false
	err = c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		action, err = c.kinds.scenario.Put(tx, record.Event{}, &s, nil)
		return err
	})
	return s, action, explain("keep scenario "+s.Name, err)
}
