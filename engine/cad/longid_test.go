package cad_test

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/expect"
)

// long is a scenario whose ids are as long as they may be, and differ at their
// ends alone.
func long() cad.Scenario {
	s := cad.Scenario{Name: "long", Description: "Long ids", Pattern: cad.Mixed, SuccessCriteria: "Twelve points"}
	for i := range 12 {
		end := fmt.Sprintf("%02d", i)
		seat := cad.Seat{AgentID: strings.Repeat("a", 62) + end, RoleName: "modeler", WorkspaceID: strings.Repeat("w", 38) + end}
		s.Agents = append(s.Agents, seat)
		s.Tasks = append(s.Tasks, planned("t"+end, seat.AgentID, nil, point("p"+end)))
	}
	return s
}

func TestAScenarioWithTheLongestIDsRunsAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	w.put(long())
	w.run()
	agents, places := map[string]bool{}, map[string]bool{}
	for run := 1; run <= 11; run++ {
		flow := w.start("long")
		for i, seat := range flow.Agents {
			expect.True(t, !agents[seat.AgentID] && !places[seat.WorkspaceID] && len(seat.AgentID) <= 64 && len(seat.WorkspaceID) <= 40,
				"run %d: %+v", run, seat)
			if end := fmt.Sprintf("_%d", run); run > 1 && (!strings.HasSuffix(seat.AgentID, end) || !strings.HasSuffix(seat.WorkspaceID, end)) {
				t.Errorf("run %d has agent %d %+v", run, i, seat)
			}
			agents[seat.AgentID], places[seat.WorkspaceID] = true, true
		}
		if run == 2 {
			flow = w.over(flow.WorkflowID)
			expect.True(t, flow.State == cad.WorkflowCompleted, "%s %+v", flow.Shown(), flow.Failures)
		}
	}
}

func TestAnAgentWithTheLongestIDIsReplacedOnRetry(t *testing.T) {
	w := newWorld(t)
	s := one()
	gone := strings.Repeat("a", 64)
	s.Agents[0].AgentID, s.Tasks[0].AgentID = gone, gone
	w.put(s)
	flow := w.start("one")
	expect.Of(w.cad.ShutdownAgent(t.Context(), alice, gone))(t)
	w.run()
	flow = w.over(flow.WorkflowID)
	expect.Of(w.cad.RetryWorkflow(t.Context(), alice, flow.WorkflowID, ""))(t)
	flow = w.over(flow.WorkflowID)
	a := of(flow, "a")
	expect.True(t, flow.State == cad.WorkflowCompleted && a.AgentID == gone[:62]+"_2" && a.WorkspaceID == "ws_ann", "%s %+v", flow.Shown(), a)
	w.sound()
}
