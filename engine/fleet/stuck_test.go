package fleet_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// watched is a running world that notices soon.
func watched(t *testing.T, l fleet.StuckLimits) *world {
	w := newWorld(t)
	w.Close()
	w.stuck = l
	w.Open()
	return w.run()
}

// steps is a script that goes on with each token.
func (w *world) steps(each func(ctx context.Context, h *handle, p fleet.Prompt)) chan<- struct{} {
	next := make(chan struct{})
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		for {
			select {
			case _, more := <-next:
				if !more {
					return done(ctx, h, p)
				}
				each(ctx, h, p)
			case <-time.After(5 * time.Millisecond):
				p.Beat()
			case <-h.dead():
				return killed, nil
			}
		}
	})
	return next
}

func says(e fleet.Event) func(context.Context, *handle, fleet.Prompt) {
	return func(ctx context.Context, _ *handle, p fleet.Prompt) { _, _ = p.Emit(ctx, e) }
}

func (w *world) awaitStuck(name string, kind fleet.StuckKind) fleet.Agent {
	w.T.Helper()
	w.Await(name+" is stuck: "+string(kind), func() bool {
		a := w.agent(name)
		return a.Stuck != nil && a.Stuck.Kind == kind
	})
	return w.agent(name)
}

func (w *world) awaitUnstuck(name string) {
	w.T.Helper()
	w.Await(name+" is not stuck", func() bool { return w.agent(name).Stuck == nil })
}

func TestAnAgentThatSaysNothingIsStuckUntilItDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watched(t, fleet.StuckLimits{Quiet: 60 * time.Millisecond, Beat: -1})
		next := w.steps(says(fleet.Event{Type: "log", Text: "compiling"}))
		w.create("bob")
		task := w.assign("bob", "x")
		a := w.awaitStuck("bob", fleet.NoProgress)
		expect.True(t, a.State() == "stuck" && a.Stuck.Text == "nothing heard for 60ms" && !a.Stuck.Since.IsZero() && a.Status == fleet.Busy,
			"%+v %+v", a, a.Stuck)
		h, err := w.fleet.History(t.Context(), home, "bob", core.Filter{})
		expect.True(t, err == nil && h.Items[0].NeedsUserAttention, "history %+v, %v", h.Items, err)
		w.consistent()
		next <- struct{}{}
		w.awaitUnstuck("bob")
		w.awaitStuck("bob", fleet.NoProgress)
		close(next)
		w.result(task.TaskID)
		a = w.awaitStatus("bob", fleet.Idle)
		expect.True(t, a.Stuck == nil, "idle and stuck: %+v", a.Stuck)
		stuck := w.events("agent.stuck")
		expect.True(t, len(stuck) == 2 && strings.Contains(string(stuck[0].Payload), `"kind":"no_progress"`) && len(w.events("agent.unstuck")) >= 1,
			"events %+v", stuck)
		w.consistent()
	})
}

func TestTimeSpentWaitingIsNoLackOfProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watched(t, fleet.StuckLimits{Quiet: 80 * time.Millisecond, Beat: -1})
		next := w.steps(says(fleet.Event{Type: "tool_request", CallID: "c1", Tool: "write", Args: core.Raw(`{}`)}))
		w.create("bob")
		w.assign("bob", "x")
		next <- struct{}{}
		ap := w.approval()
		time.Sleep(200 * time.Millisecond)
		a := w.agent("bob")
		expect.Must(t, a.Stuck == nil && a.Waiting == ap.ApprovalID, "%+v", a.Stuck)
		expect.Of(w.fleet.Pause(t.Context(), alice, "bob"))(t)
		expect.Of(w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true, Reason: "yes"}))(t)
		time.Sleep(200 * time.Millisecond)
		a = w.agent("bob")
		expect.Must(t, a.Stuck == nil, "paused and %+v", a.Stuck)
		expect.Of(w.fleet.Resume(t.Context(), alice, "bob"))(t)
		w.awaitStuck("bob", fleet.NoProgress)
		close(next)
	})
}

func TestARepeatedCallOrMessageIsALoop(t *testing.T) {
	n := 0
	for _, c := range []struct {
		name string
		make func() fleet.Event
		text string
	}{
		{"message", func() fleet.Event { return fleet.Event{Type: "message", Text: "I will try again"} }, "said the same, 3 times or more in a row"},
		{"call", func() fleet.Event {
			n++
			return fleet.Event{Type: "tool_call", CallID: string(rune('a' + n)), Tool: "execute", Text: "go test"}
		}, "called execute with the same arguments, 3 times or more in a row"},
		{"request", func() fleet.Event {
			n++
			return fleet.Event{Type: "tool_request", CallID: string(rune('a' + n)), Tool: "read", Args: core.Raw(`{"path":"a"}`)}
		}, "called read with the same arguments, 3 times or more in a row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watched(t, fleet.StuckLimits{Repeats: 3})
				var other atomic.Bool
				next := w.steps(func(ctx context.Context, h *handle, p fleet.Prompt) {
					e := c.make()
					if other.Load() {
						e.Text, e.Args = "something else", core.Raw(`{"path":"b"}`)
					}
					_, _ = p.Emit(ctx, e)
					_, _ = p.Emit(ctx, fleet.Event{Type: "thought", Text: "hm"})
				})
				w.create("bob")
				w.assign("bob", "x")
				next <- struct{}{}
				next <- struct{}{}
				next <- struct{}{}
				a := w.awaitStuck("bob", fleet.Loop)
				expect.Is(t, a.Stuck.Text, c.text)
				next <- struct{}{} // the fourth time is nothing new
				other.Store(true)
				next <- struct{}{}
				w.awaitUnstuck("bob")
				close(next)
				w.awaitStatus("bob", fleet.Idle)
				expect.Is(t, len(w.events("agent.stuck")), 1, "events")
				w.consistent()
			})
		})
	}
}

func TestARuntimeWithoutASignOfLifeIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watched(t, fleet.StuckLimits{Beat: 50 * time.Millisecond})
		beat := make(chan struct{})
		w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
			<-h.dead() // hangs, until the lost lease interrupts it
			<-beat
			return killed, nil
		})
		w.create("bob")
		w.assign("bob", "x")
		w.awaitStuck("bob", fleet.LostHeartbeat)
		w.consistent()
		w.rt.does(done)
		close(beat)
		w.awaitUnstuck("bob")
	})
}

func TestStuckChecksCanBeSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watched(t, fleet.StuckLimits{Quiet: -1, Repeats: -1, Beat: -1})
		next := w.steps(says(fleet.Event{Type: "message", Text: "again"}))
		w.create("bob")
		w.assign("bob", "x")
		for range 20 {
			next <- struct{}{}
		}
		time.Sleep(50 * time.Millisecond)
		a := w.agent("bob")
		expect.True(t, a.Stuck == nil, "%+v", a.Stuck)
		close(next)
	})
}
