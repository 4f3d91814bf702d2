package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// useScript has an agent use the tools of its session: to make another agent,
// to give it work, to send it a message. ENDS waits for the agent's newest
// task; ALLOW answers the question whether a tool may be called, which some
// agents ask before the engine does, and MAY where only these ask.
const useScript = `
up $HERE/EXAMPLE
tenant create t_other
agent create stranger --tenant t_other --project p -- cat
env SWARMDECK_TENANT=HOME
await -t 120s agent AGENT status=idle

# Another agent is made, once a person allows it, and so is its first task.
agent assign AGENT 'CALL: create_agent {"name":"helper","project":"coding","role":"tester","task":"the first","command":"head -n 1 >>helped"}'
ALLOW create_agent
ALLOW agent.prompt
ENDS
agent log AGENT --page-size 5
stdout 'FINAL: the t'
stdout 'helper'
await -t 60s agent helper status=idle last_status=succeeded
exec cat helped
stdout '"message":"the first"'

# It is given more work, which is judged as work.
agent assign AGENT 'CALL: start_agent_task {"agent_name":"helper","task":"the second"}'
MAY start_agent_task
ALLOW agent.prompt
ENDS
await -t 60s agent helper status=idle last_status=succeeded
exec tail -n 1 helped
stdout '"message":"the second"'
task list --agent helper -o json
stdout '"created_by":"AGENT"'
capture H task_id
task show $H -o json
stdout '"parent_task_id":"tk_'
stdout '"message":"the second"'

# One message is let through, and another is not.
agent assign AGENT 'CALL: send_message {"recipient_id":"helper","payload":{"say":"hello"}}'
ALLOW send_message
ENDS
bus read helper -o json
stdout '"sender_id":"AGENT".*"say":"hello"'
agent assign AGENT 'CALL: send_message {"recipient_id":"helper","payload":{"say":"secret"}}'
MAY send_message
await -t 60s approval 1
await -t 60s agent AGENT 'status=waiting for you'
agent list
stdout 'AGENT +waiting for you'
approval list --open -o json
stdout '"say":"secret"'
capture A approval_id
approval deny $A --reason 'not this one'
ENDS
agent log AGENT --page-size 5
stdout 'FINAL: the t'
stdout 'not this one'
bus list -o json
! stdout 'secret'

# The record has each as one call, which what was decided at both places is about.
dag events --task $T --match 'not this one' -o json
stdout '"decision":"deny"'
dag events --task $T --kind tool_call -o json
stdout -count=1 '"kind":"tool_call"'
capture C event_id
dag lineage ToolCall:$C --down --depth 1 -o json
stdout '"from":\{"type":"Message"'

# Of other tenants it learns nothing.
agent assign AGENT 'CALL: show_agent {"agent_name":"stranger"}'
MAY show_agent
ENDS
agent log AGENT --page-size 5
stdout 'FINAL: the t'
stdout 'belongs to another tenant'
audit list --kind tenant.violation -o json
stdout '"named":"stranger"'
audit list --kind mcp.refused -o json
stdout '"actor":"AGENT","actor_kind":"agent","door":"mcp".*another tenant'
audit verify
audit reconcile
`

// allowed are the lines that wait for a question about something, and allow it.
func allowed(what string) string {
	return fmt.Sprintf("await -t 60s approval 1\napproval list --open -o json\nstdout '%s'\ncapture A approval_id\napproval approve $A --reason fine\n", what)
}

func TestRealAgentsUseTheToolsOfTheirSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tenant string
		asks   bool // whether the agent itself asks before it calls a tool
	}{"gemini-cli": {"t_gemini", true}, "codex-acp": {"t_codex", false}, opencode: {"t_opencode", false}} {
		t.Run(name, func(t *testing.T) {
			play, _, _ := withAgents(t, name)
			var script strings.Builder
			for line := range strings.Lines(strings.NewReplacer("EXAMPLE", name, "HOME", c.tenant, "AGENT", realAgent(name).agent).Replace(useScript)) {
				verb, what, _ := strings.Cut(strings.TrimSpace(line), " ")
				switch {
				case verb == "ENDS":
					script.WriteString("agent history " + realAgent(name).agent + " -o json --page-size 1\ncapture T task_id\nawait -t 60s task $T status=succeeded\n")
					continue
				case verb != "MAY" && verb != "ALLOW":
					script.WriteString(line)
					continue
				case c.asks && what != "agent.prompt":
					script.WriteString(allowed(`"tool":"other".*` + what))
				}
				if verb == "ALLOW" {
					script.WriteString(allowed(what))
				}
			}
			play(script.String())
		})
	}
}
