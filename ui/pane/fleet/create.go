package fleet

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
)

// Do implements pane.Pane: "create" asks for a new agent, once it is known
// what there is to choose from.
func (p *List) Do(env pane.Env, action string) (tea.Cmd, bool) {
	if action != "create" {
		return p.Table.Do(env, action)
	}
	of, tenant := p.agents, env.Tenant
	return p.choices.Read(tenant, func(ctx context.Context) (c choices, err error) {
		c.Runtimes = of.Runtimes()
		if c.Projects, err = of.Projects(ctx, tenant); err != nil {
			return c, err
		}
		c.Roles, err = of.Roles(ctx, tenant, "")
		return c, err
	}), true
}

// choices are what a new agent may be made of. An exec project may be any
// other as well; one that a server keeps may not.
type choices struct {
	Runtimes []string
	Projects []fleet.Project
	Roles    []fleet.Role
}

// created is the object of the form.
type created struct {
	Name    string   `json:"name"`
	Runtime string   `json:"runtime"`
	Project string   `json:"project"`
	Role    string   `json:"role"`
	From    bool     `json:"from"`
	Times   int      `json:"times"`
	Task    string   `json:"task"`
	Command string   `json:"command"`
	Dir     string   `json:"dir"`
	Profile string   `json:"profile"`
	Sure    bool     `json:"sure"`
	Options core.Raw `json:"options"`
}

// createForm asks for what `agent create` takes.
func createForm(c *choices) pane.Fill {
	projects, roles := core.Map(c.Projects, func(p fleet.Project) string { return p.Name }), []string(nil)
	for _, r := range c.Roles {
		if !slices.Contains(roles, r.Name) {
			roles = append(roles, r.Name)
		}
	}
	kinds := core.Map(c.Runtimes, func(name string) core.Raw { return core.MustEncode(name) })
	runtime := overlay.Field{Name: "runtime", Type: overlay.EnumField, Enum: kinds, Required: true, Description: "what keeps it: exec a local command, acp an agent of the Agent Client Protocol, others a server"}
	if i := slices.Index(c.Runtimes, "exec"); i >= 0 {
		runtime.Default = kinds[i]
	}
	no := core.Raw("false")
	return pane.Fill{
		Title: "new agent",
		Fields: []overlay.Field{
			{Name: "name", Type: overlay.StringField, Required: true, Description: "1-20 of a-z A-Z 0-9 -"},
			{Name: "project", Type: overlay.StringField, Required: true, Suggest: projects, Description: known(projects, "a name of its own")},
			runtime,
			{Name: "command", Type: overlay.StringField, Description: "exec and acp: the program with its arguments, quoted as in a shell"},
			{Name: "dir", Type: overlay.StringField, Empty: "the engine's directory", Description: "where it works"},
			{Name: "role", Type: overlay.StringField, Section: "What it is for", Suggest: roles, Empty: "coder", Description: roleHelp(c)},
			{Name: "from", Type: overlay.BooleanField, Default: no, Description: "yes makes it as the role says: command, prompt, profile, tools, budget"},
			{Name: "task", Type: overlay.StringField, Empty: "none: it waits", Description: "its first task"},
			{Name: "times", Type: overlay.IntegerField, Empty: "one", Description: "2-20 make so many that try the same task, NAME-1 and on, each with a tree"},
			{
				Name: "profile", Type: overlay.EnumField, Enum: []core.Raw{core.MustEncode("reader"), core.MustEncode("worker"), core.MustEncode("open")},
				Section: "What it may do", Empty: "worker, or the role's",
				Description: "what its processes reach: a reader looks; a worker writes its directory only; open is all that you reach",
				Dangers:     map[string]string{"open": "OPEN: it " + pane.OpenMeans + ". Nothing holds it back."},
			},
			{Name: "sure", Type: overlay.BooleanField, Default: no, Description: "yes makes an open agent; others need nothing here"},
			{Name: "options", Type: overlay.JSONField, Empty: "none", Description: `what its runtime alone understands, such as {"mode":"ask"}`},
		},
		Check: checkOpen,
		Line:  createLine,
	}
}

// known says what there is already.
func known(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return "known: " + strings.Join(names, ", ")
}

// roleHelp names the roles of each project.
func roleHelp(c *choices) string {
	var parts []string
	for _, p := range c.Projects {
		var roles []string
		for _, r := range c.Roles {
			if r.ProjectName == p.Name {
				roles = append(roles, r.Name)
			}
		}
		if len(roles) > 0 {
			parts = append(parts, p.Name+": "+strings.Join(roles, ", "))
		}
	}
	if len(parts) == 0 {
		return "any word"
	}
	return strings.Join(parts, "; ")
}

// checkOpen wants a second word for an open agent.
func checkOpen(object core.Raw) error {
	var in created
	if err := json.Unmarshal(object, &in); err != nil || in.Profile != "open" || in.Sure {
		return nil
	}
	return core.Errorf(core.InvalidInput, "an open agent %s: choose yes, or another profile", pane.OpenMeans).With("field", "sure")
}

// createLine is the command of a filled form.
func createLine(object core.Raw) []string {
	var in created
	if err := json.Unmarshal(object, &in); err != nil {
		return []string{"agent", "create"} // which says what is missing
	}
	line := []string{"agent", "create", in.Name}
	from := ""
	if in.From {
		from, in.Role = cmp.Or(in.Role, "coder"), ""
		if in.Command == "" {
			in.Runtime = "" // the role's
		}
	}
	times := ""
	if in.Times > 0 {
		times = strconv.Itoa(in.Times)
	}
	for _, f := range []struct{ flag, value string }{
		{"project", in.Project},
		{"runtime", in.Runtime},
		{"role", in.Role},
		{"from", from},
		{"times", times},
		{"task", in.Task},
		{"command", in.Command},
		{"dir", in.Dir},
		{"profile", in.Profile},
		{"options", string(in.Options)},
	} {
		if f.value != "" {
			line = append(line, "--"+f.flag+"="+f.value)
		}
	}
	if in.Profile == "open" && in.Sure {
		line = append(line, "--yes")
	}
	return line
}
