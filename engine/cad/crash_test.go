package cad_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
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
		Open: func(dir string) (store.Store, error) {
			sealer, err := audit.OpenSealer(filepath.Join(dir, "crash.db.key"))
			if err != nil {
				return nil, err
			}
			return store.Open(filepath.Join(dir, "crash.db"), store.Options{Seal: sealer.Seal})
		},
		Rounds: 30, Life: 500 * time.Millisecond, Budget: 10 * time.Second,
		Load: func(ctx context.Context, st store.Store, ack func(string)) error {
			return drawUntilKilled(ctx, t, st, ack)
		},
		Verify: func(t testing.TB, _ string, st store.Store, acked []string) {
			if len(acked) == 0 {
				return // killed before there was a tenant
			}
			w := &world{t: t, path: filepath.Join(t.TempDir(), "x"), pool: newPool()}
			if err := w.build(st); err != nil {
				t.Fatal(err)
			}
			w.sound()
			w.acknowledged(acked)
		},
	})
}

const crews = 4

// drawUntilKilled tells each operation that was answered as "agent entity".
func drawUntilKilled(ctx context.Context, t testing.TB, st store.Store, ack func(string)) error {
	w := &world{t: t, path: filepath.Join(os.TempDir(), "cad-crash-never-made", "x"), pool: newPool()}
	if err := w.build(st); err != nil {
		return err
	}
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
			w.t.Fatal(err)
		}
		for _, e := range all {
			delete(there, id+" "+e.ID)
		}
		if a := w.now(id); a.SuccessCount != len(all) || a.CreatedCount != len(all) || a.RoleViolations != a.ErrorCount || a.OperationCount != a.SuccessCount+a.ErrorCount {
			w.t.Errorf("%d entities of %+v", len(all), a)
		}
	}
	if len(there) > 0 {
		w.t.Errorf("%d answered operations are missing, such as %v", len(there), there)
	}
}
