package cad

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/record"
)

//go:embed scenarios/*.yaml
var scenarioFiles embed.FS

// builtinScenarios are those that every tenant has, by name, read when they are first
// needed.
var builtinScenarios = sync.OnceValues(func() (map[string]Scenario, error) {
	roles, err := builtinRoles()
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(scenarioFiles, "scenarios/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the built-in scenarios: %w", err)
	}
	all := map[string]Scenario{}
	for _, name := range files {
		data, err := scenarioFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the built-in scenarios: %w", err)
		}
		s, err := parseScenario(name, data, finderOf(roles))
		if err != nil {
			return nil, fmt.Errorf("read the built-in scenarios: %w", err)
		}
		s.Builtin = true
		all[s.Name] = s
	}
	return all, nil
})

// parseScenario reads a file that is one scenario: YAML, or JSON by its name.
// The error lists every mistake with its line.
func parseScenario(name string, data []byte, role roleFinder) (Scenario, error) {
	r := document.NewReader(name)
	root, ok := r.Parse(data, maxScenario)
	if !ok {
		return Scenario{}, r.Err()
	}
	w := ReadScenario(r, root)
	if err := r.Err(); err != nil {
		return Scenario{}, err
	}
	s, found := w.Scenario.check(role)
	w.report(r, found)
	return s, r.Err()
}

// WrittenScenario is a scenario of a file and where it stands there.
type WrittenScenario struct {
	Scenario
	at document.Value
}

// Line is where it stands in its file.
func (w *WrittenScenario) Line() int { return w.at.Line() }

// report tells problems at the lines that they are about.
func (w *WrittenScenario) report(r *document.Reader, found problems) {
	for _, f := range found {
		at := w.at.Find(strings.FieldsFunc(f.field, func(c rune) bool { return strings.ContainsRune(".[]", c) })...)
		e := core.AsError(f.err)
		p := document.Problem{Line: at.Line(), Field: f.field, Message: strings.TrimPrefix(e.Message, f.field+": ")}
		if under := w.at.Path(); under != "" {
			p.Field = under + "." + p.Field
		}
		p.Value, _ = e.Details["value"].(string)
		p.Allowed, _ = e.Details["allowed"].(string)
		r.Add(p)
	}
}

// ReadScenario reads a scenario of a file, as it is written. Whether it can be
// run is CheckScenario's to say.
func ReadScenario(r *document.Reader, v document.Value) WrittenScenario {
	w := WrittenScenario{at: v}
	r.Fill(v, &w.Scenario)
	return w
}

// override gives agents of a scenario other roles, each AGENT=ROLE, and checks
// it anew.
func (s Scenario) override(pairs []string, role roleFinder) (Scenario, error) {
	s.Agents = slices.Clone(s.Agents)
	for _, pair := range pairs {
		agent, name, ok := strings.Cut(pair, "=")
		seat := s.seat(agent)
		if !ok || seat == nil || role(name) == nil {
			agents := namesOf(s.Agents, func(a Seat) string { return a.AgentID })
			return s, core.Invalid("override", pair, "AGENT=ROLE, with one of the agents "+listed(agents)+" and a role as cad roles lists them")
		}
		seat.RoleName = name
	}
	s, found := s.check(role)
	return s, found.err()
}

// Scenarios are those of a tenant: the built-in ones, then its own, by name.
func (c *Controller) Scenarios(ctx context.Context, tenant string) ([]Scenario, error) {
	builtin, err := builtinScenarios()
	if err != nil {
		return nil, err
	}
	own, err := record.Values(c.kinds.scenario.List(ctx, tenant))
	return append(core.Sorted(builtin), own...), audit.Explain("list the scenarios", err)
}

// Scenario is one of a tenant's scenarios.
func (c *Controller) Scenario(tenant, name string) (Scenario, error) {
	all, err := c.Scenarios(context.Background(), tenant)
	if err != nil {
		return Scenario{}, err
	}
	if s := first(all, func(s *Scenario) bool { return s.Name == name }); s != nil {
		return *s, nil
	}
	return Scenario{}, core.Invalid("scenario", name, listed(namesOf(all, func(s Scenario) string { return s.Name })))
}

// CheckScenario reports to r everything that is wrong with a scenario of a file.
// roles are those of the file, which count beside the tenant's.
func (c *Controller) CheckScenario(tenant string, r *document.Reader, w *WrittenScenario, roles []RoleTemplate) {
	s, found := w.Scenario.check(finderOf(append(slices.Clone(roles), c.Roles(tenant)...)))
	found.note("scenario_name", notBuiltin(s.Name))
	w.report(r, found)
}

// notBuiltin reports a name that a scenario of the program has.
func notBuiltin(name string) error {
	all, err := builtinScenarios()
	if _, builtin := all[name]; !builtin {
		return err
	}
	return core.Errorf(core.Conflict, "scenario %s: the program has one of this name, which stays as it is", name).With("field", "scenario_name").With("value", name)
}

// PutScenario makes a scenario of the tenant's own as it is given and says what
// that did: created, changed or unchanged. Runs that are under way go on as they
// began.
func (c *Controller) PutScenario(ctx context.Context, by core.Caller, s Scenario) (_ Scenario, action string, err error) {
	s, found := s.check(finderOf(c.Roles(by.Tenant)))
	if err := cmp.Or(found.err(), notBuiltin(s.Name)); err != nil {
		return s, "", err
	}
	s.Builtin = false
	err = c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		action, err = c.kinds.scenario.Put(tx, record.Event{}, &s, nil)
		return err
	})
	return s, action, audit.Explain("keep scenario "+s.Name, err)
}
