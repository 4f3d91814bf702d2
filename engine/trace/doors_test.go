package trace

import (
	"slices"
	"testing"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func TestAToolIsFoundInWhatAgentsSayOfTheirCalls(t *testing.T) {
	for text, want := range map[string]bool{
		"create_agent (swarmdeck MCP Server)":                true,
		`other swarmdeck_create_agent {}`:                    true,
		`other {"server":"swarmdeck","tool":"create_agent"}`: true,
		"create_agents": false, "create_agent_task": false, "create_agents, then create_agent": true, "": false,
	} {
		expect.Is(t, mentions(text, "create_agent"), want, text)
	}
}

// TestOpenCallsOfOneToolAreTiedOldestFirst has three calls of a tool and one of another open
// at once: each question of a door takes the oldest call of its tool, and takes it once.
func TestOpenCallsOfOneToolAreTiedOldestFirst(t *testing.T) {
	o := &run{rec: &dag.Recording{}}
	open := func(want ...string) {
		t.Helper()
		var got []string
		for _, c := range o.calls {
			if c.text != "" {
				got = append(got, c.id)
			}
		}
		expect.Must(t, slices.Equal(got, want), "open are %q, want %q", got, want)
	}
	tells := func(id, tool string) {
		o.calls = append(o.calls, call{id: id})
		o.tells(&fleet.Event{CallID: id, Tool: tool})
	}
	for _, id := range []string{"a1", "a2", "b1", "a3"} {
		tells(id, map[byte]string{'a': "start_agent_task", 'b': "send_message"}[id[0]])
	}
	open("a1", "a2", "b1", "a3")
	o.asks(judge.Action{CallID: "d1", Tool: "start_agent_task"})
	open("a2", "b1", "a3")
	o.asks(judge.Action{CallID: "d1", Tool: "start_agent_task"}) // the same door's second question
	open("a2", "b1", "a3")
	o.ends("a2")
	o.asks(judge.Action{CallID: "d2", Tool: "start_agent_task"})
	open("b1")
	o.asks(judge.Action{CallID: "d3", Tool: "start_agent_task"}) // before its agent tells of it
	open("b1")
	tells("a4", "start_agent_task")
	open("b1")
	expect.Is(t, len(o.doors.asked), 0, "questions wait still")
}
