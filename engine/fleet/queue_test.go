package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// tell queues a message for an agent.
func (w *world) tell(name, text string, now bool) fleet.Told {
	w.T.Helper()
	return expect.Of(w.fleet.Tell(w.T.Context(), alice, name, text, "", now))(w.T)
}

// texts are what waits for an agent, the next first.
func (w *world) texts(name string) (all []string) {
	w.T.Helper()
	queue := expect.Of(w.fleet.Queue(w.T.Context(), home, name))(w.T)
	for i, m := range queue {
		expect.Is(w.T, m.Place, i+1, m.Text, "is at place")
		all = append(all, m.Text)
	}
	return all
}

// given are the messages of an agent's tasks, the oldest first.
func (w *world) given(name string) (all []string) {
	w.T.Helper()
	page := expect.Of(w.fleet.History(w.T.Context(), home, name, core.Filter{Size: 100}))(w.T)
	for _, h := range slices.Backward(page.Items) {
		all = append(all, h.Message)
	}
	return all
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	expect.Same(t, got, want, what)
}

// busy is an agent that works on "first" until the channel is closed, and then
// does every task at once.
func busy(t *testing.T) (*world, chan struct{}) {
	w := newWorld(t).run()
	release := make(chan struct{})
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		if p.Message != "first" {
			return done(ctx, h, p)
		}
		return beatUntil(ctx, h, p, release)
	})
	w.create("bob")
	told := w.tell("bob", "first", false)
	expect.Must(t, told.State == fleet.ToldGiven && told.TaskID != "", "told an idle agent: %+v", told)
	w.awaitStatus("bob", fleet.Busy)
	return w, release
}

func (w *world) awaitGiven(name string, n int) {
	w.T.Helper()
	w.Await(fmt.Sprintf("%d tasks of %s are over", n, name), func() bool {
		page := expect.Of(w.fleet.History(w.T.Context(), home, name, core.Filter{Size: 100}))(w.T)
		over := 0
		for _, h := range page.Items {
			if h.Status.Terminal() {
				over++
			}
		}
		return over == n && w.agent(name).Status == fleet.Idle
	})
}

func TestMessagesForABusyAgentAreGivenInTheirOrder(t *testing.T) {
	w, release := busy(t)
	for _, s := range []string{"a", "b\n\tsecond line", "c"} {
		told := w.tell("bob", s, false)
		expect.True(t, told.State == fleet.ToldQueued && told.MessageID != "" && told.Note != "", "told %+v", told)
	}
	same(t, "waiting", w.texts("bob"), []string{"a", "b\n\tsecond line", "c"})
	expect.Fails(t, expect.Fault(w.fleet.Assign(t.Context(), alice, "bob", "x", "")), "a busy agent took a task")
	close(release)
	w.awaitGiven("bob", 4)
	same(t, "given", w.given("bob"), []string{"first", "a", "b\n\tsecond line", "c"})
	same(t, "left", w.texts("bob"), nil)
	expect.Is(t, len(w.events("agent.message_given")), 3, "events of messages given")
	w.consistent()
}

func TestAMessageIsMovedAndWithdrawn(t *testing.T) {
	w, release := busy(t)
	ids := map[string]string{}
	for _, s := range []string{"a", "b", "c", "d"} {
		ids[s] = w.tell("bob", s, false).MessageID
	}
	if m, err := w.fleet.Reorder(t.Context(), alice, "bob", ids["c"], 1); err != nil || m.Place != 1 {
		t.Errorf("moved: %+v %v", m, err)
	}
	if m, err := w.fleet.Reorder(t.Context(), alice, "bob", ids["a"], 50); err != nil || m.Place != 4 {
		t.Errorf("moved to the end: %+v %v", m, err)
	}
	same(t, "moved", w.texts("bob"), []string{"c", "b", "d", "a"})
	if gone, err := w.fleet.Withdraw(t.Context(), alice, "bob", ids["b"]); err != nil || gone.Text != "b" {
		t.Errorf("withdrawn: %+v %v", gone, err)
	}
	_, err := w.fleet.Withdraw(t.Context(), alice, "bob", ids["b"])
	refused(t, err, core.NotFound, "", "")
	_, err = w.fleet.Reorder(t.Context(), alice, "bob", ids["a"], 0)
	refused(t, err, core.InvalidInput, "field", "place")
	close(release)
	w.awaitGiven("bob", 4)
	same(t, "given", w.given("bob"), []string{"first", "c", "d", "a"})
	for kind, n := range map[string]int{"agent.message_queued": 4, "agent.message_moved": 2, "agent.message_withdrawn": 1} {
		expect.Is(t, len(w.events(kind)), n, "events", kind)
	}
	w.consistent()
}

func TestTheQueueOfAnAgentIsBounded(t *testing.T) {
	w, _ := busy(t)
	for i := range fleet.MaxQueue {
		w.tell("bob", fmt.Sprint(i), false)
	}
	_, err := w.fleet.Tell(t.Context(), alice, "bob", "one more", "", false)
	refused(t, err, core.Conflict, "field", "agent")
	expect.No(t, w.fleet.Delete(t.Context(), alice, "bob"))
	w.rt.does(done)
	w.create("bob")
	same(t, "of another agent of that name", w.texts("bob"), nil)
	w.consistent()
}

func TestACrashLosesNoMessageAndGivesNoneTwice(t *testing.T) {
	w, _ := busy(t)
	want := []string{"first"}
	for i := range 6 {
		text := fmt.Sprintf("message %d", i)
		w.tell("bob", text, false)
		want = append(want, text)
	}
	// Each engine dies while the agent works on the next message, or somewhere on the way there.
	for n := 0; len(w.texts("bob")) > 0; n++ {
		began := make(chan struct{}, 100)
		w.crash()
		w.Open()
		w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
			select {
			case began <- struct{}{}:
			default:
			}
			return done(ctx, h, p)
		})
		w.run()
		for range n%3 + 1 {
			w.Await("that the next begins", func() bool {
				select {
				case <-began:
					return true
				default:
				}
				w.sendOn() // what the last engine died under
				return false
			})
			if len(w.texts("bob")) == 0 {
				break
			}
		}
	}
	w.sendOn()
	w.awaitGiven("bob", len(want))
	same(t, "given", w.given("bob"), want)
	w.consistent()
}

func TestAMessageThatIsRefusedWaitsAndTheNextIsGiven(t *testing.T) {
	w := newWorld(t).run()
	ses := w.session()
	expect.Of(w.swarm.Sessions.Start(t.Context(), alice, ses))(w.T)
	release := make(chan struct{})
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		return beatUntil(ctx, h, p, release)
	})
	c := fleet.Create{Name: "bob", Project: "Setup", Command: []string{"x"}, Session: ses, Task: "first"}
	expect.Of(w.fleet.Create(t.Context(), alice, c))(w.T)
	w.awaitStatus("bob", fleet.Busy)
	id := w.tell("bob", "in the session", false).MessageID
	c.Session = ""
	expect.Of(w.fleet.Update(t.Context(), alice, "bob", c))(w.T)
	w.tell("bob", "in none", false)
	expect.Of(w.swarm.Sessions.Stop(t.Context(), alice, ses, "over"))(w.T)
	close(release)
	w.awaitGiven("bob", 2)
	same(t, "given", w.given("bob"), []string{"first", "in none"})
	queue, err := w.fleet.Queue(t.Context(), home, "bob")
	expect.True(t, err == nil && len(queue) == 1 && queue[0].MessageID == id && queue[0].Held != "", "held: %+v %v", queue, err)
	expect.Is(t, len(w.events("agent.message_held")), 1, "events of a message held")
	w.consistent()
}
