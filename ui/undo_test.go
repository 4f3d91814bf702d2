package ui

import (
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestWhatWasDoneLastIsTakenBackOnce(t *testing.T) {
	r := newRig(t, 80, 24)
	r.runs = func(line []string) (string, string, int) {
		return map[string]string{
			"task retry tk_8a039_0000000001": "queued again: task tk_8a039_0000000009: list the TODOs\n", "agent pause scribe": "agent scribe is pausing\n",
			"merge scribe": "asked to merge; task tk_8a039_0000000012\n",
		}[strings.TrimSuffix(strings.Join(line, " "), " -o sentence")], "", 0
	}
	for line, back := range map[string]string{
		"task retry tk_8a039_0000000001": "task cancel tk_8a039_0000000009", // the one that came of it
		"agent pause scribe":             "agent resume scribe",
		"merge scribe":                   "merge undo tk_8a039_0000000012",
		"estop on --reason fire":         "", // its end wants a reason
		"agent tell scribe hello":        "", // the message's id is not known
		"task list":                      "",
	} {
		r.ran = nil
		r.keys(":")
		r.typeText(line)
		r.keys("enter")
		r.keys("q", "1", "u")
		if r.m.over.Open() {
			r.wait(deadTime)
			r.keys("y")
		}
		if back == "" {
			r.has("there is nothing to undo")
			continue
		}
		expect.Must(t, len(r.ran) == 2, "%s: ran %q", line, r.ran)
		expect.Is(t, r.ran[1], back, line)
	}
}
