package ui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/expect"
)

func TestWhatTakesLongIsShownUntilItIsDone(t *testing.T) {
	r := newRig(t, 120, 40)
	later := r.m.run(job{lines: [][]string{{"agent", "restart", "changes"}}})().(tea.BatchMsg)
	timers := len(r.timers)
	r.do(later[0])
	r.lacks("agent restart")
	r.wait(workShows)
	r.has("⠙ agent restart 0s")
	r.wait(2 * time.Second)
	r.has("agent restart 2s")
	r.do(later[1])
	r.lacks("agent restart")
	r.wait(time.Second)
	expect.Is(t, len(r.timers), timers, "timers are left")
}
