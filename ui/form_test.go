package ui

import (
	"slices"
	"testing"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
)

// filler is a pane that has a form.
type filler struct{ pane.Pane }

func (f filler) Fill(_ pane.Env, action string) (pane.Fill, bool, error) {
	return noteForm, action == "invoke", nil
}

// Do reads the fields first.
func (f filler) Do(env pane.Env, action string) (tea.Cmd, bool) {
	if action == "invoke-later" {
		return noteForm.Ask(), true
	}
	return f.Pane.Do(env, action)
}

var noteForm = pane.Fill{
	Title: "a note", Fields: []overlay.Field{{Name: "title", Type: overlay.StringField, Required: true}},
	Line: func(object core.Raw) []string {
		return []string{"task", "dispatch", "--kind", "note", "--input", string(object)}
	},
}

func TestAPanesFormRunsItsLine(t *testing.T) {
	r := newRig(t, 80, 24)
	r.m.panes["tasks"] = filler{r.m.panes["tasks"]}
	r.keys("2")
	r.do(r.m.action("invoke"))
	r.has("a note")
	r.keys("enter")
	r.has("! is required")
	r.keys("h", "i", "q", "enter")
	expect.Must(t, len(r.ran) == 1 && r.ran[0] == `task dispatch --kind note --input {"title":"hiq"}`, "ran %q", r.ran)
	r.lacks("a note")
}

func TestARefusedFormComesBackWithTheReason(t *testing.T) {
	r := newRig(t, 80, 24)
	r.m.panes["tasks"] = filler{r.m.panes["tasks"]}
	r.keys("2")
	r.runs = func(line []string) (string, string, int) {
		if slices.Contains(line, `{"title":"his"}`) {
			return `{"task_id":"t1"}`, "", 0
		}
		return "", `{"error":{"code":"INVALID_INPUT","message":"title: is too short","details":{"field":"title"}}}`, 1
	}
	r.do(r.m.action("invoke-later"))
	r.press("x") // typed before the form came: for the pane, not for the form
	r.wait(deadTime)
	r.keys("h", "i", "enter")
	r.has("! is too short")
	r.wait(deadTime)
	r.keys("s", "enter")
	r.lacks("a note")
	expect.Must(t, len(r.ran) == 2, "ran %q", r.ran)
}
