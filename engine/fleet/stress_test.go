package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// TestEverythingAtOnce lets many hands work on a few agents. Whatever is
// refused, afterwards the counters are right, the log explains the store,
// nobody waits for nothing and every agent still takes a task.
func TestEverythingAtOnce(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(ask3)
	for _, n := range names {
		w.create(n)
	}
	w.hands(3*time.Second, 0).Wait()
	for _, n := range names {
		_, _ = w.fleet.Create(t.Context(), alice, fleet.Create{Name: n, Project: "Setup", Command: []string{"x"}})
		for _, undo := range []func(context.Context, core.Caller, string) (fleet.Agent, error){w.fleet.Resume, w.fleet.Start, w.fleet.Restart} {
			expect.Of(undo(t.Context(), alice, n))(t)
		}
	}
	w.Await("all tasks are over", func() bool {
		open := expect.Of(w.judge.Open(t.Context(), home))(t)
		for _, ap := range open {
			_, _ = w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Reason: "done"})
		}
		c, err := w.tasks.Counts(t.Context(), home)
		return err == nil && c.ByStatus[task.Queued]+c.ByStatus[task.Running] == 0
	})
	for _, n := range names {
		w.awaitStatus(n, fleet.Idle)
		a := w.agent(n)
		expect.True(t, a.Waiting == "" && a.TaskID == "" && !a.Paused && !a.Pausing, "left over: %+v", a)
		r := w.result(w.assign(n, "last").TaskID)
		expect.True(t, r.Status == task.Succeeded, "%s: %+v", n, r)
	}
	w.consistent()
}

// TestCrashAnywhere cuts the data file off at any moment. What is on the disk
// then explains itself, and a new engine goes on from it.
func TestCrashAnywhere(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(ask3)
	for _, n := range names {
		w.create(n)
	}
	for i := range 12 {
		hands := w.hands(time.Minute, uint64(i))
		until := w.counted() + 10 + i*i
		w.Await("they have done more", func() bool { return w.counted() >= until })
		w.crash()
		hands.Wait()
		w.Open()
		w.consistent()
		w.run()
	}
	for _, n := range names {
		_, _ = w.fleet.Create(t.Context(), alice, fleet.Create{Name: n, Project: "Setup", Command: []string{"x"}})
		expect.Of(w.fleet.Resume(t.Context(), alice, n))(t)
		_, err := w.fleet.CancelTask(t.Context(), alice, n)
		expect.Must(t, err == nil || core.AsError(err).Code == core.Conflict, "%v", err)
		expect.Of(w.fleet.Start(t.Context(), alice, n))(t)
	}
	w.Await("all agents are open", func() bool {
		for _, a := range w.fleet.Live(home) {
			if a.Status != fleet.Idle && a.Status != fleet.Busy {
				return false
			}
		}
		return true
	})
	w.consistent()
}

// counted is how many events the log has.
func (w *world) counted() int {
	return expect.Of(w.Ledger.List(w.T.Context(), home, core.Filter{}))(w.T).Info.Total
}

var names = []string{"a", "b", "c", "d"}

// ask3 asks for three tools and ends.
func ask3(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
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
			return killed, nil
		}
	}
	return done(ctx, h, p)
}

// hands meddle for a while, or until the data file is closed.
func (w *world) hands(d time.Duration, seed uint64) *sync.WaitGroup {
	ctx := w.T.Context()
	begin := time.Now()
	var all sync.WaitGroup
	for n := range uint64(8) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, n))
			for time.Since(begin) < d {
				if err := w.meddle(ctx, r, names[r.IntN(len(names))]); errors.Is(err, store.ErrClosed) {
					return
				}
			}
		})
	}
	return &all
}

// meddle does one thing to an agent; refusals are fine.
func (w *world) meddle(ctx context.Context, r *rand.Rand, name string) (err error) {
	f := w.fleet
	switch r.IntN(14) {
	case 0:
		err = f.Delete(ctx, alice, name)
	case 1, 2:
		_, err = f.Create(ctx, alice, fleet.Create{Name: name, Project: "Setup", Command: []string{"x"}})
	case 3:
		_, err = f.Pause(ctx, alice, name)
	case 4, 5:
		_, err = f.Resume(ctx, alice, name)
	case 6:
		_, err = f.CancelTask(ctx, alice, name)
	case 7:
		_, err = f.Restart(ctx, alice, name)
	case 8:
		_, err = f.Stop(ctx, alice, name)
	case 9:
		_, err = f.Start(ctx, alice, name)
	case 10:
		_, err = f.Update(ctx, alice, name, fleet.Create{Project: "Setup", Role: fmt.Sprint("role-", r.IntN(3)), Command: []string{"x"}})
	case 11:
		if open, _ := w.judge.Open(ctx, home); len(open) > 0 {
			ap := open[r.IntN(len(open))]
			_, err = w.judge.Answer(ctx, alice, ap.ApprovalID, judge.Answer{Approve: r.IntN(2) == 0, Reason: "r"})
		}
	default:
		_, err = f.Assign(ctx, alice, name, "work", "")
	}
	return err
}
