package mcp

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/cad"
	"swarmdeck/expect"
)

// modeler makes a CAD agent of a tenant.
func (h *house) modeler(t *testing.T, tenant, id string) {
	t.Helper()
	by := alice
	by.Tenant = tenant
	_, err := h.eng.CAD.CreateAgent(t.Context(), by, cad.CreateAgent{
		AgentID: id, RoleName: "modeler", WorkspaceID: "ws_" + id, Workspace: &cad.CreateWorkspace{},
	})
	expect.No(t, err)
}

func TestAnAgentHasCADAgentsWork(t *testing.T) {
	h := newHouse(t)
	h.modeler(t, lab, "ann")
	h.modeler(t, lab, "bob")
	h.modeler(t, other, "eve")
	tokens := &Tokens{}
	token := expect.Of(tokens.Issue(sony))(t)
	cs := expect.Of(dial(t, h.web(t, tokens), token, eras[0], nil))(t)
	expect.Of(h.eng.CAD.BindAgent(t.Context(), alice, "ann", sony.Name))(t)
	// What the role allows and a rule approves needs no person. In whose name it is
	// done the token says.
	var done cad.Done
	use(t, cs, "cad_operation", map[string]any{"method": "workspace.list"}, &done)
	expect.Is(t, done.AgentID, "ann", done)
	use(t, cs, "cad_operation", map[string]any{"agent_id": "ann", "method": "workspace.list"}, &done)
	if done.AgentID != "ann" || !strings.Contains(string(done.Data), `"ws_ann"`) || strings.Contains(string(done.Data), "eve") || done.DecisionID == "" {
		t.Errorf("%+v", done)
	}
	for _, c := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"agent_id": "ann"}, "method: missing"},
		{map[string]any{"agent_id": "ann", "method": "workspace.merge", "params": map[string]any{}}, "ROLE_VIOLATION"},
		{map[string]any{"agent_id": "ann", "method": "no.such"}, "there is no such method"},
		{map[string]any{"agent_id": "ann", "method": "agent.metrics", "params": []int{1}}, "params: want object"},
		{map[string]any{"agent_id": "bob", "method": "workspace.list"}, "agent Sony of the fleet acts as CAD agent ann alone"},
		{map[string]any{"agent_id": "nobody", "method": "workspace.list"}, "NOT_FOUND"},
		{map[string]any{"agent_id": "eve", "method": "workspace.list"}, "belongs to another tenant"},
		{map[string]any{"agent_id": "ann", "method": "entity.create_point"}, "no CAD environment"},
	} {
		r := expect.Of(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "cad_operation", Arguments: c.args}))(t)
		said := r.Content[0].(*mcp.TextContent).Text
		expect.True(t, r.IsError && strings.Contains(said, c.want), "%v: %s, want %q", c.args, said, c.want)
	}
	var agents cadAgentsAnswer
	use(t, cs, "cad_agents", map[string]any{"status": "error"}, &agents)
	expect.True(t, len(agents.Agents) == 1 && agents.Agents[0].RoleViolations == 2 && agents.Total == 1, "%+v", agents)
	var spaces cadWorkspacesAnswer
	use(t, cs, "cad_workspaces", nil, &spaces)
	expect.True(t, len(spaces.Workspaces) == 2 && spaces.Workspaces[1].WorkspaceID == "ws_ann", "%+v", spaces)
}
