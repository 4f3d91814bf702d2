package mcp

import (
	"context"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

// cadTools are the tools about CAD agents. Each operation is judged as such,
// beside the call.
func cadTools() []tool {
	return []tool{
		define("cad_operation", "Carry out a CAD operation",
			"Have a CAD agent carry out one operation on its workspace, such as entity.create_circle {\"center\":[0,0,0],\"radius\":5} or solid.extrude {\"entity_ids\":[…],\"distance\":10}, in mm. Its role must allow the method; what a person must approve waits for the answer while the call lasts.",
			op.Writes, []param{
				{name: "agent_id", kind: text, about: "CAD agent in whose name it is done", required: true, min: 1, max: 64},
				{name: "method", kind: text, about: "method of the CAD environment", required: true, min: 1, max: 100},
				{name: "params", kind: object, about: "parameters of the method", def: map[string]any{}},
			}, cadOperation),
		define("cad_agents", "List CAD agents", "List the CAD agents with their roles, workspaces and counters, newest first.", op.Reads, append([]param{
			{name: "status", kind: text, about: "only of this status", enum: cadStatuses()},
			{name: "role", kind: text, about: "only of this role", min: 1, max: 64},
			{name: "match", kind: text, about: "only with this text", min: 1, max: 200},
		}, pageParams(core.DefaultPageSize)...), cadAgents),
		define("cad_workspaces", "List CAD workspaces", "List the workspaces that CAD agents build in, newest first.", op.Reads, append([]param{
			{name: "match", kind: text, about: "only with this text in id or name", min: 1, max: 200},
		}, pageParams(core.DefaultPageSize)...), cadWorkspaces),
	}
}

func cadStatuses() []string {
	var names []string
	for _, s := range cad.Statuses() {
		names = append(names, string(s))
	}
	return names
}

func cadOperation(ctx context.Context, c *call, in struct {
	AgentID string   `json:"agent_id"`
	Method  string   `json:"method"`
	Params  core.Raw `json:"params"`
},
) (cad.Done, error) {
	return c.eng.CAD.Execute(ctx, c.by, cad.Operation{AgentID: in.AgentID, Method: in.Method, Params: in.Params, TraceID: c.trace})
}

type cadAgentsAnswer struct {
	Agents []cad.Agent `json:"agents"`
	core.PageInfo
}

func cadAgents(ctx context.Context, c *call, in struct {
	paging
	Status string `json:"status"`
	Role   string `json:"role"`
	Match  string `json:"match"`
},
) (cadAgentsAnswer, error) {
	page, err := c.eng.CAD.Agents(ctx, c.id.Tenant, core.Filter{Status: in.Status, Kind: in.Role, Match: in.Match, Page: in.Page, Size: in.PageSize})
	return cadAgentsAnswer{page.Items, page.Info}, err
}

type cadWorkspacesAnswer struct {
	Workspaces []cad.Workspace `json:"workspaces"`
	core.PageInfo
}

func cadWorkspaces(ctx context.Context, c *call, in struct {
	paging
	Match string `json:"match"`
},
) (cadWorkspacesAnswer, error) {
	page, err := c.eng.CAD.Workspaces(ctx, c.id.Tenant, core.Filter{Match: in.Match, Page: in.Page, Size: in.PageSize})
	return cadWorkspacesAnswer{page.Items, page.Info}, err
}
