package cad_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestRetryingOneTaskOfAnAgentThatIsGoneMovesItsOthersToo(t *testing.T) {
	w := newWorld(t)
	w.put(cad.Scenario{
		Name: "alone", Description: "Two tasks of one agent", Pattern: cad.Mixed, SuccessCriteria: "Two points",
		Agents: []cad.Seat{{AgentID: "ann", RoleName: "modeler", WorkspaceID: "ws_ann"}, {AgentID: "bob", RoleName: "modeler", WorkspaceID: "ws_bob"}},
		Tasks:  []cad.PlannedTask{planned("a", "ann", nil, point("a1")), planned("b", "ann", nil, point("b1")), planned("c", "bob", nil, point("c1"))},
	})
	flow := w.start("alone")
	expect.Of(w.cad.ShutdownAgent(t.Context(), alice, "ann"))(t)
	w.run()
	if flow = w.over(flow.WorkflowID); flow.State != cad.PartialFailure || flow.Metrics.AgentsUsed != 1 {
		t.Errorf("%s, agents used %d, want bob alone", flow.Shown(), flow.Metrics.AgentsUsed)
	}
	for _, id := range []string{"a", "b"} {
		expect.Of(w.cad.RetryWorkflow(t.Context(), alice, flow.WorkflowID, id))(t)
		flow = w.over(flow.WorkflowID)
		got := of(flow, id)
		expect.True(t, got.AgentID == "ann_2" && got.Status == cad.Completed, "%s: %s of %s", id, got.Status, got.AgentID)
	}
	expect.True(t, flow.State == cad.WorkflowCompleted && flow.Metrics.AgentsUsed == 2, "%s, agents used %d", flow.Shown(), flow.Metrics.AgentsUsed)
	w.sound()
}

func TestAnAgentThatFailedAndHandedItsTaskOnWasUsed(t *testing.T) {
	w := newWorld(t)
	w.agent("eve", "modeler")
	w.put(cad.Scenario{
		Name: "handed", Description: "One task", Pattern: cad.Mixed, SuccessCriteria: "A point",
		Agents: []cad.Seat{{AgentID: "ann", RoleName: "modeler", WorkspaceID: "ws_ann"}},
		Tasks:  []cad.PlannedTask{planned("a", "ann", nil, point("a1"))},
	})
	w.pool.on(func(_ context.Context, _ *fakeWorker, c cad.Call) error {
		return fault(-32001, "ENTITY_NOT_FOUND", "x", "no")
	}, nil)
	w.run()
	flow := w.over(w.start("handed").WorkflowID)
	w.pool.on(nil, nil)
	expect.Of(w.cad.ReassignWorkflow(t.Context(), alice, flow.WorkflowID, "a", "eve"))(t)
	if flow = w.over(flow.WorkflowID); flow.State != cad.WorkflowCompleted || flow.Metrics.AgentsUsed != 2 {
		t.Errorf("%s, agents used %d, want ann and eve", flow.Shown(), flow.Metrics.AgentsUsed)
	}
	w.sound()
}

func TestADirectoryThatCantBeWrittenToIsRefusedBeforeAnyWork(t *testing.T) {
	w := newWorld(t)
	w.put(four())
	file := filepath.Join(t.TempDir(), "file")
	expect.No(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{"near", file, filepath.Join(file, "below"), "/proc/none"} {
		_, err := w.cad.RunScenario(t.Context(), alice, cad.StartWorkflow{Scenario: "four", Directory: dir})
		expect.True(t, code(err) == core.InvalidInput && core.AsError(err).Details["field"] == "out", "%s: %v", dir, err)
	}
	expect.Is(t, expect.Of(w.cad.Agents(t.Context(), home, core.Filter{}))(t).Info.Total, 0, "agents were made")
}

func TestAPlanThatNobodyBeganCanBeCancelled(t *testing.T) {
	w := newWorld(t)
	flow, err := w.cad.Decompose(t.Context(), alice, cad.Decompose{Goal: "a shaft 20x50"})
	expect.Must(t, err == nil && flow.State == cad.Initializing, "%s, %v", flow.State, err)
	flow, err = w.cad.Workflow(t.Context(), home, flow.WorkflowID)
	expect.True(t, err == nil && strings.HasPrefix(flow.Waits, "an agent for shaft: cad assign "+flow.WorkflowID+"/shaft AGENT"), "%q, %v", flow.Waits, err)
	flow, err = w.cad.CancelWorkflow(t.Context(), alice, flow.WorkflowID, "")
	expect.True(t, err == nil && flow.State == cad.WorkflowFailed && flow.Waits == "" && flow.Metrics.TotalDuration == 0 && flow.Metrics.AgentsUsed == 0,
		"%s %+v, %v", flow.State, flow.Metrics, err)
	expect.Fails(t, expect.Fault(w.cad.AssignTask(t.Context(), alice, "shaft", "nobody")), "a task that was dropped was assigned")
	w.sound()
}
