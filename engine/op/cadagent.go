package op

import (
	"cmp"
	"context"
	"slices"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
)

func cads() []*Op {
	return slices.Concat(cadAgents(), []*Op{cadMessage(), cadInbox()}, cadWorkspaces(), cadScenarios(), cadWorkflows())
}

func cadAgents() []*Op {
	type A = cad.Agent
	id := arg("ID", "cadagent")
	return []*Op{
		cadRoles(),
		cadAgentCreate(),
		list(Op{
			Name: "cad agent list", Short: "List the CAD agents, newest first; --kind is a role", ForAgents: true,
			Statuses: core.Strings(cad.Statuses()...),
			Tool: Tool{
				Name: "cad_agents", By: []string{"status", "kind", "since", "until", "match"}, Names: map[string]string{"kind": "role"},
				About: "List the CAD agents with their roles, workspaces and counters, newest first.",
			},
		}, byTenant(func(c *Call) tenantRead[core.Filter, core.Page[A]] { return c.CAD.Agents })),
		show(Op{Name: "cad agent show", Short: "Show a CAD agent with what it made and what failed"}, id,
			func(ctx context.Context, c *Call, id string) (A, error) { return c.CAD.Agent(ctx, c.By.Tenant, id) }),
		change(Op{Name: "cad agent shutdown", Short: "End a CAD agent for good; what it made stays", Effect: Destroys, Confirm: ConfirmAsk, Done: "shut down"}, id,
			func(ctx context.Context, c *Call, id string) (A, error) { return c.CAD.ShutdownAgent(ctx, c.By, id) }),
		cadBind(id),
		show(Op{Name: "cad metrics", Short: "Show how a CAD agent does: success, trend, durations by method"}, id,
			byTenant(func(c *Call) tenantRead[string, cad.Metrics] { return c.CAD.Metrics })),
		cadOperation(),
		define(Op{Name: "cad controller show", Short: "Show the controller: how many agents work at once, roles, kernels", Effect: Reads, Full: true},
			controller),
		cadMaxConcurrent(),
	}
}

// Controller is what binds all CAD agents, with those that it has and what they work at.
type Controller struct {
	cad.Info
	Agents    map[string]*cad.Agent   `json:"agents"`
	Workflows map[string]cad.Workflow `json:"active_workflows"` // the newest, at most 100
}

func controller(ctx context.Context, c *Call) (Controller, error) {
	all := Controller{Info: c.CAD.Info(c.By.Tenant), Agents: map[string]*cad.Agent{}, Workflows: map[string]cad.Workflow{}}
	for _, a := range c.CAD.Live(c.By.Tenant) {
		all.Agents[a.AgentID] = a
	}
	page, err := c.CAD.Workflows(ctx, c.By.Tenant, core.Filter{Size: core.MaxPageSize})
	for _, w := range page.Items {
		if !w.State.Final() {
			all.Workflows[w.WorkflowID] = w
		}
	}
	return all, err
}

func cadRoles() *Op {
	var name string
	return define(Op{
		Name: "cad roles", Short: "List what CAD agents may do by role, or show one role", Effect: Reads,
		Params: []*Param{maybe(&name, "NAME", "cadrole")},
	}, func(_ context.Context, c *Call) (core.Page[cad.RoleTemplate], error) {
		if name == "" {
			return core.Page[cad.RoleTemplate]{Items: c.CAD.Roles(c.By.Tenant)}, nil
		}
		one, err := c.CAD.Role(c.By.Tenant, name)
		return core.Page[cad.RoleTemplate]{Items: []cad.RoleTemplate{one}}, err
	})
}

// kernel is what computes the geometry of a workspace.
func kernel(into *string, about string) *Param {
	return flag(into, "kernel", about).from("enum:embedded,occt")
}

func cadAgentCreate() *Op {
	var w cad.CreateAgent
	var own cad.CreateWorkspace
	var there bool
	return define(Op{
		Name: "cad agent create", Short: "Make a CAD agent of a role, with a workspace", Undo: "cad agent shutdown", Done: "created",
		Long: "Make a CAD agent of a role. It works in its workspace, which is made along with it if there is none of that name,\n" +
			"empty and on the kernel given.",
		Example: "cad agent create housing_designer --role modeler --workspace ws_housing",
		Params: []*Param{
			place(&w.AgentID, "ID", ""),
			need(&w.RoleName, "role", "what it may do: `ROLE`, as cad roles lists them").from("cadrole"),
			flag(&w.WorkspaceID, "workspace", "where it works: `ID` (default ws_ and its own)").from("workspace"),
			kernel(&own.Kernel, "what models the solids of a new workspace: `KERNEL` embedded or occt"),
			flag(&there, "existing", "refuse a workspace that is not there instead of making it"),
		},
		Check: func(*Call) error {
			switch {
			case !there:
				w.Workspace = &own
			case own.Kernel != "":
				return usage("kernel", "--kernel is of a new workspace; it goes without --existing")
			}
			w.WorkspaceID = cmp.Or(w.WorkspaceID, "ws_"+w.AgentID)
			return nil
		},
	}, func(ctx context.Context, c *Call) (cad.Agent, error) { return c.CAD.CreateAgent(ctx, c.By, w) })
}

func cadBind(id Param) *Op {
	var fleet string
	var free bool
	return change(Op{
		Name: "cad agent bind", Short: "Have an agent of the fleet act as a CAD agent, and as no other", Done: "bound",
		Long: "Have an agent of the fleet act as a CAD agent. Who it is its token says; to act as another is refused and audited. One that\n" +
			"is given a CAD task as its worker acts as the task's agent while it does it. Approvals name both.",
		Params: []*Param{
			flag(&fleet, "fleet", "agent of the fleet, by `NAME`").from("agent"), flag(&free, "free", "from now on nobody acts as it"),
		},
		Check: func(*Call) error {
			if free == (fleet != "") {
				return usage("fleet", "--fleet: name an agent of the fleet, or say --free")
			}
			return nil
		},
	}, id, func(ctx context.Context, c *Call, id string) (cad.Agent, error) {
		if !free {
			if _, err := c.Fleet.Agent(ctx, c.By.Tenant, fleet); err != nil {
				return cad.Agent{}, err
			}
		}
		return c.CAD.BindAgent(ctx, c.By, id, fleet)
	})
}

// Answer is an operation of a CAD agent as the CAD environment answers it.
type Answer struct {
	Status   string   `json:"status"`
	Data     core.Raw `json:"data"`
	Metadata core.Raw `json:"metadata"`
	Done     cad.Done `json:"-"`
}

func cadOperation() *Op {
	do := cad.Operation{Params: core.Raw(`{}`)}
	agent := place(&do.AgentID, "ID", "cadagent").bounds(1, 64).client("CAD agent in whose name it is done; of an agent its own, which it need not name")
	return define(Op{
		Name: "cad op", Short: "Have a CAD agent carry out one operation", Done: "carried out",
		Long: "Have a CAD agent carry out one operation and print what it answers. PARAMS is a JSON object, @file, or - for stdin;\n" +
			"workspace_id is the agent's own unless it names another. Lengths are millimetres, angles radians. The agent's role\n" +
			"must allow the method, and what the rules want a person asked about needs one who can answer: the cockpit.",
		Example: `cad op checker measure.mass '{"entity_id":"solid_1"}'`,
		Tool: Tool{
			Name: "cad_operation", Names: map[string]string{"id": "agent_id"}, Free: []string{"id"},
			About: "Have a CAD agent carry out one operation on its workspace, such as entity.create_circle {\"center\":[0,0,0],\"radius\":5} or solid.extrude {\"entity_ids\":[…],\"distance\":10}, in mm. " +
				"Its role must allow the method; what a person must approve waits for the answer while the call lasts.",
		},
		Params: []*Param{
			agent, place(&do.Method, "METHOD", "cadmethod").bounds(1, 100).client("method of the CAD environment"),
			maybe(&do.Params, "PARAMS", "json").client("parameters of the method"),
		},
		Check: func(c *Call) (err error) {
			if c.By.Kind != core.Agent || c.Engine == nil { // people name it
				return nil
			}
			agent.Given = true
			do.AgentID, err = c.CAD.Acting(context.Background(), c.By, do.AgentID, do.Method)
			return err
		},
	}, func(ctx context.Context, c *Call) (Answer, error) {
		do.Unasked, do.TraceID = c.By.Door == core.DoorCLI, c.traceID()
		done, err := c.CAD.Execute(ctx, c.By, do)
		return Answer{"success", done.Data, done.Metadata, done}, err
	})
}

func cadMaxConcurrent() *Op {
	var most int
	return define(Op{
		Name: "cad controller max-concurrent", Short: "Set how many CAD agents carry something out at once, 1-50", Full: true, Done: "set:",
		Params: []*Param{{Name: "max-concurrent-agents", About: "N", Arg: true, Need: true, Into: &most}},
	}, func(ctx context.Context, c *Call) (cad.Info, error) { return c.CAD.SetMaxConcurrent(ctx, c.By, most) })
}

func cadMessage() *Op {
	var m cad.SendMessage
	return define(Op{
		Name: "cad message", Short: "Send a message from one CAD agent to another, or to all", Done: "sent",
		Long: "Send a message between CAD agents. TO is an agent, or broadcast. JSON is an object, @file, or - for stdin; it must have\n" +
			"  request    request_type: validate_component, provide_dimensions, check_compatibility, request_rework, query_status\n" +
			"  response   request_id, and status: success, failure, partial, needs_clarification\n" +
			"  broadcast  announcement: workspace_merge_complete, component_ready, task_completed, error_occurred, status_update\n" +
			"  error      error_code, such as ROLE_VIOLATION, and error_message\n" +
			"and may have more.",
		Example: `cad message reviewer designer request '{"request_type":"request_rework","component_id":"solid_1"}'`,
		Params: []*Param{
			place(&m.From, "FROM", "cadagent"), place(&m.To, "TO", "cadreceiver"),
			place((*string)(&m.Type), "TYPE", "enum:request,response,broadcast,error"),
			{Name: "content", About: "JSON", Arg: true, Need: true, Into: &m.Content, From: "json"},
			flag(&m.Trace, "trace", "trace `ID`, 32 hex digits (default a new one)"),
			flag(&m.Task, "task", "task `ID` that it belongs to").from("task"),
		},
	}, func(ctx context.Context, c *Call) (cad.AgentMessage, error) { return c.CAD.SendMessage(ctx, c.By, m) })
}

func cadInbox() *Op {
	type M = cad.AgentMessage
	var mark bool
	var o *Op
	o = listOf(Op{
		Name: "cad messages", Short: "List what a CAD agent was sent, newest first; --kind is a type", Statuses: []string{"read", "unread"},
		Long: "List what a CAD agent was sent, newest first; --agent is a sender, --kind a type. With --mark-read: those that it has\n" +
			"not read, oldest first, which are read from then on.",
		Example: "cad messages designer --mark-read\ncad messages designer --status unread",
		Params:  []*Param{flag(&mark, "mark-read", "take what is unread, and mark it read")},
		Check: func(*Call) error {
			if !mark {
				return nil
			}
			if f := *o.Filter; f.Page > 1 || f != (core.Filter{Page: f.Page, Size: f.Size}) {
				return usage("mark_read", "--mark-read takes the oldest ones: of the filters only --page-size goes with it")
			}
			o.Effect, o.Role = Writes, Operator
			return nil
		},
	}, arg("ID", "cadagent"), func(ctx context.Context, c *Call, id string, f core.Filter) (core.Page[M], error) {
		if !mark {
			return c.CAD.Messages(ctx, c.By.Tenant, id, f)
		}
		read, err := c.CAD.ReadMessages(ctx, c.By, id, cmp.Or(f.Size, core.DefaultPageSize))
		return core.Page[M]{Items: read}, err
	})
	return o
}
