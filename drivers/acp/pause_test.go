package acp

import (
	"context"
	"testing"

	"swarmdeck/engine/task"
)

func TestWhatAFailedResumeLeftStandingTheNextContinues(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	s.ends(task.Succeeded, "", "say up")
	if err := s.handle.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if err := s.handle.Resume(over); err == nil {
		t.Fatal("resumed in no time at all")
	}
	if err := s.handle.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.ends(task.Succeeded, "", "say back")
}
