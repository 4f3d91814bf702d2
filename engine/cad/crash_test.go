package cad_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/storetest"
)

// TestKilledAtAnyInstantAnOperationHappenedInFullOrNotAtAll has agents draw,
// merge and send in a process that is killed again and again. After each kill
// every operation that was answered is in its workspace's journal once, the
// counters agree with it, the log explains the store, and replaying a journal
// gives the workspace.
func TestKilledAtAnyInstantAnOperationHappenedInFullOrNotAtAll(t *testing.T) {
	storetest.Crash(t, storetest.CrashOptions{
		Open:   enginetest.Sealed,
		Rounds: 30, Life: 500 * time.Millisecond, Budget: 10 * time.Second,
		Load: func(ctx context.Context, st store.Store, ack func(string)) error {
			return drawUntilKilled(ctx, t, st, ack)
		},
		Verify: func(t testing.TB, _ string, st store.Store, acked []string) {
			if len(acked) == 0 {
				return // killed before there was a tenant
			}
			w := worldOver(t, st)
			w.sound()
			w.acknowledged(acked)
		},
	})
}

const crews = 4

// drawUntilKilled tells each operation that was answered as "agent entity".
func drawUntilKilled(ctx context.Context, t testing.TB, st store.Store, ack func(string)) error {
	w := worldOver(t, st)
	if _, err := w.swarm.CreateTenant(ctx, alice, home); err != nil && code(err) != core.Conflict {
		return err
	}
	for i := range crews {
		for id, role := range map[string]string{fmt.Sprint("d", i): "designer", fmt.Sprint("i", i): "integrator"} {
			if _, err := w.cad.CreateAgent(ctx, alice, cad.CreateAgent{AgentID: id, RoleName: role, WorkspaceID: "ws_" + id, Workspace: &cad.CreateWorkspace{}}); err != nil && code(err) != core.Conflict {
				return err
			}
		}
	}
	var all sync.WaitGroup
	errs := make(chan error, crews)
	for i := range crews {
		all.Go(func() { errs <- w.draw(ctx, i, ack) })
	}
	all.Wait()
	close(errs)
	var first error
	for err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) && first == nil {
			first = err
		}
	}
	return first
}

func (w *world) draw(ctx context.Context, crew int, ack func(string)) error {
	draws, merges := fmt.Sprint("d", crew), fmt.Sprint("i", crew)
	for n := 0; ctx.Err() == nil; n++ {
		mark := fmt.Sprintf("%s/%d/%d", draws, os.Getpid(), n)
		for range 2 { // the second finds what the first did
			done, err := w.cad.Execute(ctx, alice, cad.Operation{AgentID: draws, Method: "entity.create_point", Mark: mark})
			if err != nil {
				return err
			}
			ack(draws + " " + done.Entities[0])
		}
		if _, err := w.cad.Execute(ctx, alice, cad.Operation{AgentID: draws, Method: "solid.extrude"}); class(err) != cad.RoleViolation {
			return fmt.Errorf("a violation passed: %w", err)
		}
		merge := core.Raw(fmt.Sprintf(`{"source_workspace_id":"ws_%s","target_workspace_id":"ws_%s"}`, draws, merges))
		if _, err := w.cad.Execute(ctx, alice, cad.Operation{AgentID: merges, Method: "workspace.merge", Params: merge}); err != nil {
			return err
		}
		if _, err := w.cad.SendMessage(ctx, alice, cad.SendMessage{From: draws, To: merges, Type: cad.Request, Content: core.Raw(rework)}); err != nil {
			return err
		}
		if _, err := w.cad.ReadMessages(ctx, alice, merges, 100); err != nil {
			return err
		}
	}
	return nil
}

// TestATaskThatAnEngineGivesUpAsItOpensFailsItsAssignment kills the engine as
// often as a task may be tried and get no further: the queue fails the task
// before anybody follows it.
func TestATaskThatAnEngineGivesUpAsItOpensFailsItsAssignment(t *testing.T) {
	left := new(atomic.Int64)
	left.Store(1 << 40)
	w := newWorld(t, func(w *world) {
		w.wrap = func(st store.Store) store.Store { return cut{st, left, make(chan bool, 1)} }
		w.deaths = 1
	})
	s := four()
	s.Name, s.Agents, s.Tasks = "two", s.Agents[1:3], s.Tasks[:2]
	w.put(s)
	w.agent("mona", "modeler")
	flow := w.start("two")
	alone, err := w.cad.Assign(t.Context(), alice, "mona", core.Raw(`{"description":"One point","operations":[{"method":"entity.create_point","params":{"entity_id":"one"}}]}`))
	expect.No(t, err)
	for range 6 { // one death of two is free
		hung := make(chan string, 100)
		w.pool.most = 3
		w.pool.on(func(ctx context.Context, _ *fakeWorker, c cad.Call) error {
			id := string(memberOf(t, c.Params, "entity_id"))
			if id != `"b1"` && id != `"one"` {
				return nil
			}
			hung <- id
			<-ctx.Done()
			return ctx.Err()
		}, nil)
		w.dies(left, func() {
			first, second := <-hung, <-hung
			expect.Must(t, first != second, "one was tried twice")
			w.await("what does not hang", func() bool { return of(w.flow(flow.WorkflowID), "a").Status == cad.Completed })
		})
	}
	w.run()
	flow = w.over(flow.WorkflowID)
	if b := of(flow, "b"); flow.State != cad.PartialFailure || b.Status != cad.Failed || len(flow.Failures) != 1 || flow.Failures[0].ErrorCode != "lease_lost" {
		t.Errorf("%s %+v %+v", flow.Shown(), flow.Failures, b)
	}
	alone, err = w.cad.Assignment(t.Context(), home, alone.SwarmTask)
	expect.True(t, err == nil && alone.Status == cad.Failed, "%+v, %v", alone, err)
	expect.Of(w.cad.RetryWorkflow(t.Context(), alice, flow.WorkflowID, ""))(t)
	flow = w.over(flow.WorkflowID)
	expect.True(t, flow.State == cad.WorkflowCompleted && w.ids("ws_b") == "b1 b2", "%s %s", flow.Shown(), w.ids("ws_b"))
	w.sound()
}

// TestEnginesThatDieUnderAnAssignmentCostItNoAttempt kills one at each of its
// operations, more often than a task may be tried.
func TestEnginesThatDieUnderAnAssignmentCostItNoAttempt(t *testing.T) {
	left := new(atomic.Int64)
	left.Store(1 << 40)
	w := newWorld(t, func(w *world) {
		w.wrap = func(st store.Store) store.Store { return cut{st, left, make(chan bool, 1)} }
		w.deaths = 1
	})
	w.agent("mona", "modeler")
	const points = 8
	var steps []string
	for i := range points {
		steps = append(steps, fmt.Sprintf(`{"method":"entity.create_point","params":{"entity_id":"p%d"}}`, i))
	}
	given, err := w.cad.Assign(t.Context(), alice, "mona", core.Raw(`{"description":"Points","operations":[`+strings.Join(steps, ",")+`]}`))
	expect.No(t, err)
	for i := range points {
		hung := make(chan bool, 1)
		w.pool.on(func(ctx context.Context, _ *fakeWorker, c cad.Call) error {
			if string(memberOf(t, c.Params, "entity_id")) != fmt.Sprintf(`"p%d"`, i) {
				return nil
			}
			hung <- true
			<-ctx.Done()
			return ctx.Err()
		}, nil)
		w.dies(left, func() { <-hung })
	}
	w.pool.on(nil, nil)
	w.run()
	var tk task.Task
	w.await("the assignment", func() bool {
		tk, err = w.tasks.Get(t.Context(), home, given.SwarmTask)
		return err != nil || tk.Status.Terminal()
	})
	if err != nil || tk.Status != task.Succeeded || tk.Attempt != 0 || w.now("mona").SuccessCount != points {
		t.Errorf("%s after attempt %d, %+v, %v", tk.Status, tk.Attempt, w.now("mona"), err)
	}
	w.sound()
}

// dies runs an engine until something has come about, cuts its store's power,
// and opens another.
func (w *world) dies(left *atomic.Int64, until func()) {
	ctx, stop := context.WithCancel(w.T.Context())
	var engine sync.WaitGroup
	for _, run := range []func(context.Context) error{w.swarm.Run, w.cad.Run} {
		engine.Go(func() { _ = run(ctx) }) // it ends with an error: its store is gone
	}
	until()
	left.Store(0)
	stop()
	engine.Wait()
	left.Store(1 << 40)
	w.again()
}

func memberOf(t *testing.T, object core.Raw, name string) core.Raw {
	t.Helper()
	var all map[string]core.Raw
	expect.No(t, core.DecodeStored(object, &all))
	return all[name]
}

// acknowledged checks that what was answered is there, once.
func (w *world) acknowledged(acked []string) {
	there := map[string]bool{}
	for _, line := range acked {
		agent, entity, _ := strings.Cut(line, " ")
		there[agent+" "+entity] = true
	}
	for i := range crews {
		id := fmt.Sprint("d", i)
		all, err := w.cad.AllEntities(context.Background(), home, "ws_"+id)
		if err != nil {
			if code(err) == core.NotFound { // killed before
				continue
			}
			w.T.Fatal(err)
		}
		for _, e := range all {
			delete(there, id+" "+e.ID)
		}
		if a := w.now(id); a.SuccessCount != len(all) || a.CreatedCount != len(all) || a.RoleViolations != a.ErrorCount || a.OperationCount != a.SuccessCount+a.ErrorCount {
			w.T.Errorf("%d entities of %+v", len(all), a)
		}
	}
	expect.True(w.T, len(there) == 0, "%d answered operations are missing, such as %v", len(there), there)
}
