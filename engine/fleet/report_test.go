package fleet_test

import (
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func TestWhatAnAgentDoesWithoutAskingIsShownAsSuch(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(say(
		fleet.Event{Type: "thought", Text: "let me see"},
		fleet.Event{Type: "plan", Text: "[ ] look"},
		fleet.Event{Type: "tool_call", CallID: "c1", Tool: "read", Text: "look into a"},
		fleet.Event{Type: "diff", CallID: "c1", Text: "a\n-x\n+y"},
		fleet.Event{Type: "tool_result", CallID: "c1", Tool: "read", Text: "look into a", Status: "ok", Output: core.Raw(`{"n":1}`)},
	))
	w.create("bob")
	w.result(w.assign("bob", "x").TaskID)
	var lines []string
	for _, l := range w.log("bob", core.Filter{Size: 20}).Items {
		lines = append(lines, l.Level+" "+l.Source+" "+l.Message)
	}
	slices.Reverse(lines)
	want := []string{
		"INFO task x", "DEBUG thought let me see", "INFO plan [ ] look", "INFO tool runs read look into a",
		"INFO diff a\n-x\n+y", `INFO tool read look into a (not asked) c1: ok {"n":1}`,
	}
	expect.Is(t, strings.Join(lines, "|"), strings.Join(want, "|"), "log", lines, want)
	got := w.events("tool.result")
	expect.True(t, len(got) == 1 && strings.Contains(string(got[0].Payload), `"asked":false`), "events %+v", got)
	w.consistent()
}

func TestAChangeOfTheAgentsOwnPermissionsIsAudited(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(say(fleet.Event{
		Type: "mode", Status: "weaker", Text: "the mode is yolo now; ask was set", Args: core.Raw(`{"mode":"yolo","wanted":"ask"}`),
	}))
	w.create("bob")
	task := w.assign("bob", "x")
	w.result(task.TaskID)
	got := w.events("agent.mode")
	expect.True(t, len(got) == 1 && strings.Contains(string(got[0].Payload), `"mode":{"mode":"yolo","wanted":"ask"}`), "events %+v", got)
	l := w.log("bob", core.Filter{}).Items[0]
	expect.True(t, l.Level == "WARN" && l.Source == "mode", "log %+v", l)
	w.consistent()
}

func TestOptionsAreKeptCompactAndRenewTheRuntime(t *testing.T) {
	w := newWorld(t).run()
	c := fleet.Create{Name: "bob", Project: "Setup", Command: []string{"x"}, Options: core.Raw(`{ "mode": "ask" }`)}
	a, err := w.fleet.Create(t.Context(), alice, c)
	expect.Must(t, err == nil && string(a.Options) == `{"mode":"ask"}`, "%s, %v", a.Options, err)
	w.awaitStatus("bob", fleet.Idle)
	opened := func() int {
		w.rt.mu.Lock()
		defer w.rt.mu.Unlock()
		return w.rt.opened
	}
	before := opened()
	_, err = w.fleet.Update(t.Context(), alice, "bob", c)
	expect.True(t, err == nil && opened() == before, "the same options changed something: %v", err)
	c.Options = core.Raw(`{}`)
	a, err = w.fleet.Update(t.Context(), alice, "bob", c)
	expect.True(t, err == nil && a.Options == nil, "%s, %v", a.Options, err)
	w.Await("it is opened anew", func() bool { return opened() == before+1 })
	w.consistent()
}
