package engine

import "testing"

func TestAToolIsFoundInWhatAgentsSayOfTheirCalls(t *testing.T) {
	for text, want := range map[string]bool{
		"create_agent (swarmdeck MCP Server)":                true,
		`other swarmdeck_create_agent {}`:                    true,
		`other {"server":"swarmdeck","tool":"create_agent"}`: true,
		"create_agents": false, "create_agent_task": false, "create_agents, then create_agent": true, "": false,
	} {
		if got := mentions(text, "create_agent"); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
