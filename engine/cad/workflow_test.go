package cad_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// step is an operation that makes a point.
func point(id string) cad.Step {
	return cad.Step{ID: id, Method: "entity.create_point", Params: core.Raw(`{"entity_id":"` + id + `"}`)}
}

func planned(id, agent string, after []string, steps ...cad.Step) cad.PlannedTask {
	return cad.PlannedTask{TaskID: id, AgentID: agent, Brief: cad.Brief{
		Description: "Do " + id, Dependencies: after, SuccessCriteria: "It is done", Operations: steps,
	}}
}

// four agents make two points each; a fifth merges them.
func four() cad.Scenario {
	s := cad.Scenario{
		Name: "four", Description: "Four and one", Pattern: cad.Mixed, SuccessCriteria: "Eight points",
		Agents: []cad.Seat{{AgentID: "joiner", RoleName: "integrator", WorkspaceID: "ws_all"}},
	}
	join := planned("join", "joiner", nil)
	join.Check = "size(entities) == 8 && conflicts == 0"
	for _, n := range []string{"a", "b", "c", "d"} {
		s.Agents = append(s.Agents, cad.Seat{AgentID: "maker_" + n, RoleName: "modeler", WorkspaceID: "ws_" + n})
		s.Tasks = append(s.Tasks, planned(n, "maker_"+n, nil, point(n+"1"), point(n+"2")))
		join.Dependencies = append(join.Dependencies, n)
		join.Operations = append(join.Operations, cad.Step{ID: "merge_" + n, Method: "workspace.merge", Params: core.Raw(
			`{"source_workspace_id":"${tasks.` + n + `.workspace_id}","target_workspace_id":"${agent.workspace_id}"}`)})
	}
	s.Tasks = append(s.Tasks, join)
	return s
}

func (w *world) put(s cad.Scenario) {
	w.T.Helper()
	_, action, err := w.cad.PutScenario(context.Background(), alice, s)
	expect.Must(w.T, err == nil && action == "created", "%s %v", action, err)
}

func (w *world) start(name string, change ...func(*cad.StartWorkflow)) cad.Workflow {
	w.T.Helper()
	s := cad.StartWorkflow{Scenario: name}
	for _, c := range change {
		c(&s)
	}
	return expect.Of(w.cad.RunScenario(context.Background(), alice, s))(w.T)
}

func (w *world) flow(id string) cad.Workflow {
	w.T.Helper()
	return expect.Of(w.cad.Workflow(context.Background(), home, id))(w.T)
}

// over waits for a workflow's end.
func (w *world) over(id string) cad.Workflow {
	w.T.Helper()
	w.await("the end of "+id, func() bool { return w.flow(id).State.Final() })
	return w.flow(id)
}

func of(f cad.Workflow, task string) cad.TaskAssignment {
	for _, a := range f.Assignments {
		if a.TaskID == task {
			return a
		}
	}
	return cad.TaskAssignment{}
}

func TestAWorkflowRunsItsTasksAsTheirTurnComes(t *testing.T) {
	w := newWorld(t)
	w.put(four())
	flow := w.start("four")
	expect.True(t, flow.State == cad.WorkflowRunning && flow.Completion == 0 && flow.StartedAt != 0 && flow.CompletedAt == 0, "at its start: %+v", flow)
	expect.Is(t, of(flow, "join").Status, cad.Blocked, "join is")
	w.run()
	flow = w.over(flow.WorkflowID)
	m := flow.Metrics
	expect.True(t, flow.State == cad.WorkflowCompleted && flow.Completion == 100 && flow.CompletedAt >= flow.StartedAt && len(flow.Failures) == 0,
		"at its end: %+v", flow)
	expect.True(t, m.TotalOperations == 12 && m.Successful == 12 && m.Failed == 0 && m.AgentsUsed == 5 && m.Completed == 5 && m.TotalDuration > 0,
		"metrics %+v", m)
	expect.Is(t, w.ids("ws_all"), "a1 a2 b1 b2 c1 c2 d1 d2", "ws_all has")
	for _, a := range flow.Assignments {
		st, err := w.tasks.Get(t.Context(), home, a.SwarmTask)
		expect.True(t, err == nil && st.Status == task.Succeeded && st.Agent == a.AgentID && st.TraceID == flow.TraceID && st.Kind == cad.KindAssignment,
			"task of %s: %+v, %v", a.TaskID, st, err)
		expect.True(t, a.Status == cad.Completed && a.AssignedAt != 0 && a.CompletedAt >= a.AssignedAt && len(a.Result) != 0, "%+v", a)
	}
	again := w.start("four")
	expect.True(t, of(again, "a").AgentID == "maker_a_2" && of(again, "join").WorkspaceID == "ws_all_2", "the second run: %+v", again.Agents)
	again = w.over(again.WorkflowID)
	expect.True(t, again.State == cad.WorkflowCompleted && w.ids("ws_all_2") == "a1 a2 b1 b2 c1 c2 d1 d2",
		"the second run: %s, %s", again.State, w.ids("ws_all_2"))
	list, err := w.cad.Workflows(t.Context(), home, core.Filter{Status: "completed", Agent: "maker_a_2"})
	expect.True(t, err == nil && len(list.Items) == 1 && list.Items[0].WorkflowID == again.WorkflowID, "%+v %v", list, err)
	w.sound()
}

// failing makes the worker refuse one entity until it is switched off.
func (w *world) failing(entity string) (off func()) {
	var on atomic.Bool
	on.Store(true)
	w.pool.on(func(_ context.Context, _ *fakeWorker, c cad.Call) error {
		if on.Load() && strings.Contains(string(c.Params), `"entity_id":"`+entity+`"`) {
			return fault(-32603, "INVALID_GEOMETRY", "radius", "radius: 0 is not allowed")
		}
		return nil
	}, nil)
	return func() { on.Store(false) }
}

func TestOneOfFourFailingLeavesTheOthersWork(t *testing.T) {
	w := newWorld(t)
	w.put(four())
	heal := w.failing("c2")
	w.run()
	flow := w.over(w.start("four").WorkflowID)
	if flow.State != cad.PartialFailure || flow.Completion != 60 || flow.Metrics.Completed != 3 || flow.Metrics.FailedNow != 1 || flow.Metrics.Failed != 1 || flow.Metrics.Successful != 7 {
		t.Errorf("%s %+v", flow.Shown(), flow.Metrics)
	}
	if len(flow.Failures) != 1 || flow.Failures[0].AgentID != "maker_c" || flow.Failures[0].TaskID != "c" || flow.Failures[0].Operation != "entity.create_point" ||
		flow.Failures[0].Field != "radius" || !strings.Contains(flow.Failures[0].Error, "operation 2, entity.create_point: INVALID_GEOMETRY: radius") {
		t.Errorf("%+v", flow.Failures)
	}
	expect.True(t, of(flow, "join").Status == cad.Blocked && strings.Contains(string(of(flow, "c").Result), `"suggestion":"give another"`),
		"%+v", flow.Assignments)
	_, err := w.cad.RetryWorkflow(t.Context(), alice, flow.WorkflowID, "a")
	expect.True(t, code(err) == core.Conflict, "retry of what is completed: %v", err)
	_, err = w.cad.RetryWorkflow(t.Context(), alice, flow.WorkflowID, "x")
	expect.True(t, code(err) == core.InvalidInput, "retry of nothing: %v", err)
	heal()
	expect.Of(w.cad.RetryWorkflow(t.Context(), alice, flow.WorkflowID, ""))(t)
	flow = w.over(flow.WorkflowID)
	expect.True(t, flow.State == cad.WorkflowCompleted && w.ids("ws_all") == "a1 a2 b1 b2 c1 c2 d1 d2" && flow.Failures[0].Again && of(flow, "c").Tries == 2,
		"%s %s %+v", flow.Shown(), w.ids("ws_all"), flow.Failures)
	if n := w.pool.of("entity.create_point"); n != 9 { // c1 was not made again
		t.Errorf("%d points were computed", n)
	}
	expect.Is(t, code(expect.Fault(w.cad.RetryWorkflow(t.Context(), alice, flow.WorkflowID, ""))), core.Conflict, "retry of a completed one")
	w.sound()
}

func TestAKilledAgentIsReplacedOnRetry(t *testing.T) {
	w := newWorld(t)
	w.put(four())
	reached := make(chan bool, 4)
	hold := make(chan bool)
	w.pool.on(func(ctx context.Context, _ *fakeWorker, c cad.Call) error {
		if strings.Contains(string(c.Params), `"entity_id":"b1"`) {
			reached <- true
			<-hold
		}
		return nil
	}, nil)
	w.run()
	flow := w.start("four")
	<-reached
	expect.Of(w.cad.ShutdownAgent(t.Context(), alice, "maker_b"))(t)
	close(hold)
	flow = w.over(flow.WorkflowID)
	expect.True(t, flow.State == cad.PartialFailure && flow.Metrics.Completed == 3 && w.ids("ws_b") == "" && w.ids("ws_d") == "d1 d2",
		"%s %+v", flow.Shown(), flow.Failures)
	expect.Of(w.cad.RetryWorkflow(t.Context(), alice, flow.WorkflowID, "b"))(t)
	flow = w.over(flow.WorkflowID)
	if b := of(flow, "b"); flow.State != cad.WorkflowCompleted || b.AgentID != "maker_b_2" || b.WorkspaceID != "ws_b" || w.ids("ws_all") != "a1 a2 b1 b2 c1 c2 d1 d2" {
		t.Errorf("%s %+v", flow.Shown(), b)
	}
	w.sound()
}

func TestATaskGoesToAnotherAgentOfARoleThatCanDoIt(t *testing.T) {
	w := newWorld(t)
	w.put(four())
	heal := w.failing("c2")
	w.run()
	flow := w.over(w.start("four").WorkflowID)
	w.agent("checker", "validator")
	w.agent("spare", "optimizer")
	for _, c := range []struct{ task, agent, want string }{
		{"c", "checker", "which role validator does not allow"},
		{"c", "nobody", "not found"},
		{"a", "spare", "task a is completed"},
		{"z", "spare", "a task of workflow"},
	} {
		_, err := w.cad.ReassignWorkflow(t.Context(), alice, flow.WorkflowID, c.task, c.agent)
		expect.True(t, err != nil && strings.Contains(err.Error(), c.want), "%s to %s: %v, want %q", c.task, c.agent, err, c.want)
	}
	heal()
	expect.Of(w.cad.ReassignWorkflow(t.Context(), alice, flow.WorkflowID, "c", "spare"))(t)
	flow = w.over(flow.WorkflowID)
	if a := of(flow, "c"); flow.State != cad.WorkflowCompleted || a.AgentID != "spare" || a.WorkspaceID != "ws_c" || w.ids("ws_c") != "c1 c2" || w.ids("ws_spare") != "" {
		t.Errorf("%s %+v %s", flow.Shown(), a, w.ids("ws_c"))
	}
	w.sound()
}

func TestACancelledWorkflowStandsStillAndCanBeTakenUpAgain(t *testing.T) {
	w := newWorld(t)
	w.put(four())
	reached := make(chan bool, 1)
	hold := make(chan bool)
	w.pool.on(func(ctx context.Context, _ *fakeWorker, c cad.Call) error {
		if strings.Contains(string(c.Params), `"entity_id":"d2"`) {
			select {
			case reached <- true:
			default:
			}
			select {
			case <-hold:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}, nil)
	w.run()
	flow := w.start("four")
	<-reached
	w.await("the others", func() bool { return w.flow(flow.WorkflowID).Metrics.Completed == 3 })
	expect.Of(w.cad.CancelWorkflow(t.Context(), alice, flow.WorkflowID, "enough"))(t)
	flow = w.over(flow.WorkflowID)
	if flow.State != cad.PartialFailure || of(flow, "d").Status != cad.Failed || of(flow, "join").Status != cad.Failed || flow.Cancelled != "enough" {
		t.Errorf("%s %+v", flow.Shown(), flow.Assignments)
	}
	expect.Is(t, code(expect.Fault(w.cad.CancelWorkflow(t.Context(), alice, flow.WorkflowID, ""))), core.Conflict, "cancelled twice")
	close(hold)
	expect.Of(w.cad.RetryWorkflow(t.Context(), alice, flow.WorkflowID, ""))(t)
	flow = w.over(flow.WorkflowID)
	expect.True(t, flow.State == cad.WorkflowCompleted && w.ids("ws_all") == "a1 a2 b1 b2 c1 c2 d1 d2", "%s %+v", flow.Shown(), flow.Failures)
	w.sound()
}

// reviewed is a design that is too heavy at first.
func reviewed(rounds int) cad.Scenario {
	design := planned("design", "maker", nil, point("part"))
	design.Operations[0].ID = "part"
	design.ReworkOperations = []cad.Step{point("hole"), {ID: "part", Method: "entity.create_point", Params: core.Raw(`{"entity_id":"lighter","x":"${rework.round_check}"}`)}}
	design.ReworkOperations[1].Params = core.Raw(`{"entity_id":"lighter"}`)
	review := planned("review", "judge_a", []string{"design"}, cad.Step{ID: "mass", Method: "measure.mass", Params: core.Raw(
		`{"workspace_id":"${tasks.design.workspace_id}","entity_id":"${tasks.design.part.entity_id}"}`)})
	review.Check, review.Rework, review.MaxRounds = "results.mass.mass < 220.0", "design", rounds
	return cad.Scenario{
		Name: "reviewed", Description: "A loop", Pattern: cad.Sequential, SuccessCriteria: "Light enough",
		Agents: []cad.Seat{{AgentID: "maker", RoleName: "modeler", WorkspaceID: "ws_maker"}, {AgentID: "judge_a", RoleName: "validator", WorkspaceID: "ws_judge"}},
		Tasks:  []cad.PlannedTask{design, review, planned("finish", "maker", []string{"review"}, point("label"))},
	}
}

func TestWhatAReviewRejectsIsDoneAgain(t *testing.T) {
	w := newWorld(t)
	w.put(reviewed(2))
	w.pool.answers = map[string]func(cad.Call) string{"measure.mass": func(c cad.Call) string {
		if strings.Contains(string(c.Params), "lighter") {
			return `{"mass":213.3}`
		}
		return `{"mass":251.2}`
	}}
	w.run()
	flow := w.over(w.start("reviewed").WorkflowID)
	design, review := of(flow, "design"), of(flow, "review")
	if flow.State != cad.WorkflowCompleted || design.Round != 1 || review.Round != 1 || flow.Metrics.Rounds != 1 || len(flow.Failures) != 0 || flow.Metrics.TotalOperations != 6 {
		t.Errorf("%s %+v %+v", flow.Shown(), flow.Metrics, flow.Failures)
	}
	if !strings.Contains(string(design.Rejected), `"value":251.2`) || w.ids("ws_maker") != "hole label lighter part" || w.pool.of("measure.mass") != 2 {
		t.Errorf("%s %s", design.Rejected, w.ids("ws_maker"))
	}
	all, err := w.cad.Messages(t.Context(), home, "maker", core.Filter{})
	expect.Must(t, err == nil && len(all.Items) != 0, "%+v %v", all, err)
	asked := all.Items[len(all.Items)-1]
	if asked.FromAgentID != "judge_a" || asked.MessageType != cad.Request || !strings.Contains(string(asked.Content), `"request_type":"request_rework"`) || !strings.Contains(string(asked.Content), `"value":251.2`) {
		t.Errorf("%+v", asked)
	}
	w.sound()
}

func TestAReviewThatNeverPassesFails(t *testing.T) {
	w := newWorld(t)
	w.put(reviewed(2))
	w.pool.answers = map[string]func(cad.Call) string{"measure.mass": func(cad.Call) string { return `{"mass":251.2}` }}
	w.run()
	flow := w.over(w.start("reviewed").WorkflowID)
	if flow.State != cad.PartialFailure || len(flow.Failures) != 1 || flow.Failures[0].ErrorCode != cad.CheckFailed || flow.Metrics.Rounds != 1 || of(flow, "finish").Status != cad.Blocked {
		t.Errorf("%s %+v", flow.Shown(), flow.Failures)
	}
	w.sound()
}

// cut is a store that dies at its nth change.
type cut struct {
	store.Store
	left *atomic.Int64
	dead chan bool
}

var errCut = errors.New("the power is cut")

func (c cut) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	if c.left.Add(-1) < 0 {
		select {
		case c.dead <- true:
		default:
		}
		return errCut
	}
	return c.Store.Update(ctx, tenant, fn)
}

func TestAWorkflowGoesOnAfterACrashAtAnyChange(t *testing.T) {
	const most = 90 // changes that the whole takes, and more
	for n := int64(1); n < most; n += 4 {
		t.Run(fmt.Sprint("change ", n), func(t *testing.T) {
			t.Parallel()
			crashAt(t, n)
		})
	}
}

// crashAt cuts the power at the nth change of a workflow, and has another engine
// go on with it.
func crashAt(t *testing.T, n int64) {
	left, dead := new(atomic.Int64), make(chan bool, 1)
	left.Store(1 << 40)
	w := newWorld(t, func(w *world) { w.wrap = func(st store.Store) store.Store { return cut{st, left, dead} } })
	w.put(four())
	flow := w.start("four")
	left.Store(n)
	ctx, stop := context.WithCancel(context.Background())
	var engine sync.WaitGroup
	for _, run := range []func(context.Context) error{w.swarm.Run, w.cad.Run} {
		engine.Go(func() { _ = run(ctx) }) // it ends with an error: its store is gone
	}
	w.await("the cut", func() bool {
		return len(dead) > 0 || w.flow(flow.WorkflowID).State.Final()
	})
	stop()
	engine.Wait()
	left.Store(1 << 40)
	w.again()
	w.run()
	flow = w.over(flow.WorkflowID)
	expect.Must(t, flow.State == cad.WorkflowCompleted && flow.Metrics.TotalOperations == 12 && flow.Metrics.Failed == 0,
		"%s %+v %+v", flow.Shown(), flow.Metrics, flow.Failures)
	for _, s := range []string{"a", "b", "c", "d"} {
		got := w.space("ws_" + s)
		expect.True(t, got.Seq == 3, "ws_%s has %d entries", s, got.Seq)
	}
	got := w.space("ws_all")
	expect.True(t, got.Seq == 5 && w.ids("ws_all") == "a1 a2 b1 b2 c1 c2 d1 d2", "ws_all %+v %s", got, w.ids("ws_all"))
	w.sound()
}
