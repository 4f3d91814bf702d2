package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
)

func (t *tree) cadAgents() *cobra.Command {
	return t.group("agent", "Who models: one agent, one role, one workspace",
		t.cadAgentCreate(),
		lists(t, spec{
			use: "list", short: "List the CAD agents, newest first; --kind is a role", effect: Reads,
		}, core.Strings(cad.Statuses()...), cadAgentColumns, func(c *call, f core.Filter) (core.Page[cad.Agent], error) {
			return c.eng.CAD.Agents(c.ctx, c.by.Tenant, f)
		}),
		t.command(spec{
			use: "show ID", short: "Show a CAD agent with what it made and what failed", effect: Reads, args: []string{"cadagent"},
			run: shows(func(c *call, id string) (cad.Agent, error) { return c.eng.CAD.Agent(c.ctx, c.by.Tenant, id) }),
		}),
		t.command(spec{
			use: "shutdown ID", short: "End a CAD agent for good; what it made stays", effect: Destroys, confirm: ConfirmAsk, args: []string{"cadagent"},
			run: changes(cadAgentColumns, func(c *call, id string) (cad.Agent, error) { return c.eng.CAD.ShutdownAgent(c.ctx, c.by, id) }),
		}),
	)
}

func (t *tree) cadAgentCreate() *cobra.Command {
	var w cad.CreateAgent
	var kernel string
	var there bool
	return t.command(spec{
		use: "create ID --role R", short: "Make a CAD agent of a role, with a workspace", effect: Writes,
		long: "Make a CAD agent of a role. It works in its workspace, which is made along with it if there is none of that name,\n" +
			"empty and on the kernel given.",
		example: "cad agent create housing_designer --role modeler --workspace ws_housing",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&w.RoleName, "role", "", "what it may do: `ROLE`, as cad roles lists them")
			f.StringVar(&w.WorkspaceID, "workspace", "", "where it works: `ID` (default ws_ and its own)")
			f.StringVar(&kernel, "kernel", "", "what models the solids of a new workspace: `KERNEL` embedded or occt")
			f.BoolVar(&there, "existing", false, "refuse a workspace that is not there instead of making it")
			source(f, "role", "cadrole")
			source(f, "workspace", "workspace")
			source(f, "kernel", "enum:embedded,occt")
		},
		anyArg: true,
		check: func(c *call, args []string) error {
			if err := oneArg(c, args, "ID"); err != nil {
				return err
			}
			if w.RoleName == "" {
				return usage("role", "--role is missing; cad roles lists them")
			}
			w.AgentID = args[0]
			if w.WorkspaceID == "" {
				w.WorkspaceID = "ws_" + w.AgentID
			}
			w.Workspace = nil
			if !there {
				w.Workspace = &cad.CreateWorkspace{Kernel: kernel}
			} else if kernel != "" {
				return usage("kernel", "--kernel is of a new workspace; it goes without --existing")
			}
			return nil
		},
		run: func(c *call, _ []string) error {
			made, err := c.eng.CAD.CreateAgent(c.ctx, c.by, w)
			if err != nil {
				return err
			}
			return record(c, made, cadAgentColumns(c))
		},
	})
}

// oneArg wants just one argument, for a command whose use shows a flag.
func oneArg(c *call, args []string, name string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return usage(strings.ToLower(name), "%s: %s is missing; usage: %s", commandPath(c.cmd), name, c.cmd.UseLine())
	}
	return usage("args", "%s: unexpected argument %q; usage: %s", commandPath(c.cmd), core.Clip(args[1]), c.cmd.UseLine())
}

func cadAgentColumns(c *call) []column[cad.Agent] {
	type A = cad.Agent
	return []column[A]{
		{title: "AGENT", text: func(a A) string { return a.AgentID }},
		{title: "ROLE", text: func(a A) string { return a.Role }},
		{title: "STATUS", text: func(a A) string {
			if a.Status == cad.Terminated {
				return string(a.Status)
			}
			return a.Shown()
		}},
		{title: "WORKSPACE", text: func(a A) string { return a.WorkspaceID }},
		{title: "OPERATIONS", right: true, text: func(a A) string { return count(int64(a.OperationCount)) }},
		{title: "FAILED", right: true, text: func(a A) string { return count(int64(a.ErrorCount)) }},
		{title: "VIOLATIONS", right: true, text: violations},
		{title: "ACTIVE", right: true, text: func(a A) string { return c.age(a.LastActive.Time()) }},
		{title: "NOW", wide: true, text: func(a A) string { return a.Operation }},
		{title: "MADE", wide: true, right: true, text: func(a A) string { return count(int64(a.CreatedCount)) }},
		{title: "TASK", wide: true, text: func(a A) string { return a.TaskID }},
		{title: "APPROVAL", wide: true, text: func(a A) string { return a.Waiting }},
		{title: "CREATED", wide: true, text: func(a A) string { return stamp(a.CreatedAt.Time()) }},
		{title: "LAST ERROR", most: 48, text: func(a A) string {
			if len(a.ErrorLog) == 0 {
				return ""
			}
			return a.ErrorLog[len(a.ErrorLog)-1]
		}},
	}
}

// violations counts what an agent's role did not allow, and says when it keeps
// trying.
func violations(a cad.Agent) string {
	if a.ViolationsInRow >= cad.Stubborn {
		return fmt.Sprintf("%d, %d in a row", a.RoleViolations, a.ViolationsInRow)
	}
	return count(int64(a.RoleViolations))
}

func (t *tree) cadRoles() *cobra.Command {
	return t.command(spec{
		use: "roles [NAME]", short: "List what CAD agents may do by role, or show one role", effect: Reads, args: []string{"cadrole"},
		run: func(c *call, args []string) error {
			if len(args) == 1 {
				role, err := c.eng.CAD.Role(c.by.Tenant, args[0])
				if err != nil {
					return err
				}
				return c.show(role)
			}
			return list(c, core.Page[cad.RoleTemplate]{Items: c.eng.CAD.Roles(c.by.Tenant)}, []column[cad.RoleTemplate]{
				{title: "ROLE", text: func(r cad.RoleTemplate) string { return r.Name }},
				{title: "FROM", text: func(r cad.RoleTemplate) string {
					if r.Builtin {
						return "built in"
					}
					return "tenant"
				}},
				{title: "ALLOWED", most: 60, text: func(r cad.RoleTemplate) string { return strings.Join(r.AllowedOperations, ",") }},
				{title: "FORBIDDEN", wide: true, text: func(r cad.RoleTemplate) string { return strings.Join(r.ForbiddenOperations, ",") }},
				{title: "DESCRIPTION", wide: true, text: func(r cad.RoleTemplate) string { return r.Description }},
			})
		},
	})
}

func liveCADAgents(c *call, eng *engine.Engine, tenant string) []Candidate {
	page, err := eng.CAD.Agents(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
	return candidates(page.Items, err, func(a cad.Agent) Candidate { return Candidate{a.AgentID, a.Shown() + " " + a.Role} })
}

func liveCADRoles(eng *engine.Engine, tenant string) []Candidate {
	return candidates(eng.CAD.Roles(tenant), nil, func(r cad.RoleTemplate) Candidate { return Candidate{r.Name, r.Description} })
}

func liveCADWorkspaces(c *call, eng *engine.Engine, tenant string) []Candidate {
	page, err := eng.CAD.Workspaces(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
	return candidates(page.Items, err, func(w cad.Workspace) Candidate {
		return Candidate{w.WorkspaceID, fmt.Sprintf("%d entities", w.EntityCount)}
	})
}
