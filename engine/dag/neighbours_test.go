package dag_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// drawn are a graph's edges in lines, those of lower levels first.
func drawn(g dag.Graph) string {
	name := func(i int) string {
		n := g.Nodes[i]
		if n.Kind != "" {
			return fmt.Sprintf("%d %s", n.Level, n.Kind)
		}
		return fmt.Sprintf("%d %s", n.Level, n.Node)
	}
	var all []string
	for _, e := range g.Edges {
		all = append(all, name(e.From)+" "+string(e.Type)+" "+name(e.To))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestAGraphStandsAroundItsNode(t *testing.T) {
	s := newStory(t)
	g := expect.Of(s.Around(t.Context(), acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeEvent, ID: s.answer.EventID}, Depth: 2}))(s.T)
	want := strings.Join([]string{
		"-1 model_request DERIVED_FROM 0 model_response",
		"-2 Message:m-1 EVENT_CONSUMES -1 model_request",
		"0 model_response CALLS_TOOL 1 tool_call",
		"0 model_response CALLS_TOOL 1 tool_call",
		"0 model_response EVENT_PRODUCES 1 Message:m-2",
		"1 tool_call RETURNS_RESULT 2 tool_result",
		"1 tool_call SUBSTITUTES 1 tool_call",
	}, "\n")
	got := drawn(g)
	expect.True(t, got == want, "\n%s\nwant\n%s", got, want)
	expect.True(t, g.Nodes[0].Level == 0 && !g.Nodes[0].TS.IsZero(), "the node itself: %+v", g.Nodes[0])
	i := slices.IndexFunc(g.Nodes, func(n dag.GraphNode) bool { return n.Node.ID == "m-1" })
	expect.True(t, g.Nodes[i].Text == "user: Build it", "a message: %+v", g.Nodes[i])
}

func TestAGraphOfAnAgentHasItsRunsAndForks(t *testing.T) {
	s := newStory(t)
	h := s.head("ada", "")
	h.Nodes = []dag.Node{dag.NewNode(&dag.Subagent{ID: "ada-2", ParentAgentID: "ada"})}
	s.emit(h, &dag.AgentForked{FromBranch: "main", ToBranch: "try", AtEvent: ref(s.call)})
	g := expect.Of(s.Around(t.Context(), acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeAgent, ID: "ada"}}))(s.T)
	got := drawn(g)
	for _, want := range []string{"0 Agent:ada AGENT_HAS_RUN 1 Run:r-1", "0 Agent:ada FORKED_FROM 1 Branch:ada/try", "0 Agent:ada SPAWNED_FROM 1 Subagent:ada-2"} {
		expect.Has(t, got, want, "no")
	}
}

func TestAGraphIsBounded(t *testing.T) {
	s := newStory(t)
	for _, q := range []dag.LineageQuery{{Depth: 21}, {Depth: -1}, {Most: 501}} {
		q.Node = dag.NodeRef{Type: dag.TypeAgent, ID: "ada"}
		expect.Fails(t, expect.Fault(s.Around(t.Context(), acme, q)), q)
	}
	_, err := s.Around(t.Context(), acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeAgent, ID: "nobody"}})
	expect.Fails(t, err, "a node that nothing names")
	g := expect.Of(s.Around(t.Context(), acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeEvent, ID: s.result.EventID}, Depth: 1}))(s.T)
	expect.True(t, g.More, "it does not say that there is more")
}
