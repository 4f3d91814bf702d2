package acp

import (
	"context"
	"testing"

	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestWhatAFailedResumeLeftStandingTheNextContinues(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	s.ends(task.Succeeded, "", "say up")
	expect.No(t, s.handle.Pause(t.Context()))
	over, end := context.WithCancel(t.Context())
	end()
	expect.Must(t, s.handle.Resume(over) != nil, "resumed in no time at all")
	expect.No(t, s.handle.Resume(t.Context()))
	s.ends(task.Succeeded, "", "say back")
}
