package cad

import (
	"context"
	"errors"
	"maps"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
)

// auditedScenario is what the audit log says about a scenario.
type auditedScenario struct {
	Digest string `json:"digest"`
}

func (s *Scenario) audited() auditedScenario {
	c := *s
	c.AuditSeq = 0
	digest, err := core.Digest(c)
	if err != nil {
		digest = "none: " + err.Error() // its numbers can't be canonical; the record says so
	}
	return auditedScenario{digest}
}

// Scenarios are those of a tenant: the built-in ones, then its own, by name.
func (c *Controller) Scenarios(ctx context.Context, tenant string) ([]Scenario, error) {
	var all []Scenario
	for _, name := range slices.Sorted(maps.Keys(c.work.scenarios)) {
		all = append(all, c.work.scenarios[name])
	}
	err := c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return each(tx, bScenario, nil, func(s *Scenario) { all = append(all, *s) })
	})
	return all, explain("list the scenarios", err)
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
	s.Builtin, action = false, "created"
	err = c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		var was Scenario
		there, err := fetch(tx, bScenario, []byte(s.Name), &was)
		if err != nil {
			return err
		}
		s.AuditSeq = was.AuditSeq
		if there {
			action = "changed"
			if was.audited() == s.audited() {
				action = "unchanged"
				return errSame
			}
		}
		if s.AuditSeq, err = tx.Record(audit.Entry{
			Type: "cad.scenario." + action, Subject: "cad.scenario", ID: s.Name, State: s.audited(), Prev: was.AuditSeq,
		}); err != nil {
			return err
		}
		kept := s
		tx.Changed("cad.scenario", s.Name, &kept)
		return put(tx, bScenario, []byte(s.Name), &kept)
	})
	if errors.Is(err, errSame) {
		err = nil
	}
	return s, action, explain("keep scenario "+s.Name, err)
}
