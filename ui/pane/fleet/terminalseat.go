package fleet

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/terminal"
	"swarmdeck/ui/pane"
)

// The least time between two pictures: the toolkit draws 60 frames a second, and
// nobody reads a flood. Who types sees what comes of it in the next of its frames.
const (
	frameGap  = 25 * time.Millisecond
	typingGap = 6 * time.Millisecond
	typingFor = 250 * time.Millisecond // after a key
)

// rise gives the seat up.
func (p *Terminal) rise() tea.Cmd {
	seat := p.seat
	p.seat, p.wants, p.typing, p.lost, p.free, p.queue, p.under, p.waiting = nil, false, false, false, false, nil, false, false
	p.desk = fleet.Desk{}
	p.sitting++
	if p.cancel != nil {
		p.cancel()
		p.cancel = nil
	}
	if seat == nil {
		return nil
	}
	return pane.Ask(TerminalName, func(ctx context.Context) any { return came{err: seat.Close(ctx)} })
}

// came is an answer without a picture.
type came struct {
	sitting int
	seat    *fleet.Seat
	desk    *fleet.Desk
	typed   bool
	asked   bool
	err     error
}

// seen is a picture.
type seen struct {
	sitting int
	moves   int              // what had moved when it was asked for
	turn    int              // the wait that it ends; 0 for none
	pic     *terminal.Screen // nil if it is as it was
	desk    fleet.Desk
	err     error
}

func (p *Terminal) Follow(env pane.Env, visible bool) tea.Cmd {
	was := p.visible
	p.visible = visible
	switch {
	case !visible && was:
		return p.rise()
	case !visible || p.Item().Empty():
		return nil
	case p.seat == nil && !p.waiting && (p.err == nil || p.again):
		return p.sit(env)
	case p.seat == nil:
		return nil
	}
	var cmds []tea.Cmd
	if !p.waiting {
		cmds = append(cmds, p.wait())
	}
	if size := (terminal.Size{Cols: p.w, Rows: p.h}).Bounded(); p.typing && p.w > 0 && size != p.sent {
		p.sent = size
		seat := p.seat
		cmds = append(cmds, pane.Ask(TerminalName, func(context.Context) any { return came{err: seat.Resize(size)} }))
	}
	return tea.Batch(cmds...)
}

// sit takes a place; who may type gets the keyboard with it if nobody has it.
func (p *Terminal) sit(env pane.Env) tea.Cmd {
	p.waiting, p.again, p.wants = true, false, env.Types
	by, name, may, sitting, of, life := env.Caller, p.Item().ID, env.Types, p.sitting, p.of, p.life
	return pane.Ask(TerminalName, func(ctx context.Context) any {
		seat, err := of.Attach(life, by, name)
		if err != nil {
			return came{sitting: sitting, err: err}
		}
		c := came{sitting: sitting, seat: seat}
		if may && seat.Desk().Writer == "" {
			_, c.err = seat.Take(ctx)
		}
		now := seat.Desk()
		c.desk = &now
		return c
	})
}

// wait waits for another picture.
func (p *Terminal) wait() tea.Cmd {
	if p.cancel != nil {
		p.cancel()
	}
	ctx, cancel := context.WithCancel(p.life)
	p.waiting, p.cancel = true, cancel
	p.turn++
	turn := p.turn
	moves := p.moves
	seat, sitting, desk, back, last, hurry := p.seat, p.sitting, p.desk, p.back, p.drawn, p.hurry
	known, above, least := uint64(0), 0, frameGap
	if p.pic != nil {
		known, above = p.pic.Rev, p.pic.Above
	}
	if time.Since(p.typed) < typingFor {
		least = typingGap
	}
	return func() tea.Msg {
		s := seen{sitting: sitting, turn: turn, moves: moves}
		if s.err = seat.Wait(ctx, known, desk); s.err == nil {
			if rest := least - time.Since(last); rest > 0 {
				core.Within(hurry, rest) // what changes on the way is a part of it, until somebody types
			}
			if s.pic, s.err = seat.Screen(0, back); s.err == nil {
				s.desk = seat.Desk()
				if more := s.pic.Above - above; back > 0 && more > 0 { // what is looked at stays
					s.pic, s.err = seat.Screen(0, back+more)
				}
			}
		}
		return pane.Woke{Pane: TerminalName, Body: s}
	}
}

func (p *Terminal) Woke(_ pane.Env, body any) tea.Cmd {
	s, ok := body.(seen)
	if !ok || s.sitting != p.sitting || s.turn != p.turn { // a wait that was given up
		return nil
	}
	p.waiting = false
	if s.err != nil {
		if p.life.Err() == nil {
			p.err = s.err
			return p.rise()
		}
		return nil
	}
	if s.moves == p.moves {
		p.took(s)
	}
	return nil // Follow waits again
}

func (p *Terminal) took(s seen) {
	if s.pic != nil {
		p.pic, p.drawn = s.pic, time.Now()
		p.back = s.pic.Back
	}
	p.sat(s.desk)
}

// sat has the newest of who sits there.
func (p *Terminal) sat(d fleet.Desk) {
	if d.Rev < p.desk.Rev {
		return
	}
	p.free = p.free && (d.Mine || d.Writer == "" || d.Writer == p.desk.Writer) // another has come to type
	p.lost = p.lost && d.Writer != ""                                          // else it is there for who wants it
	p.desk = d
	was := p.typing
	p.typing = p.wants && d.Mine
	if was && !p.typing && p.wants {
		p.wants, p.lost, p.queue = false, true, nil
	}
}

func (p *Terminal) Update(_ pane.Env, body any) tea.Cmd {
	switch c := body.(type) {
	case seen:
		if c.sitting == p.sitting && c.moves == p.moves && c.err == nil {
			p.took(c)
		}
	case came:
		return p.arrived(c)
	}
	return nil
}

func (p *Terminal) arrived(c came) tea.Cmd {
	if c.sitting != p.sitting {
		if seat := c.seat; seat != nil { // it is wanted no more
			return pane.Ask(TerminalName, func(ctx context.Context) any { return came{err: seat.Close(ctx)} })
		}
		return nil
	}
	if c.seat != nil {
		p.seat, p.waiting, p.err = c.seat, false, nil
	}
	var cmds []tea.Cmd
	switch {
	case c.err != nil && p.seat == nil:
		p.err, p.waiting = c.err, false
	case c.err != nil:
		cmds = append(cmds, pane.Say(core.AsError(c.err).Message, true))
	case c.asked:
		cmds = append(cmds, pane.Say("asked "+p.desk.Writer+" for the keyboard; it comes when they let go, or type nothing for 30 s and you ask again", false))
	}
	if c.typed {
		p.under = false
		cmds = append(cmds, p.send())
	}
	if c.desk != nil {
		if p.sat(*c.desk); p.typing {
			cmds = append(cmds, p.scroll(-p.back))
		}
	}
	return tea.Batch(cmds...)
}
