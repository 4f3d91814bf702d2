package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/swarm"
	"swarmdeck/expect"
)

func TestCreateRefusesWhatTheSeedForbids(t *testing.T) {
	w := newWorld(t)
	good := fleet.Create{Name: "Sony", Project: "Setup", Role: "coder", Command: []string{"x"}}
	expect.Of(w.fleet.Create(t.Context(), alice, good))(t)
	for name, c := range map[string]struct {
		change func(*fleet.Create)
		code   core.Code
		detail string
		value  string
	}{
		"no name":           {func(c *fleet.Create) { c.Name = "" }, core.InvalidInput, "field", "name"},
		"21 characters":     {func(c *fleet.Create) { c.Name = strings.Repeat("a", 21) }, core.InvalidInput, "field", "name"},
		"underscore":        {func(c *fleet.Create) { c.Name = "a_b" }, core.InvalidInput, "field", "name"},
		"newline at end":    {func(c *fleet.Create) { c.Name = "a\n" }, core.InvalidInput, "field", "name"},
		"escape":            {func(c *fleet.Create) { c.Name = "\x1b[31m" }, core.InvalidInput, "field", "name"},
		"other letters":     {func(c *fleet.Create) { c.Name = "ágent" }, core.InvalidInput, "field", "name"},
		"the engine's own":  {func(c *fleet.Create) { c.Name = "system" }, core.InvalidInput, "field", "name"},
		"everybody's":       {func(c *fleet.Create) { c.Name = "broadcast" }, core.InvalidInput, "field", "name"},
		"taken":             {func(c *fleet.Create) { c.Name = "Sony" }, core.Conflict, "error", "AgentAlreadyExistsError"},
		"no project":        {func(c *fleet.Create) { c.Project = "" }, core.InvalidInput, "field", "project"},
		"long project":      {func(c *fleet.Create) { c.Project = strings.Repeat("p", 65) }, core.InvalidInput, "field", "project"},
		"hostile role":      {func(c *fleet.Create) { c.Role = "a\u202Eb" }, core.InvalidInput, "field", "role"},
		"zero byte in role": {func(c *fleet.Create) { c.Role = "a\x00b" }, core.InvalidInput, "field", "role"},
		"blank task":        {func(c *fleet.Create) { c.Task = " \n\t" }, core.InvalidInput, "field", "message"},
		"unknown runtime":   {func(c *fleet.Create) { c.Runtime = "mars" }, core.InvalidInput, "field", "runtime"},
		"options, a list":   {func(c *fleet.Create) { c.Options = core.Raw(`[1]`) }, core.InvalidInput, "field", "options"},
		"options, broken":   {func(c *fleet.Create) { c.Options = core.Raw(`{"a":`) }, core.InvalidInput, "field", "options"},
		"options, huge": {func(c *fleet.Create) {
			c.Options = core.MustEncode(map[string]string{"a": strings.Repeat("x", 65<<10)})
		}, core.InvalidInput, "field", "options"},
		"runtime's refusal": {func(c *fleet.Create) { c.Command = nil }, core.InvalidInput, "field", "command"},
	} {
		t.Run(name, func(t *testing.T) {
			in := good
			in.Name = "other"
			c.change(&in)
			_, err := w.fleet.Create(t.Context(), alice, in)
			refused(t, err, c.code, c.detail, c.value)
		})
	}
	expect.Is(t, len(w.fleet.Live(home)), 1, "agents after refusals")
	w.consistent()
}

func TestAgentHasTheSeedsFields(t *testing.T) {
	w := newWorld(t)
	a := expect.Of(w.fleet.Create(t.Context(), alice, fleet.Create{Name: "Papi", Project: "DataOne", Command: []string{"x"}, Dir: "/tmp"}))(t)
	expect.True(t, a.Status == fleet.Starting && a.Role == "coder" && a.TenantID == home && a.Runtime == "exec", "defaults: %+v", a)
	expect.True(t, len(a.WorkspaceID) == 36 && !a.UpdatedAt.Before(a.CreatedAt) && !a.CreatedAt.IsZero(),
		"workspace %q, created %v, updated %v", a.WorkspaceID, a.CreatedAt, a.UpdatedAt)
	projects, err := w.fleet.Projects(t.Context(), home)
	expect.Must(t, err == nil && len(projects) == 1 && projects[0].Name == "DataOne", "projects: %+v, %v", projects, err)
	roles, err := w.fleet.Roles(t.Context(), home, "DataOne")
	expect.Must(t, err == nil && len(roles) == 1 && roles[0].Name == "coder" && roles[0].ProjectID == projects[0].ID, "roles: %+v, %v", roles, err)
	_, err = w.fleet.Roles(t.Context(), home, "Nowhere")
	refused(t, err, core.NotFound, "field", "project")
}

func TestIdsStayTheSameWhenAnAgentIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	c := fleet.Create{Name: "a", Project: "P", Role: "r", Command: []string{"x"}, Dir: "/tmp"}
	first := expect.Of(w.fleet.Create(t.Context(), alice, c))(t)
	before, _ := w.fleet.Roles(t.Context(), home, "P")
	expect.No(t, w.fleet.Delete(t.Context(), alice, "a"))
	second := expect.Of(w.fleet.Create(t.Context(), alice, c))(t)
	after, _ := w.fleet.Roles(t.Context(), home, "P")
	expect.True(t, first.WorkspaceID == second.WorkspaceID && len(after) == 1 && before[0] == after[0],
		"ids changed: %+v %+v; %+v %+v", first, second, before, after)
	w.consistent()
}

func TestUnknownAgentIsNotFoundEverywhere(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for name, op := range w.operations("nobody") {
		t.Run(name, func(t *testing.T) {
			refused(t, op(), core.NotFound, "value", "nobody")
		})
	}
	for name, op := range w.operations("no_body") {
		t.Run("malformed/"+name, func(t *testing.T) {
			refused(t, op(), core.InvalidInput, "", "")
		})
	}
	_, err := w.swarm.Dispatch(ctx, alice, swarm.Dispatch{Kind: fleet.KindPrompt, Input: core.Raw(`{"agent":"nobody","message":"x"}`)})
	refused(t, err, core.NotFound, "value", "nobody")
}

// operations are all that name an agent.
func (w *world) operations(name string) map[string]func() error {
	ctx, f := w.T.Context(), w.fleet
	return map[string]func() error{
		"show":    func() error { _, err := f.Agent(ctx, home, name); return err },
		"start":   func() error { _, err := f.Start(ctx, alice, name); return err },
		"stop":    func() error { _, err := f.Stop(ctx, alice, name); return err },
		"restart": func() error { _, err := f.Restart(ctx, alice, name); return err },
		"pause":   func() error { _, err := f.Pause(ctx, alice, name); return err },
		"resume":  func() error { _, err := f.Resume(ctx, alice, name); return err },
		"delete":  func() error { return f.Delete(ctx, alice, name) },
		"assign":  func() error { _, err := f.Assign(ctx, alice, name, "x", ""); return err },
		"cancel":  func() error { _, err := f.CancelTask(ctx, alice, name); return err },
		"history": func() error { _, err := f.History(ctx, home, name, core.Filter{}); return err },
		"log":     func() error { _, err := f.Log(ctx, home, name, core.Filter{}); return err },
		"update": func() error {
			_, err := f.Update(ctx, alice, name, fleet.Create{Project: "p", Command: []string{"x"}})
			return err
		},
	}
}

func TestAnotherTenantsAgentIsRefusedAndAudited(t *testing.T) {
	w := newWorld(t)
	away := alice
	away.Tenant = "t_away"
	expect.Of(w.swarm.CreateTenant(t.Context(), alice, away.Tenant))(t)
	c := fleet.Create{Name: "spy", Project: "P", Command: []string{"x"}}
	expect.Of(w.fleet.Create(t.Context(), away, c))(t)
	before := len(w.events("tenant.violation"))
	n := 0
	for name, op := range w.operations("spy") {
		expect.Err(t, op(), core.ErrForeign, name)
		n++
	}
	expect.Is(t, len(w.events("tenant.violation"))-before, n)
	// Names are unique in a tenant, not across: home may have a spy of its own.
	expect.Of(w.fleet.Create(t.Context(), alice, c))(t)
	expect.Is(t, w.agent("spy").TenantID, home, "got the agent of")
	w.consistent()
}

func TestListFiltersAndPages(t *testing.T) {
	w := newWorld(t)
	for i := range 25 {
		c := fleet.Create{Name: fmt.Sprintf("agent-%02d", i), Project: "P", Role: []string{"coder", "tester"}[i%2], Command: []string{"x"}}
		expect.Of(w.fleet.Create(t.Context(), alice, c))(t)
	}
	list := func(q core.Filter) core.Page[fleet.Agent] {
		t.Helper()
		return expect.Of(w.fleet.Agents(t.Context(), home, q))(t)
	}
	p := list(core.Filter{})
	expect.True(t, len(p.Items) == 20 && p.Info.Total == 25 && p.Info.Next && p.Items[0].Name == "agent-24", "first page: %+v", p.Info)
	p = list(core.Filter{Page: 2})
	expect.True(t, len(p.Items) == 5 && !p.Info.Next && p.Info.Previous && p.Items[4].Name == "agent-00", "second page: %+v", p.Info)
	p = list(core.Filter{Page: 9})
	expect.True(t, len(p.Items) == 0 && p.Info.Total == 25, "past the end: %+v", p)
	p = list(core.Filter{Match: "TESTER"})
	expect.True(t, p.Info.Total == 12, "match: %+v", p.Info)
	p = list(core.Filter{Status: "starting", Agent: "agent-03"})
	expect.True(t, p.Info.Total == 1, "status and name: %+v", p.Info)
	_, err := w.fleet.Agents(t.Context(), home, core.Filter{Status: "sleeping"})
	refused(t, err, core.InvalidInput, "field", "status")
	_, err = w.fleet.Agents(t.Context(), home, core.Filter{Size: 101})
	refused(t, err, core.InvalidInput, "field", "page_size")
}
