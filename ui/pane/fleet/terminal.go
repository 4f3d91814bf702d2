package fleet

import (
	"cmp"
	"context"
	"image/color"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/terminal"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
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

// top is the first line of a picture that is drawn where it is higher than its
// room of h lines: what is at the cursor is seen.
func top(h int, pic *terminal.Screen) int {
	lines := min(max(len(pic.Lines), pic.Y+1), pic.Rows)
	return max(0, min(lines-h, pic.Y))
}

// DrawScreen draws a terminal's picture as its program wants it to look.
func DrawScreen(c *screen.Canvas, pic *terminal.Screen) {
	from := top(c.H(), pic)
	for y := 0; y < c.H() && from+y < len(pic.Lines); y++ {
		x := 0
		for _, span := range pic.Lines[from+y] {
			text := span.Text
			if span.Style.Attrs&terminal.Conceal != 0 {
				text = ""
			}
			next := drawSpan(c, x, y, span.Cells, text)
			c.Restyle(screen.Rect{X: x, Y: y, W: span.Cells, H: 1}, styleOf(span.Style))
			if x = next; x >= c.W() {
				break
			}
		}
	}
}

// drawSpan draws text in exactly so many cells: one character that takes another
// width here than it took there moves nothing behind it.
func drawSpan(c *screen.Canvas, x, y, cells int, text string) (next int) {
	next = x + cells
	at := x
	for text != "" && at < next {
		k, rest := term.Next(text)
		if k.Width == 0 || at+k.Width > next {
			break
		}
		at = c.Text(at, y, screen.Text, k.Text)
		text = rest
	}
	if at < next {
		c.Fill(screen.Rect{X: at, Y: y, W: next - at, H: 1}, screen.Text, ' ')
	}
	return next
}

// styleOf is a style as the toolkit has it.
func styleOf(s terminal.Style) uv.Style {
	own := uv.Style{Fg: colorOf(s.FG), Bg: colorOf(s.BG)}
	for i, attr := range [...]uint8{uv.AttrBold, uv.AttrFaint, uv.AttrItalic, 0, uv.AttrReverse, 0, uv.AttrBlink, uv.AttrStrikethrough} {
		if s.Attrs&(1<<i) != 0 {
			own.Attrs |= attr
		}
	}
	if s.Attrs&terminal.Underline != 0 {
		own.Underline = uv.UnderlineSingle
	}
	return own
}

func colorOf(c terminal.Color) color.Color {
	n, indexed := c.Index()
	r, g, b, direct := c.RGB()
	switch {
	case indexed && n < 16:
		return ansi.BasicColor(n)
	case indexed:
		return ansi.IndexedColor(n)
	case direct:
		return color.RGBA{r, g, b, 0xff}
	}
	return nil
}
