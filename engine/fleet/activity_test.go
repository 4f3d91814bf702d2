package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func (w *world) activity(name string) fleet.Activity {
	w.T.Helper()
	a := expect.Of(w.fleet.Activity(w.T.Context(), home, name, time.Time{}))(w.T)
	again, err := w.fleet.Activity(w.T.Context(), home, name, a.At)
	expect.Must(w.T, err == nil && (a.TaskID == "" || again == nil), "read again although it is known: %+v, %v", again, err)
	return *a
}

func TestWhatARunDoesIsKeptApart(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(say(
		fleet.Event{Type: "plan", Text: "[x] look\n[ ] write", Steps: []fleet.Step{{Text: "look\x1b[31m", Status: "completed"}, {Text: "write", Status: "pending"}}},
		fleet.Event{Type: "tool_call", CallID: "c1", Tool: "read", Text: "look into a"},
		fleet.Event{Type: "tool_result", CallID: "c1", Tool: "read", Text: "look into a", Status: "ok"},
		fleet.Event{Type: "tool_request", CallID: "c2", Tool: "read", Args: core.Raw(`{"path":"b"}`), Intent: "read b"},
		fleet.Event{Type: "tool_result", CallID: "c2", Status: "error", Error: "no such file"},
		fleet.Event{Type: "tool_request", CallID: "c3", Tool: "remove", Args: core.Raw(`{}`)},
		fleet.Event{Type: "tool_result", CallID: "c3", Status: "ok"}, // it may say so; it was denied
		fleet.Event{Type: "tool_result", CallID: "c4", Tool: "fetch", Text: "the web", Status: "ok"},
		fleet.Event{Type: "diff", CallID: "c1", Path: "a.txt", Text: "a.txt\n-x\n+y"},
		fleet.Event{Type: "usage", Tokens: 1200, CostUSD: 0.25},
		fleet.Event{Type: "usage", Tokens: -5},
	))
	w.create("bob")
	task := w.assign("bob", "x")
	w.result(task.TaskID)
	a := w.activity("bob")
	if a.TaskID != task.TaskID || len(a.Plan) != 2 || a.Plan[0].Status != "completed" || strings.Contains(a.Plan[0].Text, "\x1b") || a.PlanAt.IsZero() {
		t.Errorf("plan %+v", a)
	}
	var calls []string
	for _, c := range a.Calls {
		calls = append(calls, fmt.Sprintf("%s %s %v %s %s ended=%v", c.CallID, c.Tool, c.Asked, c.State, c.Error, !c.Ended.IsZero()))
	}
	want := "c1 read false ok  ended=true|c2 read true error no such file ended=true|c3 remove true denied never remove ended=true|c4 fetch false ok  ended=true"
	expect.Is(t, strings.Join(calls, "|"), want, "calls")
	expect.True(t, a.Calls[1].Args == `{"path":"b"}` && a.Calls[1].Title == "read b", "%+v", a.Calls[1])
	expect.True(t, len(a.Diffs) == 1 && a.Diffs[0].Path == "a.txt" && a.Usage.Tokens == 1200 && a.Usage.CostUSD == 0.25, "%+v %+v", a.Diffs, a.Usage)
	u := w.awaitStatus("bob", fleet.Idle).Usage
	expect.True(t, u.Tokens == 1200 && u.CostUSD == 0.25 && u.Tasks == 1, "usage %+v", u)
	w.consistent()
}

func TestUsageIsSeenWhileTheAgentWorks(t *testing.T) {
	w := newWorld(t).run()
	next := w.steps(says(fleet.Event{Type: "usage", Tokens: 10, CostUSD: 0.01}))
	w.create("bob")
	w.assign("bob", "x")
	next <- struct{}{}
	w.Await("10 tokens", func() bool { a := w.agent("bob"); return a.Usage.Tokens == 10 && a.Status == fleet.Busy })
	next <- struct{}{}
	w.Await("20 tokens", func() bool { return w.agent("bob").Usage.Tokens == 20 })
	close(next)
	u := w.awaitStatus("bob", fleet.Idle).Usage
	expect.True(t, u.Tokens == 20 && u.Tasks == 1, "usage %+v", u)
}

func TestActivityIsBoundedAndOfTheNewestRun(t *testing.T) {
	w := newWorld(t).run()
	var events []fleet.Event
	for i := range 250 {
		id := fmt.Sprint("c", i)
		events = append(events,
			fleet.Event{Type: "tool_call", CallID: id, Tool: "read", Text: id},
			fleet.Event{Type: "diff", Path: id, Text: strings.Repeat("+long\n", 10_000)},
		)
	}
	w.rt.does(say(events...))
	w.create("bob")
	w.result(w.assign("bob", "x").TaskID)
	a := w.activity("bob")
	expect.True(t, len(a.Calls) == 100 && a.Calls[0].CallID == "c150" && a.Calls[99].CallID == "c249" && a.Made == 250,
		"%d calls of %d, from %+v", len(a.Calls), a.Made, a.Calls[0])
	expect.True(t, len(a.Diffs) == 50 && a.Diffs[49].Path == "c249" && len(a.Diffs[0].Text) <= 16<<10 && a.Drew == 250, "%d diffs of %d", len(a.Diffs), a.Drew)
	w.rt.does(say(fleet.Event{Type: "tool_call", CallID: "d1", Tool: "read"}))
	w.awaitStatus("bob", fleet.Idle)
	w.result(w.assign("bob", "y").TaskID)
	a = w.activity("bob")
	expect.True(t, len(a.Calls) == 1 && len(a.Diffs) == 0 && a.Made == 1 && len(a.Plan) == 0, "%+v", a)
	w.awaitStatus("bob", fleet.Idle)
	expect.No(t, w.fleet.Delete(t.Context(), alice, "bob"))
	w.create("bob")
	a = w.activity("bob")
	expect.True(t, a.TaskID == "" && len(a.Calls) == 0, "of the earlier agent: %+v", a)
	w.consistent()
}
