package acp

import (
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// TestAnAgentIsIdleOnlyOnceItWasGreeted has programs that are no agents, and agents that
// can't be used, say so before any task.
func TestAnAgentIsIdleOnlyOnceItWasGreeted(t *testing.T) {
	for name, c := range map[string]struct {
		command      []string
		as           traits
		options      settings
		reason, said string
	}{
		"ends at once":          {command: []string{"sh", "-c", "echo no model key >&2; exit 1"}, reason: "exited with status 1", said: "no model key"},
		"gives back":            {command: []string{"cat"}, reason: "does not speak the Agent Client Protocol"},
		"says nothing":          {command: []string{"sleep", "1000"}, reason: "no answer within 1s"},
		"a mode it has not":     {as: traits{Modes: []string{"ask"}}, options: settings{Mode: "yolo"}, reason: `"yolo" is not allowed`},
		"wants a login":         {as: traits{Login: "key"}, reason: "set options.auth to one of key"},
		"opens no session":      {as: traits{Mute: "session/new"}, reason: "no answer within 1s"},
		"speaks another way":    {as: traits{Version: 2}, reason: "speaks version 2 of the protocol"},
		"prints, and no object": {command: []string{"sh", "-c", "echo usage: tool FILE; sleep 1000"}, reason: "no answer within 1s", said: "usage: tool FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := fakeAgent(t, c.as, c.options)
			if c.command != nil {
				a.Command = c.command
			}
			s := open(t, newRuntime(t, Options{Patience: time.Second}), a)
			expect.Await(t, "it is told", func() bool {
				h := s.now()
				return (h.Status == fleet.Offline || h.Status == fleet.Failed) && strings.Contains(h.Reason, c.reason) && strings.Contains(h.Said, c.said)
			})
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, h := range s.health {
				expect.True(t, h.Status != fleet.Idle, "it was idle: %+v", h)
			}
		})
	}
}

func TestAFailedPromptLeavesItsReasonUntilOneSucceeds(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	out := s.ends(task.Failed, "agent_failed", "fail the model's key is missing")
	expect.True(t, out.Unsent, "what had no effect is asked about: %+v", out)
	says := func(status fleet.AgentStatus) {
		t.Helper()
		expect.Await(t, "it says so", func() bool {
			h := s.now()
			return h.Status == status && h.Trouble != nil && strings.Contains(h.Trouble.Reason, "the model's key is missing")
		})
	}
	says(fleet.Failed)
	expect.No(t, s.handle.Restart(t.Context()))
	says(fleet.Idle)
	s.ends(task.Succeeded, "", "say on")
	expect.Await(t, "it is well", func() bool { return s.now().Trouble == nil })
}

// TestASleepingAgentHasNoProcessAndGoesOnWhereItWas sleeps after a second without work.
func TestASleepingAgentHasNoProcessAndGoesOnWhereItWas(t *testing.T) {
	s, _ := newStand(t, traits{Load: true}, settings{IdleStop: "1s"})
	s.ends(task.Succeeded, "", "say one")
	id := s.handle.(*agent).place.recall().Session
	expect.Await(t, "it sleeps", func() bool { h := s.now(); return h.Status == fleet.Idle && h.PID == 0 })
	s.ends(task.Succeeded, "", "say two")
	expect.Is(t, s.handle.(*agent).place.recall().Session, id, "session")
	expect.Is(t, s.now().Restarts, 0)
}
