package engine

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
	ties := &ties{run: &dag.Recording{}}
	open := func(want ...string) {
		t.Helper()
		var got []string
		for _, c := range ties.calls {
			got = append(got, c.id)
		}
		expect.Must(t, slices.Equal(got, want), "open are %q, want %q", got, want)
	}
	for _, id := range []string{"a1", "a2", "b1", "a3"} {
		ties.tells(&fleet.Event{CallID: id, Tool: map[byte]string{'a': "start_agent_task", 'b': "send_message"}[id[0]]})
	}
	open("a1", "a2", "b1", "a3")
	ties.asks(judge.Action{CallID: "d1", Tool: "start_agent_task"})
	open("a2", "b1", "a3")
	ties.asks(judge.Action{CallID: "d1", Tool: "start_agent_task"}) // the same door's second question
	open("a2", "b1", "a3")
	ties.ends("a2")
	ties.asks(judge.Action{CallID: "d2", Tool: "start_agent_task"})
	open("b1")
	ties.asks(judge.Action{CallID: "d3", Tool: "start_agent_task"}) // before its agent tells of it
	open("b1")
	ties.tells(&fleet.Event{CallID: "a4", Tool: "start_agent_task"})
	open("b1")
	expect.Is(t, len(ties.waiting), 0, "questions wait still")
}
