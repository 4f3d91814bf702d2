package acp

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// stand is one open agent and what it reported.
type stand struct {
	say    []*fleet.Message // to an agent at work
	t      *testing.T
	handle fleet.Handle
	held   chan string

	mu     sync.Mutex
	health []fleet.Health
	events []fleet.Event
	answer func(ctx context.Context, e fleet.Event) (fleet.ToolAnswer, error)
}

func open(t *testing.T, r *Runtime, a fleet.Agent) *stand {
	t.Helper()
	s := &stand{t: t, held: make(chan string)}
	h, err := r.Open(context.Background(), a, func(h fleet.Health) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.health = append(s.health, h)
	})
	expect.No(t, err)
	s.handle = h
	t.Cleanup(func() { expect.Is(t, h.Close(), nil) })
	return s
}

func (s *stand) emit(ctx context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
	s.mu.Lock()
	s.events = append(s.events, e)
	answer := s.answer
	s.mu.Unlock()
	if e.Type != "tool_request" {
		return fleet.ToolAnswer{}, nil
	}
	if answer == nil {
		select {
		case d := <-s.held:
			return fleet.ToolAnswer{CallID: e.CallID, Decision: d, Reason: "by the test"}, nil
		case <-ctx.Done():
			return fleet.ToolAnswer{}, ctx.Err()
		}
	}
	return answer(ctx, e)
}

// next is what a person has said meanwhile.
func (s *stand) next(context.Context) (m *fleet.Message, err error) {
	if len(s.say) > 0 {
		m, s.say = s.say[0], s.say[1:]
	}
	return m, nil
}

// release answers one question that is being held.
func (s *stand) release(decision string) { s.held <- decision }

// always lets every question have the same answer.
func (s *stand) always(decision string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = func(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
		return fleet.ToolAnswer{CallID: e.CallID, Decision: decision, Reason: "by the test"}, nil
	}
}

func (s *stand) start(acts ...string) <-chan task.Outcome {
	done := expect.Later(func() task.Outcome {
		out, err := s.handle.Prompt(context.Background(), fleet.Prompt{
			TaskID: "tk_00000_0000000001", Message: strings.Join(acts, "\n"), Emit: s.emit, Beat: func() {}, Next: s.next,
		})
		expect.Is(s.t, err, nil, "prompt")
		return out
	})
	return done
}

func (s *stand) wait(done <-chan task.Outcome) task.Outcome {
	s.t.Helper()
	select {
	case out := <-done:
		return out
	case <-time.After(2 * time.Minute):
		s.t.Fatalf("the prompt does not end; events %+v", s.of(""))
		return task.Outcome{}
	}
}

func (s *stand) prompt(acts ...string) task.Outcome {
	s.t.Helper()
	return s.wait(s.start(acts...))
}

// ends plays acts and checks the status and the error's code.
func (s *stand) ends(status task.Status, code string, acts ...string) task.Outcome {
	s.t.Helper()
	out := s.prompt(acts...)
	got := ""
	if out.Error != nil {
		got = out.Error.Code
	}
	expect.Must(s.t, out.Status == status && got == code,
		"outcome %s %q %+v, want %s %q; log %q", out.Status, out.Text, out.Error, status, code, s.texts("log"))
	return out
}

// of lists the events of a type, of all for "".
func (s *stand) of(kind string) []fleet.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []fleet.Event
	for _, e := range s.events {
		if kind == "" || e.Type == kind {
			list = append(list, e)
		}
	}
	return list
}

func (s *stand) texts(kind string) []string {
	var list []string
	for _, e := range s.of(kind) {
		list = append(list, e.Text)
	}
	return list
}

// heard fails unless an event of the type holds the text.
func (s *stand) heard(kind, text string) {
	s.t.Helper()
	for _, got := range s.texts(kind) {
		if strings.Contains(got, text) {
			return
		}
	}
	s.t.Errorf("no %s holds %q: %q", kind, text, s.texts(kind))
}

func (s *stand) now() fleet.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.health) == 0 {
		return fleet.Health{}
	}
	return s.health[len(s.health)-1]
}

func (s *stand) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = nil
}

// newStand opens a fake agent on a runtime of its own, in a directory of its own.
func newStand(t *testing.T, as traits, options settings) (*stand, string) {
	t.Helper()
	dir := t.TempDir()
	a := fakeAgent(t, as, options)
	a.Dir = dir
	return open(t, newRuntime(t, Options{}), a), dir
}

func reply(t *testing.T, data core.Raw) map[string]any {
	t.Helper()
	var v map[string]any
	expect.No(t, core.DecodeStored(data, &v))
	return v
}
