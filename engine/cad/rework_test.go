package cad_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// across is a design that a review rejects after others have made something of
// it: one merges it, one puts a mark beside it.
func across(pattern cad.Pattern) cad.Scenario {
	s := reviewed(2)
	s.Pattern = pattern
	s.Agents = append(s.Agents, cad.Seat{AgentID: "joiner", RoleName: "integrator", WorkspaceID: "ws_all"}, cad.Seat{AgentID: "marker", RoleName: "modeler", WorkspaceID: "ws_marks"})
	merge := planned("merge", "joiner", nil, cad.Step{Method: "workspace.merge", Params: core.Raw(
		`{"source_workspace_id":"${tasks.design.workspace_id}","target_workspace_id":"${agent.workspace_id}"}`)})
	mark := planned("mark", "marker", nil, point("mark_1"))
	mark.ReworkOperations = []cad.Step{point("mark_2")}
	design, review, finish := s.Tasks[0], s.Tasks[1], s.Tasks[2]
	review.Dependencies, finish.Dependencies = nil, nil
	if pattern == cad.Mixed {
		merge.Dependencies, mark.Dependencies = []string{"design"}, []string{"merge"}
		review.Dependencies, finish.Dependencies = []string{"design", "mark"}, []string{"review"}
	}
	s.Tasks = []cad.PlannedTask{design, merge, mark, review, finish}
	return s
}

func TestWhatWasMadeOfRejectedWorkIsMadeAnewBeforeItIsReviewedAgain(t *testing.T) {
	for _, pattern := range []cad.Pattern{cad.Sequential, cad.Mixed} {
		t.Run(string(pattern), func(t *testing.T) {
			w := newWorld(t)
			w.put(across(pattern))
			w.pool.answers = map[string]func(cad.Call) string{"measure.mass": func(c cad.Call) string {
				if strings.Contains(string(c.Params), "lighter") {
					return `{"mass":213.3}`
				}
				return `{"mass":251.2}`
			}}
			w.run()
			flow := w.over(w.start("reviewed").WorkflowID)
			expect.True(t, flow.State == cad.WorkflowCompleted && len(flow.Failures) == 0 && flow.Metrics.Rounds == 1,
				"%s %+v %+v", flow.Shown(), flow.Metrics, flow.Failures)
			for id, round := range map[string]int{"design": 1, "merge": 1, "mark": 1, "review": 1, "finish": 0} {
				a := of(flow, id)
				expect.True(t, a.Round == round && a.Tries == round+1, "%s: round %d after %d tries, want %d", id, a.Round, a.Tries, round)
			}
			var done []string
			w.pool.mu.Lock()
			for _, c := range w.pool.calls {
				done = append(done, c.Method)
			}
			w.pool.mu.Unlock()
			const want = "entity.create_point workspace.merge entity.create_point measure.mass " +
				"entity.create_point entity.create_point workspace.merge entity.create_point measure.mass entity.create_point"
			expect.Is(t, strings.Join(done, " "), want)
			all, marks := w.ids("ws_all"), w.ids("ws_marks")
			expect.True(t, all == "hole lighter part" && marks == "mark_1 mark_2", "merged are %s, marks are %s", all, marks)
			w.sound()
		})
	}
}
