package fleet

import (
	"cmp"
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/terminal"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// TerminalName is the page of an agent's terminal.
const TerminalName = "terminal"

// Terminals give places at agents' terminals; *fleet.Fleet does.
type Terminals interface {
	Attach(ctx context.Context, by core.Caller, name string) (*fleet.Seat, error)
}

// Terminal shows an agent's terminal and has one type into it. What is drawn are
// the cells of an emulator, made harmless like all text of agents.
type Terminal struct {
	pane.Record
	of   Terminals
	life context.Context // of the cockpit: a seat ends with it

	visible bool
	again   bool // err may be over
	w, h    int
	err     error

	seat    *fleet.Seat
	sitting int // counts seats: answers about an older one are dropped
	waiting bool
	moves   int // counts what moved the picture: one that was asked for before is late
	turn    int // counts waits for pictures: one that was given up says nothing
	cancel  context.CancelFunc
	pic     *terminal.Screen
	desk    fleet.Desk
	drawn   time.Time     // when the newest picture came
	typed   time.Time     // when a key came last
	hurry   chan struct{} // has who waits to take a picture take it now

	wants  bool // to type
	typing bool
	lost   bool             // the keyboard was taken from who types
	free   bool             // the keys are the cockpit's: they were let go of
	queue  []terminal.Input // typed while what came before is on its way
	under  bool             // something is on its way
	back   int              // lines scrolled up
	sent   terminal.Size
}

// NewTerminal makes the page of agents' terminals, for as long as life lasts.
func NewTerminal(life context.Context, of Terminals) *Terminal {
	return &Terminal{Record: pane.NewRecord(TerminalName), of: of, life: life, hurry: make(chan struct{}, 1)}
}

func (p *Terminal) Broad() {}

func (p *Terminal) Title(pane.Env) string {
	parts := []string{p.Item().ID}
	if pic := p.pic; pic != nil {
		if pic.Title != "" {
			parts = append(parts, pic.Title)
		}
		parts = append(parts, string(pic.State))
		if pic.Back > 0 {
			parts = append(parts, pane.Plural(pic.Back, "line")+" up")
		}
	}
	switch d := p.desk; {
	case d.Mine && d.Asks != "":
		parts = append(parts, d.Asks+" ASKS FOR THE KEYBOARD: let go of it to give it")
	case p.typing:
		parts = append(parts, "you type")
	case p.lost:
		parts = append(parts, writer(d)+" HAS TAKEN THE KEYBOARD")
	case d.Asked:
		parts = append(parts, writer(d)+" types, and was asked")
	case d.Writer != "":
		parts = append(parts, writer(d)+" types")
	}
	if n := len(p.desk.Watchers); n > 1 {
		parts = append(parts, pane.Plural(n, "person")+" here")
	}
	return strings.Join(parts, " · ")
}

// writer names who types elsewhere.
func writer(d fleet.Desk) string {
	if d.Own {
		return "your other cockpit"
	}
	return cmp.Or(d.Writer, "nobody")
}

func (p *Terminal) Show(_ pane.Env, it pane.Item) tea.Cmd {
	if it.ID == p.Item().ID && p.seat != nil {
		return nil
	}
	leave := p.rise()
	p.Bind(it)
	p.err, p.pic, p.back, p.sent = nil, nil, 0, terminal.Size{}
	return leave
}

func (p *Terminal) Do(env pane.Env, action string) (tea.Cmd, bool) {
	seat, sitting := p.seat, p.sitting
	switch action {
	case "type":
		if seat == nil {
			p.err = nil // try again
			return nil, true
		}
		if !env.Types {
			return pane.Say("you may look here, and not type", true), true
		}
		p.wants, p.free = true, false
		return pane.Ask(TerminalName, func(ctx context.Context) any {
			mine, err := seat.Take(ctx)
			now := seat.Desk()
			return came{sitting: sitting, desk: &now, asked: !mine && err == nil, err: err}
		}), true
	case "detach":
		p.wants, p.typing, p.lost, p.free, p.queue = false, false, false, true, nil
		if seat == nil {
			return nil, true
		}
		return pane.Ask(TerminalName, func(ctx context.Context) any { return came{sitting: sitting, err: seat.Leave(ctx)} }), true
	case "top":
		return p.scroll(1 << 20), true
	case "bottom":
		return p.scroll(-1 << 20), true
	}
	by, step := screen.Step(action, p.h-1)
	return p.scroll(-by), step
}

func (p *Terminal) Refresh(pane.Env) tea.Cmd {
	p.again = p.err != nil && core.AsError(p.err).Code == core.Unavailable // an agent that starts has opened meanwhile
	return nil
}

func (p *Terminal) Resize(w, h int) { p.w, p.h = w, h }

func (p *Terminal) Selected(pane.Env) pane.Item {
	it := p.Item()
	it.Agent = it.ID
	return it
}

func (p *Terminal) Filter(pane.Env, string) (tea.Cmd, error) { return nil, nil }

func (p *Terminal) Draw(c *screen.Canvas, env pane.Env, focused bool) {
	switch {
	case p.err != nil:
		c.Text(0, 0, screen.Bad, core.AsError(p.err).Message)
		return
	case p.pic == nil:
		c.Text(0, 0, screen.Dim, "…")
		return
	}
	DrawScreen(c, p.pic)
	if p.pic.Cursor && p.typing && focused {
		c.SetCursor(p.pic.X, p.pic.Y-top(c.H(), p.pic))
	}
	if !p.pic.Runs {
		c.TextRight(0, c.H()-1, c.W(), screen.Dim, "no program runs")
	}
}
