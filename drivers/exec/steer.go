package exec

import (
	"cmp"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

var _ fleet.Steerer = (*agent)(nil)

// Hears implements fleet.Steerer: it does as soon as it was told a task, until it
// has given its result. On a wire it hears between its processes.
func (a *agent) Hears() error {
	if a.wire != nil {
		return fleet.ErrNextPrompt
	}
	_, _, err := a.listening()
	return err
}

// Steer implements fleet.Steerer: the message is a line of the agent's input.
func (a *agent) Steer(text, uri string) error {
	t, s, err := a.listening()
	if err != nil || a.wire != nil {
		return cmp.Or(err, fleet.ErrNextPrompt)
	}
	line, err := core.Encode(saidLine{Type: "message", Text: text, URI: uri})
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	if err := s.send(line); err != nil {
		return err
	}
	t.emit(fleet.Event{Type: "prompt", Text: text})
	return nil
}

// listening is the turn under way with its process.
func (a *agent) listening() (*turn, *session, error) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	switch t, s := a.Turn, a.Sess; {
	case t == nil || s == nil || s.turn.Load() != t:
		return nil, nil, core.Errorf(core.Unavailable, "its process has no task yet")
	case t.settled():
		return nil, nil, core.Errorf(core.Unavailable, "it has given its result")
	default:
		return t, s, nil
	}
}
