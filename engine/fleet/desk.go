package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
	"swarmdeck/engine/terminal"
)

// idleHand is how long who has the keyboard types nothing until another may take
// it unasked.
const idleHand = 30 * time.Second

// maxSaid is what the log keeps of what was typed at once, in bytes.
const maxSaid = 4096

// desk is who sits at an agent's terminal; its member's condition guards it.
type desk struct {
	seats  []*Seat
	writer *Seat // who types; nil for nobody
	asks   *Seat // who wants to
	typed  time.Time
	rev    uint64 // counts changes
}

// Seat is a place at an agent's terminal: who has it looks, and one of them types.
// Its methods may be called from any goroutine.
type Seat struct {
	f  *Fleet
	m  *member
	by core.Caller
}

// Desk is who else sits there.
type Desk struct {
	Rev      uint64   // higher after each change
	Writer   string   // who types, "" for nobody
	Mine     bool     // it is this one
	Own      bool     // it is the same person elsewhere
	Asks     string   // who wants to type in the writer's place
	Asked    bool     // it is this one
	Watchers []string // the names of all, each once, in order
}

// Attach gives a place at an agent's terminal. Its user closes it; the end of ctx
// does as well.
func (f *Fleet) Attach(ctx context.Context, by core.Caller, name string) (*Seat, error) {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return nil, err
	}
	s := &Seat{f: f, m: m, by: by}
	if _, err := s.terminal(); err != nil {
		return nil, err
	}
	s.change(func(d *desk) { d.seats = append(d.seats, s) })
	context.AfterFunc(ctx, func() { _ = s.Close(context.WithoutCancel(ctx)) })
	return s, nil
}

// terminal is the agent's, as it is open now.
func (s *Seat) terminal() (terminal.Terminal, error) {
	now := s.m.look()
	switch t, is := now.handle.(terminal.Terminal); {
	case is:
		return t, nil
	case now.gone:
		return nil, core.Missing("agent", s.m.name)
	case now.handle == nil:
		return nil, core.Errorf(core.Unavailable, "agent %s is not open: %s", s.m.name, describe(s.m.rec.Load()))
	}
	return nil, core.Invalid("agent", s.m.name, "an agent of a runtime with a terminal; it has "+s.m.rec.Load().Runtime)
}

// Screen is what the terminal shows, back lines further up; nil if that is what it
// was at the revision known.
func (s *Seat) Screen(known uint64, back int) (*terminal.Screen, error) {
	t, err := s.terminal()
	if err != nil {
		return nil, err
	}
	return t.Screen(known, back), nil
}

// Wait returns when the picture is not that of a revision any more, or the desk has
// changed. It misses pictures between, and none that lasts.
func (s *Seat) Wait(ctx context.Context, known uint64, desk Desk) error {
	for {
		moved := s.m.Look(func() {})
		t, err := s.terminal()
		if err != nil {
			return err
		}
		changed := t.Changed()
		if t.Rev() != known || s.Desk().Rev != desk.Rev {
			return nil
		}
		select {
		case <-moved:
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Desk is who sits at the terminal.
func (s *Seat) Desk() (d Desk) {
	s.m.Look(func() {
		desk := &s.m.desk
		d.Rev = desk.rev
		for _, other := range desk.seats {
			d.Watchers = append(d.Watchers, other.by.Name)
		}
		if desk.writer != nil {
			d.Writer, d.Mine = desk.writer.by.Name, desk.writer == s
			d.Own = !d.Mine && s.by.Is(desk.writer.by.Name, desk.writer.by.Person)
		}
		if desk.asks != nil {
			d.Asks, d.Asked = desk.asks.by.Name, desk.asks == s
		}
	})
	slices.Sort(d.Watchers)
	d.Watchers = slices.Compact(d.Watchers)
	return d
}

func (s *Seat) change(do func(d *desk)) {
	s.m.Change(func() {
		do(&s.m.desk)
		s.m.desk.rev++
	})
}

// Take gives this seat the keyboard, and starts the program unless it runs: if
// nobody has it, or the same person elsewhere, or somebody who has typed nothing
// for half a minute. Else who has it is asked, and it comes when they let go.
func (s *Seat) Take(ctx context.Context) (mine bool, err error) {
	if err := s.may(); err != nil {
		return false, err
	}
	from, why := "", ""
	s.m.Look(func() {
		d := &s.m.desk
		switch {
		case d.writer == s:
			why = "had"
		case d.writer == nil:
			why = "free"
		case s.by.Is(d.writer.by.Name, d.writer.by.Person):
			from, why = d.writer.by.Name, "own"
		case time.Since(d.typed) >= idleHand:
			from, why = d.writer.by.Name, "idle"
		default:
			from = d.writer.by.Name
		}
	})
	detail := map[string]any{"from": from, "why": why}
	if why == "" {
		if err := s.record(ctx, "agent.terminal_asked", detail); err != nil {
			return false, err
		}
		s.change(func(d *desk) {
			if d.writer != nil {
				d.asks = s
			}
		})
		return false, nil
	}
	if why != "had" {
		if err := s.record(ctx, "agent.terminal_taken", detail); err != nil {
			return false, err
		}
		s.change(func(d *desk) { d.give(s) })
	}
	t, err := s.terminal()
	if err != nil {
		return true, err
	}
	return true, t.Begin(ctx)
}

// give has a seat type from now on.
func (d *desk) give(to *Seat) {
	d.writer, d.typed = to, time.Now()
	if d.asks == to {
		d.asks = nil
	}
}

// may reports why nobody may type now.
func (s *Seat) may() error {
	a, now := s.m.rec.Load(), s.m.look()
	switch {
	case s.by.Kind != core.Operator:
		return core.Errorf(core.Denied, "only a person types into a terminal")
	case now.gone:
		return core.Missing("agent", s.m.name)
	case now.holds&byFreeze != 0:
		return core.Errorf(core.Conflict, "an emergency stop is on: nothing is typed to agent %s", s.m.name)
	case a.Pausing || a.Paused || now.holds != 0 || now.held || now.unsure:
		return core.Errorf(core.Conflict, "agent %s is paused: nothing is typed to it", s.m.name)
	case a.Stopped:
		return core.Errorf(core.Unavailable, "agent %s is stopped; start it first", s.m.name)
	}
	return nil
}

// Leave lets go of the keyboard: who has asked for it gets it.
func (s *Seat) Leave(ctx context.Context) error {
	var next *Seat
	had := false
	s.change(func(d *desk) {
		if d.asks == s {
			d.asks = nil
		}
		if had = d.writer == s; had {
			if next = d.asks; next != nil {
				d.give(next)
			} else {
				d.writer = nil
			}
		}
	})
	if !had {
		return nil
	}
	if next == nil {
		return s.record(ctx, "agent.terminal_left", map[string]any{})
	}
	return next.record(ctx, "agent.terminal_taken", map[string]any{"from": s.by.Name, "why": "granted"})
}

// Close gives the seat up.
func (s *Seat) Close(ctx context.Context) error {
	err := s.Leave(ctx)
	s.change(func(d *desk) { d.seats = slices.DeleteFunc(d.seats, func(o *Seat) bool { return o == s }) })
	return err
}

// Type hands what is typed to the program, once it is on record as the operator's.
func (s *Seat) Type(ctx context.Context, in []terminal.Input) error {
	if err := terminal.Check(in); err != nil {
		return err
	}
	t, err := s.hand()
	if err != nil {
		return err
	}
	unseen := t.Unseen()
	text := t.Masked(terminal.Shown(in, unseen))
	if len(text) > maxSaid {
		text = core.Cut(text, maxSaid) + fmt.Sprintf(" … (%d bytes in all)", len(text))
	}
	if err := s.said(ctx, text, unseen); err != nil {
		return err
	}
	// What has changed since counts: a stop that came meanwhile is not typed past.
	if t, err = s.hand(); err != nil {
		return err
	}
	return t.Type(in)
}

// hand is the terminal, for who may type now.
func (s *Seat) hand() (terminal.Terminal, error) {
	if err := s.may(); err != nil {
		return nil, err
	}
	mine, writer := false, ""
	s.m.Change(func() {
		d := &s.m.desk
		if mine = d.writer == s; mine {
			d.typed = time.Now()
		} else if d.writer != nil {
			writer = d.writer.by.Name
		}
	})
	if !mine {
		return nil, core.Errorf(core.Conflict, "%s types into the terminal of agent %s", cmp.Or(writer, "nobody"), s.m.name)
	}
	return s.terminal()
}

// said records what was typed: that it was, and in the agent's log what.
func (s *Seat) said(ctx context.Context, text string, unseen bool) error {
	a := s.m.rec.Load()
	line := task.LogLine{Level: "INFO", Message: "typed by " + core.ClipTo(s.by.Name, maxCall) + ": " + text, TaskID: a.TaskID, Source: "typed"}
	answers := a.Attention != "" && strings.Contains(text, "<enter>")
	err := s.f.opt.Ledger.Update(ctx, s.by, func(tx *audit.Tx) error {
		n := record.Event{Type: "agent.typed", Detail: map[string]any{"bytes": len(text), "unseen": unseen, "task_id": a.TaskID}}
		if err := s.m.record(tx, n); err != nil {
			return err
		}
		_, err := s.f.opt.Tasks.LogIn(tx, "agent:"+s.m.name, []task.LogLine{line})
		return err
	})
	if err != nil {
		return fmt.Errorf("record what was typed: %w", err)
	}
	if answers {
		_, err = s.f.change(ctx, s.by, s.m, record.Event{Type: "agent.answered"}, func(_ *audit.Tx, a *Agent) error {
			if a.Attention == "" {
				return errSame
			}
			a.Attention = ""
			return nil
		})
	}
	return err
}

// Resize gives the terminal the size of who types.
func (s *Seat) Resize(to terminal.Size) error {
	mine := false
	s.m.Look(func() { mine = s.m.desk.writer == s })
	if !mine {
		return nil
	}
	t, err := s.terminal()
	if err != nil {
		return err
	}
	return t.Resize(to)
}

func (s *Seat) record(ctx context.Context, event string, detail map[string]any) error {
	return s.f.opt.Ledger.Update(ctx, s.by, func(tx *audit.Tx) error {
		return s.m.record(tx, record.Event{Type: event, Detail: detail})
	})
}
