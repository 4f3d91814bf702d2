package fleet_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// elsewhere is a runtime whose agents work on when the engine dies.
type elsewhere struct {
	fleet.Runtime

	mu   sync.Mutex
	done []string // what was asked of the handle
}

func (*elsewhere) Outlasts() bool { return true }

func (e *elsewhere) Open(ctx context.Context, a fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	h, err := e.Runtime.Open(ctx, a, notify)
	return &leaver{h.(*handle), e}, err
}

func (e *elsewhere) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done = append(e.done, what)
}

type leaver struct {
	*handle
	of *elsewhere
}

func (l *leaver) Leave() {
	l.of.note("leave")
	l.end()
}

func (l *leaver) Interrupt() {
	l.of.note("interrupt")
	l.end()
}

// TestWorkElsewhereThatTheEngineIsTooSlowForIsNotInterrupted has a run lose its lease, as
// on a machine with far too much to do: the agent is left to work, and the next run of the
// same attempt goes on with it.
func TestWorkElsewhereThatTheEngineIsTooSlowForIsNotInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := &elsewhere{}
		w.wrap = func(rt fleet.Runtime) fleet.Runtime { e.Runtime = rt; return e }
		w.Close()
		w.Open()
		var attempts []int
		w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
			attempts = append(attempts, p.Attempt)
			if len(attempts) > 1 {
				return done(ctx, h, p)
			}
			select { // and no beat
			case <-h.dead():
			case <-ctx.Done():
			}
			return task.Outcome{Status: task.Cancelled, Output: core.Raw(`{}`)}, nil
		})
		w.run()
		w.create("bob")
		tk := w.assign("bob", "say hello")
		r := w.result(tk.TaskID)
		expect.True(t, r.Status == task.Succeeded, "%+v", r)
		now, err := w.tasks.Get(t.Context(), home, tk.TaskID)
		expect.True(t, err == nil && now.Attempt == 0, "%+v, %v, want its first attempt", now, err)
		e.mu.Lock()
		defer e.mu.Unlock()
		expect.True(t, slices.Equal(e.done, []string{"leave"}) && slices.Equal(attempts, []int{0, 0}),
			"the agent was asked to %q, in attempts %v", e.done, attempts)
		w.consistent()
	})
}
