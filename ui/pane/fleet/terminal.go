package fleet

import (
	"context"
	"slices"
	"strconv"
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

// typingScope is the keymap scope of the keys that typing leaves.
const typingScope = "terminal-typing"

// Terminals give places at agents' terminals; *fleet.Fleet does.
type Terminals interface {
	Attach(ctx context.Context, by core.Caller, name string) (*fleet.Seat, error)
}

// Terminal shows an agent's terminal and has one type into it. What is drawn are
// the cells of an emulator, made harmless like all text of agents.
type Terminal struct {
	of   Terminals
	life context.Context // of the cockpit: a seat ends with it

	item    pane.Item
	visible bool
	w, h    int
	err     error

	seat    *fleet.Seat
	sitting int // counts seats: answers about an older one are dropped
	waiting bool
	cancel  context.CancelFunc
	pic     *terminal.Screen
	desk    fleet.Desk
	drawn   time.Time // when the newest picture came

	wants  bool // to type
	typing bool
	lost   bool             // the keyboard was taken from who types: keys go nowhere until they let go
	queue  []terminal.Input // typed while what came before is on its way
	under  bool             // something is on its way
	back   int              // lines scrolled up
	sent   terminal.Size
}

// NewTerminal makes the page of agents' terminals, for as long as life lasts.
func NewTerminal(life context.Context, of Terminals) *Terminal { return &Terminal{of: of, life: life} }

// Name implements pane.Pane.
func (p *Terminal) Name() string { return TerminalName }

// Kind implements pane.Pane.
func (p *Terminal) Kind() pane.Kind { return pane.Sheet }

// Broad implements pane.Broad.
func (p *Terminal) Broad() {}

// Title implements pane.Pane.
func (p *Terminal) Title(pane.Env) string {
	parts := []string{p.item.ID}
	if pic := p.pic; pic != nil {
		if pic.Title != "" {
			parts = append(parts, pic.Title)
		}
		parts = append(parts, string(pic.State))
		if pic.Back > 0 {
			parts = append(parts, plural(pic.Back, "line")+" up")
		}
	}
	switch d := p.desk; {
	case d.Mine && d.Asks != "":
		parts = append(parts, d.Asks+" ASKS FOR THE KEYBOARD: let go of it to give it")
	case p.typing:
		parts = append(parts, "you type")
	case p.lost:
		parts = append(parts, d.Writer+" HAS TAKEN THE KEYBOARD")
	case d.Asked:
		parts = append(parts, d.Writer+" types, and was asked")
	case d.Writer != "":
		parts = append(parts, d.Writer+" types")
	}
	if n := len(p.desk.Watchers); n > 1 {
		parts = append(parts, plural(n, "person")+" here")
	}
	return strings.Join(parts, " · ")
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	if word == "person" {
		return strconv.Itoa(n) + " people"
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// Show implements pane.Pane.
func (p *Terminal) Show(_ pane.Env, it pane.Item) tea.Cmd {
	if it.ID == p.item.ID && p.seat != nil {
		return nil
	}
	leave := p.rise()
	p.item, p.err, p.pic, p.back, p.sent = it, nil, nil, 0, terminal.Size{}
	return leave
}

// rise gives the seat up.
func (p *Terminal) rise() tea.Cmd {
	seat := p.seat
	p.seat, p.wants, p.typing, p.lost, p.queue, p.under, p.waiting = nil, false, false, false, nil, false, false
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
	pic     *terminal.Screen // nil if it is as it was
	desk    fleet.Desk
	err     error
}

// Follow implements pane.Follower.
func (p *Terminal) Follow(env pane.Env, visible bool) tea.Cmd {
	was := p.visible
	p.visible = visible
	switch {
	case !visible && was:
		return p.rise()
	case !visible || p.item.Empty():
		return nil
	case p.seat == nil && !p.waiting && p.err == nil:
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
	p.waiting, p.wants = true, env.Types
	by, name, may, sitting, of, life := env.Caller, p.item.ID, env.Types, p.sitting, p.of, p.life
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

// frameGap is the least time between two pictures.
const frameGap = 25 * time.Millisecond

// wait waits for another picture.
func (p *Terminal) wait() tea.Cmd {
	if p.cancel != nil {
		p.cancel()
	}
	ctx, cancel := context.WithCancel(p.life)
	p.waiting, p.cancel = true, cancel
	seat, sitting, desk, back, last := p.seat, p.sitting, p.desk, p.back, p.drawn
	known := uint64(0)
	if p.pic != nil {
		known = p.pic.Rev
	}
	return func() tea.Msg {
		s := seen{sitting: sitting}
		if s.err = seat.Wait(ctx, known, desk); s.err == nil {
			if gap := frameGap - time.Since(last); gap > 0 {
				time.Sleep(gap) // what changes on the way is a part of it
			}
			if s.pic, s.err = seat.Screen(0, back); s.err == nil {
				s.desk = seat.Desk()
			}
		}
		return pane.Woke{Pane: TerminalName, Body: s}
	}
}

// Woke implements pane.Follower.
func (p *Terminal) Woke(_ pane.Env, body any) tea.Cmd {
	s, ok := body.(seen)
	if !ok || s.sitting != p.sitting {
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
	p.took(s)
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
	p.desk = d
	was := p.typing
	p.typing = p.wants && d.Mine
	if was && !p.typing && p.wants {
		p.wants, p.lost, p.queue = false, true, nil
	}
}

// Update implements pane.Pane.
func (p *Terminal) Update(_ pane.Env, body any) tea.Cmd {
	switch c := body.(type) {
	case seen:
		if c.sitting == p.sitting && c.err == nil {
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
		p.seat, p.waiting = c.seat, false
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
		if len(p.queue) > 0 {
			cmds = append(cmds, p.send())
		}
	}
	if c.desk != nil {
		if p.sat(*c.desk); p.typing {
			p.back = 0
		}
	}
	return tea.Batch(cmds...)
}

// Typing implements pane.Hand.
func (p *Terminal) Typing() (scope string, on bool) { return typingScope, p.typing || p.lost }

// Secret implements pane.Hand.
func (p *Terminal) Secret() bool { return p.pic != nil && p.pic.Unseen }

// Press implements pane.Hand.
func (p *Terminal) Press(_ pane.Env, k tea.KeyPressMsg) tea.Cmd {
	in := terminal.Input{Key: k.String()}
	if k.Text != "" && k.Mod&^tea.ModShift == 0 {
		in = terminal.Input{Text: k.Text}
	}
	return p.put(in)
}

// Paste implements pane.Hand.
func (p *Terminal) Paste(_ pane.Env, text string) tea.Cmd { return p.put(terminal.Input{Paste: text}) }

// maxQueue bounds what is typed while the engine takes nothing.
const maxQueue = 1000

func (p *Terminal) put(in terminal.Input) tea.Cmd {
	if p.lost {
		return pane.Say(p.desk.Writer+" has the keyboard now: what you type goes nowhere; the key that lets go takes you on", true)
	}
	if len(p.queue) >= maxQueue {
		return pane.Say("too much was typed ahead: the rest is lost", true)
	}
	p.queue = append(p.queue, in)
	p.back = 0
	if p.under {
		return nil
	}
	return p.send()
}

// send hands on what was typed, together what came together.
func (p *Terminal) send() tea.Cmd {
	in, seat, sitting := slices.Clone(p.queue), p.seat, p.sitting
	p.queue, p.under = nil, true
	return pane.Ask(TerminalName, func(ctx context.Context) any {
		return came{sitting: sitting, typed: true, err: seat.Type(ctx, in)}
	})
}

// Do implements pane.Pane.
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
		p.wants = true
		return pane.Ask(TerminalName, func(ctx context.Context) any {
			mine, err := seat.Take(ctx)
			now := seat.Desk()
			return came{sitting: sitting, desk: &now, asked: !mine && err == nil, err: err}
		}), true
	case "detach":
		if p.lost {
			p.lost = false
			return nil, true
		}
		if !p.typing {
			return nil, false
		}
		p.wants, p.typing, p.queue = false, false, nil
		return pane.Ask(TerminalName, func(ctx context.Context) any { return came{sitting: sitting, err: seat.Leave(ctx)} }), true
	case "up", "down", "half-up", "half-down", "page-up", "page-down", "top", "bottom":
		return p.scroll(action), true
	}
	return nil, false
}

// scroll moves the picture by lines.
func (p *Terminal) scroll(action string) tea.Cmd {
	if p.seat == nil || p.pic == nil {
		return nil
	}
	by := map[string]int{"up": 1, "down": -1, "half-up": p.h / 2, "half-down": -p.h / 2, "page-up": p.h - 1, "page-down": 1 - p.h, "top": 1 << 20, "bottom": -1 << 20}[action]
	p.back = min(max(p.back+by, 0), p.pic.Above)
	seat, sitting, back := p.seat, p.sitting, p.back
	p.waiting = false // it waits with what is scrolled to
	return pane.Ask(TerminalName, func(context.Context) any {
		pic, err := seat.Screen(0, back)
		return seen{sitting, pic, seat.Desk(), err}
	})
}

// Refresh implements pane.Pane.
func (p *Terminal) Refresh(pane.Env) tea.Cmd { return nil }

// Resize implements pane.Pane.
func (p *Terminal) Resize(w, h int) { p.w, p.h = w, h }

// Selected implements pane.Pane.
func (p *Terminal) Selected(pane.Env) pane.Item {
	it := p.item
	it.Agent = it.ID
	return it
}

// Marks implements pane.Pane.
func (p *Terminal) Marks() []pane.Item { return nil }

// ClearMarks implements pane.Pane.
func (p *Terminal) ClearMarks() {}

// Filter implements pane.Pane.
func (p *Terminal) Filter(pane.Env, string) (tea.Cmd, error) { return nil, nil }

// FilterText implements pane.Pane.
func (p *Terminal) FilterText() string { return "" }

// Reset implements pane.Pane.
func (p *Terminal) Reset() { p.item = pane.Item{} }

// Draw implements pane.Pane.
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
		c.SetCursor(p.pic.X, p.pic.Y-top(c, p.pic))
	}
	if !p.pic.Runs {
		c.TextRight(0, c.H()-1, c.W(), screen.Dim, "no program runs")
	}
}
