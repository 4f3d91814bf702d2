package mcp

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/expect"
)

func TestACallCarriesItsTraceToTheServer(t *testing.T) {
	h, _ := guests(t)
	task, result := h.ends(t, alice, "actor", "parent", `{}`)
	want := task.Traceparent()
	expect.True(t, strings.Contains(string(result.Output), want), "the server was told %s, want %s", result.Output, want)
}

func TestAClientsTraceIsTakenUp(t *testing.T) {
	h := newHouse(t)
	cs := h.stdio(t, Identity{Tenant: alice.Tenant, Name: alice.Name, Kind: core.Operator, Role: op.Operator}, "", nil)
	for parent, want := range map[string]string{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": "00f067aa0ba902b7",
		"00-nonsense": "",
	} {
		r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{
			Meta: mcp.Meta{"traceparent": parent}, Name: "dispatch_task",
			Arguments: map[string]any{"kind": "exec.run", "input": map[string]any{"argv": []string{"true"}}},
		})
		expect.Must(t, err == nil && !r.IsError, "%v %v", err, r)
		id := r.StructuredContent.(map[string]any)["task"].(map[string]any)["task_id"].(string)
		task, err := h.eng.Tasks.Get(t.Context(), alice.Tenant, id)
		expect.True(t, err == nil && task.ParentSpan == want && (want != "") == (task.TraceID == "4bf92f3577b34da6a3ce929d0e0e4736"),
			"%s: %+v %v", parent, task, err)
	}
}
