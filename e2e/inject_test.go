package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/expect"
)

// asCaller makes the test binary an agent of the Agent Client Protocol that
// uses the tools its session is given.
const asCaller = "SWARMDECK_TEST_AS_CALLER"

// playCaller lists the agents by the session's own server at each prompt, and
// says what it got.
func playCaller() {
	type stdio struct {
		Command string
		Args    []string
		Env     []struct{ Name, Value string }
	}
	var server stdio
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	say := func(m map[string]any) {
		m["jsonrpc"] = "2.0"
		data, _ := json.Marshal(m)
		fmt.Printf("%s\n", data)
	}
	for in.Scan() {
		var m struct {
			ID     any
			Method string
			Params struct{ McpServers []stdio }
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := map[string]any{}
		switch m.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{}}
		case "session/new":
			result["sessionId"] = "one"
			if len(m.Params.McpServers) > 0 {
				server = m.Params.McpServers[0]
			}
		case "session/prompt":
			cmd := exec.Command(server.Command, server.Args...)
			cmd.Env = os.Environ()
			for _, v := range server.Env {
				cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
			}
			said := ""
			cs, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, nil)
			if err == nil {
				var r *mcp.CallToolResult
				if r, err = cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "list_agents"}); err == nil {
					said = r.Content[0].(*mcp.TextContent).Text
				}
				_ = cs.Close()
			}
			if err != nil {
				said = "failed: " + err.Error()
			}
			say(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": "one", "update": map[string]any{
				"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": "GOT " + said},
			}}})
			result["stopReason"] = "end_turn"
		}
		say(map[string]any{"id": m.ID, "result": result})
	}
}

func TestAnAgentsSessionIsGivenTheEnginesTools(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	self := expect.Of(os.Executable())(t)
	u.ok("agent", "create", "caller", "--runtime", "acp", "--project", "P", "--role", "coder", "--env", asCaller+"=1", "--", self)
	u.ok("agent", "assign", "caller", "look around", "--wait")
	log := u.ok("agent", "log", "caller", "--page-size", "50")
	expect.True(t, strings.Contains(log, "GOT ") && strings.Contains(log, `"name":"caller"`) && strings.Contains(log, `"total_count":1`), "%v", log)
	events := u.ok("audit", "list", "--page-size", "100", "-o", "json")
	expect.Has(t, events, `"actor":"caller","actor_kind":"agent","door":"mcp"`)
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
}
