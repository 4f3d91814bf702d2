package ui

import (
	"testing"
	"time"

	"swarmdeck/engine/estop"
)

func TestAgesGoOnWhileNothingHappens(t *testing.T) {
	for _, tt := range []struct {
		name, was, is string
		open          func(*rig)
	}{
		{"an approval", "(2m ago)", "(7m ago)", func(r *rig) { r.keys("3", "enter", "G") }},
		{"an agent's calls", "asked 2m", "asked 7m", openScribe},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, 120, 60)
			tt.open(r)
			r.has(tt.was)
			r.wait(5 * time.Minute)
			r.has(tt.is)
		})
	}
}

func TestWhatTheEmergencyStopFrozeIsNotCountedAsWorking(t *testing.T) {
	r := newRig(t, 160, 40)
	r.has("1 working")
	r.change(func() { r.w.estop = estop.State{On: true, By: "ada", At: start, Reason: "trial", Frozen: 2} })
	r.lacks("1 working")
	r.has("1 paused")
	r.lacks("p pause") // it has stopped already
	r.at("large")
	r.has("p pause")
}
