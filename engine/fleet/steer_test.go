package fleet_test

import (
	"context"
	"errors"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestAnAgentAtWorkIsToldAtOnce(t *testing.T) {
	w, release := busy(t)
	w.tell("bob", "later", false)
	told := w.tell("bob", "use the other port", true)
	expect.True(t, told.State == fleet.ToldNow && told.TaskID == w.agent("bob").TaskID, "told %+v", told)
	same(t, "the queue", w.texts("bob"), []string{"use the other port", "later"})
	_, err := w.fleet.Withdraw(t.Context(), alice, "bob", told.MessageID)
	refused(t, err, core.Conflict, "field", "message")
	close(release)
	w.awaitGiven("bob", 2)
	h := w.rt.handle("bob")
	h.mu.Lock()
	defer h.mu.Unlock()
	same(t, "heard", h.heard, []string{"use the other port"})
	same(t, "given", w.given("bob"), []string{"first", "later"})
	same(t, "left", w.texts("bob"), nil)
	w.consistent()
}

// between is an agent that hears between its turns: it tells what it heard.
func between(t *testing.T, first error) (w *world, turn chan struct{}, heard chan string) {
	w = newWorld(t).run()
	turn, heard = make(chan struct{}), make(chan string, 10)
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		h.mu.Lock()
		h.hears = fleet.ErrNextPrompt
		h.mu.Unlock()
		if out, err := beatUntil(ctx, h, p, turn); err != nil {
			return out, err
		}
		for {
			m, err := p.Next(ctx)
			if err != nil || m == nil {
				break
			}
			heard <- m.Text
		}
		if err := first; err != nil {
			first = nil
			return task.Outcome{}, err
		}
		return done(ctx, h, p)
	})
	w.create("bob")
	w.tell("bob", "first", false)
	w.awaitStatus("bob", fleet.Busy)
	w.Await("that it works", func() bool {
		h := w.rt.handle("bob")
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.hears != nil
	})
	return w, turn, heard
}

func TestAnAgentThatHearsBetweenItsTurnsIsToldInTheSameTask(t *testing.T) {
	w, turn, heard := between(t, nil)
	told := w.tell("bob", "and the docs", true)
	expect.True(t, told.State == fleet.ToldQueued && told.Note != "", "told %+v", told)
	close(turn)
	expect.Is(t, <-heard, "and the docs", "heard")
	w.awaitGiven("bob", 1)
	same(t, "given", w.given("bob"), []string{"first"})
	same(t, "left", w.texts("bob"), nil)
	w.consistent()
}

func TestWhatWasToldInAFailedAttemptIsToldInTheNext(t *testing.T) {
	w, turn, heard := between(t, errors.New("the process was lost"))
	w.tell("bob", "and the docs", true)
	close(turn)
	for range 2 {
		expect.Is(t, <-heard, "and the docs", "heard")
	}
	w.awaitGiven("bob", 1)
	same(t, "left", w.texts("bob"), nil)
	w.consistent()
}

func TestWhatWasToldBeforeACrashIsToldToTheNextAttempt(t *testing.T) {
	w, _ := busy(t)
	told := w.tell("bob", "use the other port", true)
	expect.Must(t, told.State == fleet.ToldNow, "told %+v", told)
	w.crash()
	w.Open()
	release := make(chan struct{})
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		return beatUntil(ctx, h, p, release)
	})
	w.run()
	w.approval()
	w.sendOn()
	w.awaitStatus("bob", fleet.Busy)
	w.Await("that the next attempt hears it", func() bool {
		h := w.rt.handle("bob")
		if h == nil {
			return false
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.heard) == 1
	})
	close(release)
	w.awaitGiven("bob", 1)
	same(t, "left", w.texts("bob"), nil)
	w.consistent()
}
