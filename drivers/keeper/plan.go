package keeper

import (
	"cmp"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// maxSteps bounds a plan.
const maxSteps = 200

// Plan is the event of a plan with these steps, in the protocol's words for how they stand.
func Plan(steps []fleet.Step) fleet.Event {
	marks := map[string]string{"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}
	e := fleet.Event{Type: "plan", Steps: steps[:min(len(steps), maxSteps)]}
	var lines []string
	for i := range e.Steps {
		s := &e.Steps[i]
		s.Text, s.Status = core.ClipTo(strings.Join(strings.Fields(s.Text), " "), 500), core.ClipTo(s.Status, 20)
		lines = append(lines, cmp.Or(marks[s.Status], "["+s.Status+"]")+" "+s.Text)
	}
	e.Text = strings.Join(lines, "\n")
	return e
}
