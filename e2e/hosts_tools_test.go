package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"swarmdeck/expect"
)

// caller is an agent of the Agent Client Protocol that begins the server that its session
// is given, asks its model and calls a tool of the engine in each prompt.
const caller = `value() { sed -n 's/.*"name":"'$1'","value":"\([^"]*\)".*/\1/p' new; }
n=0
while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}' ;;
*'"session/new"'*) printf %s "$line" > new
  export SWARMDECK_MCP_URL=$(value SWARMDECK_MCP_URL) SWARMDECK_MCP_TOKEN=$(value SWARMDECK_MCP_TOKEN)
  coproc TOOLS { exec "$(sed -n 's/.*"command":"\([^"]*\)".*/\1/p' new)" mcp connect 2>&1; }
  echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}' >&${TOOLS[1]}
  read -r first <&${TOOLS[0]}
  echo '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&${TOOLS[1]}
  echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s"}}' ;;
*'"session/prompt"'*)
  n=$((n+1))
  echo '{"jsonrpc":"2.0","id":'$((n+1))',"method":"tools/call","params":{"name":"list_agents","arguments":{}}}' >&${TOOLS[1]}
  read -r answer <&${TOOLS[0]}
  case "$answer" in *'\"name\":\"far\"'*) tools=found ;; *) tools=$(printf %s "$answer" | tr -dc 'a-zA-Z0-9 :') ;; esac
  model=$(curl -sS -m 60 -H "Authorization: Bearer $OPENAI_API_KEY" -d '{"model":"m","messages":[{"role":"user","content":"hi"}]}' "$OPENAI_BASE_URL/chat/completions" | tr -dc 'a-zA-Z0-9')
  echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"tools '$n': '$tools'; model: '$model'; key '$OPENAI_API_KEY'"}}}}'
  echo '{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"end_turn"}}' ;;
esac
done`

// TestAnAgentOnAHostCallsTheEngineAndItsModel has one do both behind a real sshd, before
// and after its link was cut. The host is never given the credential of its model.
func TestAnAgentOnAHostCallsTheEngineAndItsModel(t *testing.T) {
	t.Parallel()
	const key = "sk-canaryOfTheModel0123456789"
	var asked, known atomic.Int64
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Add(1)
		if r.Header.Get("Authorization") == "Bearer "+key {
			known.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"wellmet"}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`)
	}))
	t.Cleanup(model.Close)
	u := withHost(t)
	u.ok("agent", "create", "far", "--project", "p", "--host", "box", "--runtime", "acp",
		"--env", "OPENAI_BASE_URL="+model.URL+"/v1", "--env", "OPENAI_API_KEY="+key, "--", "bash", "-c", caller)
	expect.Await(t, "the agent is idle", func() bool { return strings.Contains(u.ok("agent", "show", "far", "-o", "json"), `"status":"idle"`) })
	for n := range 2 {
		id := field(u.ok("agent", "assign", "far", "do it", "-o", "json"), "task_id")
		expect.Has(t, u.ok("task", "wait", id, "--timeout", patience.String(), "-o", "json"), `"succeeded"`)
		log := u.ok("agent", "log", "far", "--page-size", "100")
		want := fmt.Sprintf("tools %d: found; model: ", n+1)
		expect.Must(t, strings.Contains(log, want) && strings.Count(log, "wellmet") >= n+1, "%q is missing in\n%s", want, log)
		expect.True(t, !strings.Contains(log, key) && !strings.Contains(log, "[secret"), "the agent has the credential:\n%s", log)
		before := u.keepers("link")
		for _, pid := range before {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		expect.Await(t, "the link is back", func() bool {
			now := u.keepers("link")
			return len(now) > 0 && !slices.Equal(now, before) && strings.Contains(u.ok("host", "show", "box", "-o", "json"), `"state":"up"`)
		})
	}
	expect.True(t, asked.Load() == 2 && known.Load() == 2, "the model was asked %d times, %d with its key", asked.Load(), known.Load())
	expect.True(t, !strings.Contains(string(u.onHosts()), key), "the host has the credential")
	out := u.ok("audit", "list", "--kind", "tool.requested", "-o", "json")
	expect.True(t, strings.Contains(out, `"list_agents"`) && strings.Contains(out, `"far"`), "%v", out)
	u.ok("agent", "delete", "far", "--yes")
	u.ok("host", "remove", "box")
	u.ok("audit", "verify")
}
