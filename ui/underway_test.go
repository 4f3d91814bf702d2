package ui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/expect"
)

func TestWhatTakesLongIsShownUntilItIsDone(t *testing.T) {
	r := newRig(t, 120, 40)
	later := r.m.run(job{lines: [][]string{{"review", "merge", "changes"}}})().(tea.BatchMsg)
	timers := len(r.timers)
	r.do(later[0])
	r.lacks("review merge")
	r.wait(workShows)
	r.has("⠙ review merge 0s")
	r.wait(2 * time.Second)
	r.has("review merge 2s")
	r.do(later[1])
	r.lacks("review merge")
	r.wait(time.Second)
	expect.Is(t, len(r.timers), timers, "timers are left")
}
