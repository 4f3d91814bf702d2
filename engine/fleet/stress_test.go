package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
)

// TestEverythingAtOnce lets many hands work on a few agents. Whatever is
// refused, afterwards the counters are right, the log explains the store,
// nobody waits for nothing and every agent still takes a task.
func TestEverythingAtOnce(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (swarm.Outcome, error) {
		if p.Message == "last" {
			return done(ctx, h, p)
		}
		kill := h.dead()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			select {
			case <-kill:
				stop()
			case <-ctx.Done():
			}
		}()
		for i, tool := range []string{"read", "write", "remove"} {
			p.Beat()
			e := fleet.Event{Type: "tool_request", CallID: fmt.Sprint(i), Tool: tool}
			if a, err := p.Emit(ctx, e); err != nil || a.Decision == "abort" {
				return swarm.Outcome{}, errKilled
			}
		}
		return done(ctx, h, p)
	})
	names := []string{"a", "b", "c", "d"}
	for _, n := range names {
		w.create(n)
	}
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	var hands sync.WaitGroup
	for seed := range 8 {
		hands.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			for ctx.Err() == nil {
				w.meddle(ctx, r, names[r.IntN(len(names))])
			}
		})
	}
	hands.Wait()
	for _, n := range names {
		_, _ = w.fleet.Create(t.Context(), alice, fleet.Create{Name: n, Project: "Setup", Command: []string{"x"}})
		for _, undo := range []func(context.Context, core.Caller, string) (fleet.Agent, error){w.fleet.Resume, w.fleet.Start, w.fleet.Restart} {
			if _, err := undo(t.Context(), alice, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.await("all tasks are over", func() bool {
		open, err := w.judge.Open(t.Context(), home)
		if err != nil {
			t.Fatal(err)
		}
		for _, ap := range open {
			_, _ = w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Reason: "done"})
		}
		c, err := w.swarm.Counts(t.Context(), home)
		return err == nil && c.ByStatus[swarm.Queued]+c.ByStatus[swarm.Running] == 0
	})
	for _, n := range names {
		w.awaitStatus(n, fleet.Idle)
		if a := w.agent(n); a.Waiting != "" || a.TaskID != "" || a.Paused || a.Pausing {
			t.Errorf("left over: %+v", a)
		}
		if r := w.result(w.assign(n, "last").TaskID); r.Status != swarm.Succeeded {
			t.Errorf("%s: %+v", n, r)
		}
	}
	w.consistent()
}

// meddle does one thing to an agent; refusals are fine.
func (w *world) meddle(ctx context.Context, r *rand.Rand, name string) {
	f := w.fleet
	switch r.IntN(14) {
	case 0:
		_ = f.Delete(ctx, alice, name)
	case 1, 2:
		_, _ = f.Create(ctx, alice, fleet.Create{Name: name, Project: "Setup", Command: []string{"x"}})
	case 3:
		_, _ = f.Pause(ctx, alice, name)
	case 4, 5:
		_, _ = f.Resume(ctx, alice, name)
	case 6:
		_, _ = f.CancelTask(ctx, alice, name)
	case 7:
		_, _ = f.Restart(ctx, alice, name)
	case 8:
		_, _ = f.Stop(ctx, alice, name)
	case 9:
		_, _ = f.Start(ctx, alice, name)
	case 10:
		_, _ = f.Update(ctx, alice, name, fleet.Create{Project: "Setup", Role: fmt.Sprint("role-", r.IntN(3)), Command: []string{"x"}})
	case 11:
		if open, err := w.judge.Open(ctx, home); err == nil && len(open) > 0 {
			ap := open[r.IntN(len(open))]
			_, _ = w.judge.Answer(ctx, alice, ap.ApprovalID, judge.Answer{Approve: r.IntN(2) == 0, Reason: "r"})
		}
	default:
		_, _ = f.Assign(ctx, alice, name, "work", "")
	}
}
