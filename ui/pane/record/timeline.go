package record

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/ui/graph"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

const timelineName = "timeline"

// wideFrom is the width from which the event under the cursor stands beside.
const wideFrom = 120

// Timeline shows a timeline. It holds the pages around the window only.
type Timeline struct {
	*pane.Table[dag.Moment]
	dag    DAG
	it     pane.Item
	follow bool // the newest event stays under the cursor
	past   bool // what was so then is shown
	zoom   bool // what stands beside has the keys
	of     string
	reader pane.Reader[beside]
	forks  forks
	side   pane.Page
	w, h   int
	axis   axis
}

// beside is what stands beside an event: the event at length, or what was so then.
type beside struct {
	event *dag.Detail
	state *dag.State
}

// Columns that are drawn by width.
const (
	colTook = 3
	colAxis = 5
)

// NewTimeline makes the sheet of what happened in a run, or to a task, agent or
// session: messages, requests, calls, results, decisions and interruptions on
// one axis of time, the oldest first. It travels: beside it stands what was so
// right after the event under the cursor.
func NewTimeline(of DAG, past Forks) *Timeline {
	p := &Timeline{dag: of, reader: pane.NewReader[beside](timelineName), forks: newForks(timelineName, past)}
	p.Table = pane.NewTable(pane.Spec[dag.Moment]{
		Name: timelineName, Title: "timeline", Empty: "nothing is recorded of it yet", Forward: true,
		Cols: []grid.Column{
			{Title: "AT", Min: 14},
			{Title: "WHAT", Min: 14},
			{Title: "SAYS", Min: 32, Weight: 3, Key: true},
			{Title: "TOOK", Min: 6, Right: true},
			{Title: "AGENT", Min: 8, Priority: 2},
			{Title: "TIME", Min: 24, Priority: 3, Fill: true},
		},
		Item:  func(m *dag.Moment) pane.Item { return eventItem(&m.Recorded) },
		Row:   p.row,
		Fetch: func(context.Context, string, core.Filter) (none core.Page[dag.Moment], err error) { return none, nil },
	})
	return p
}

func (p *Timeline) Kind() pane.Kind { return pane.Sheet }

// Broad implements pane.Broad: an axis needs room.
func (p *Timeline) Broad() {}

func (p *Timeline) Show(_ pane.Env, it pane.Item) tea.Cmd {
	if it.ID == p.it.ID {
		return nil
	}
	p.Reset()
	p.it = it
	p.Rebind(p.fetch(false), p.fetch(true))
	return nil
}

// fetch reads what is shown, with bookkeeping or without.
func (p *Timeline) fetch(all bool) func(context.Context, string, core.Filter) (core.Page[dag.Moment], error) {
	of, subject := p.dag, p.it.ID // a Cmd must not look at the pane
	return func(ctx context.Context, tenant string, f core.Filter) (core.Page[dag.Moment], error) {
		q := dag.Query{Filter: f, Short: true, All: all}
		if err := of.Subject(ctx, tenant, subject, &q); err != nil {
			return core.Page[dag.Moment]{}, err
		}
		return of.Timeline(ctx, tenant, q)
	}
}

func (p *Timeline) Reset() {
	p.Table.Reset()
	p.it, p.follow, p.past, p.zoom, p.of = pane.Item{}, true, false, false, ""
	p.side = pane.Page{}
	p.Resize(p.w, p.h)
}

func (p *Timeline) Refresh(env pane.Env) tea.Cmd {
	if p.it.ID == "" {
		return nil
	}
	return tea.Batch(p.Table.Refresh(env), p.look(env))
}

func (p *Timeline) Update(env pane.Env, body any) tea.Cmd {
	if cmd, mine := p.forks.Take(p.Selected(env).ID, body); mine {
		return cmd
	}
	if a, ok := p.reader.Take(p.of, body); ok {
		var out pane.Paras
		switch {
		case a.Err != nil:
			out.Add("", a.Err.Error(), screen.Bad)
		case a.Got.state != nil:
			state(env, a.Got.state, &out)
		default:
			eventText(env, a.Got.event, &out)
		}
		p.side.Set(out)
		return nil
	}
	cmds := []tea.Cmd{p.Table.Update(env, body)}
	if p.follow {
		cmd, _ := p.Table.Do(env, "bottom")
		cmds = append(cmds, cmd)
	}
	return tea.Batch(append(cmds, p.look(env))...)
}

// look reads what is to stand beside the event under the cursor, also where
// there is no room for it: there may be more at once.
func (p *Timeline) look(env pane.Env) tea.Cmd {
	m, ok := p.Row()
	if !ok {
		return nil
	}
	id := m.Event.EventID
	if key := fmt.Sprintf("%s %t", id, p.past); key != p.of {
		p.of = key
		p.side.Set(nil)
		p.side.Top()
	} else if p.side.Lines() > 0 { // neither an event nor a state of the past changes
		return nil
	}
	of, tenant, past := p.dag, env.Tenant, p.past
	return p.reader.Read(p.of, func(ctx context.Context) (beside, error) {
		if past {
			was, err := of.At(ctx, tenant, id)
			return beside{state: &was}, err
		}
		r, err := fetchRecorded(ctx, of, tenant, id)
		return beside{event: r.Event}, err
	})
}

func (p *Timeline) Do(env pane.Env, action string) (tea.Cmd, bool) {
	beside := p.past || p.w >= wideFrom
	switch action {
	case "fork":
		return p.forks.Do(env, p.Selected(env)), true
	case "travel":
		p.past, p.zoom, p.of = !p.past, false, ""
		p.follow = p.follow && !p.past
		p.Resize(p.w, p.h)
		return p.look(env), true
	case "now":
		p.past, p.zoom, p.of, p.follow = false, false, "", true
		p.Resize(p.w, p.h)
		cmd, _ := p.Table.Do(env, "bottom")
		return tea.Batch(cmd, p.look(env)), true
	case "follow":
		p.follow = !p.follow && !p.past
		if !p.follow {
			return nil, true
		}
		cmd, _ := p.Table.Do(env, "bottom")
		return tea.Batch(cmd, p.look(env)), true
	case "right":
		p.zoom = beside
		p.Resize(p.w, p.h)
		return nil, beside
	case "left":
		if !p.zoom {
			return nil, false
		}
		p.zoom = false
		p.Resize(p.w, p.h)
		return nil, true
	}
	if action == "show-all" {
		p.follow = !p.past
		return p.Table.Do(env, action)
	}
	if p.zoom {
		return nil, p.side.Do(action)
	}
	cmd, ok := p.Table.Do(env, action)
	if !ok {
		return nil, false
	}
	row, n := p.Position(), p.Len()
	p.follow = !p.past && row == n-1
	return tea.Batch(cmd, p.look(env)), true
}

func (p *Timeline) Filter(env pane.Env, text string) (tea.Cmd, error) {
	p.follow = !p.past
	return p.Table.Filter(env, text)
}

func (p *Timeline) Open(env pane.Env) pane.Item {
	if p.zoom {
		return p.side.Item()
	}
	it := p.Selected(env)
	it.Row = ""
	return it
}

// Picture implements pane.Viewer: the lineage of the event under the cursor.
func (p *Timeline) Picture(pane.Env) pane.Item {
	m, ok := p.Row()
	if !ok {
		return pane.Item{}
	}
	return pane.LineageOf(dag.NodeRef{Type: dag.TypeEvent, ID: m.Event.EventID})
}

func (p *Timeline) Title(env pane.Env) string {
	kind, id, _ := strings.Cut(p.it.ID, ":")
	title := fmt.Sprintf("timeline of %s %s  %d", kind, graph.Brief(id), p.Len()) + p.Booked()
	if text := p.FilterText(); text != "" {
		title += "  /" + text
	}
	switch {
	case p.past:
		title += "  PAST: not as it is now"
	case !p.follow:
		title += "  (not following: f follows)"
	}
	return title
}

func (p *Timeline) Resize(w, h int) {
	p.w, p.h = w, h
	_, side := p.share(screen.Rect{W: w, H: h})
	p.side.Resize(max(side.W, 1), max(side.H-1, 1)) // below a line that says what it is
}

// share divides the pane: the list, and what stands beside it or below.
func (p *Timeline) share(r screen.Rect) (list, side screen.Rect) {
	switch {
	case p.zoom:
		return screen.Rect{}, r
	case r.W >= wideFrom:
		list, side = r.SplitLeft(r.W * 3 / 5)
		side.X, side.W = side.X+1, max(side.W-1, 0)
		return list, side
	case p.past:
		return r.SplitTop(r.H * 2 / 5)
	}
	return r, screen.Rect{}
}

func (p *Timeline) Draw(c *screen.Canvas, env pane.Env, focused bool) {
	list, side := p.share(c.Bounds())
	p.axis = p.reach(env, list.H)
	p.Table.Draw(c.Sub(list), env, focused && !p.zoom)
	if side.W < 8 || side.H < 2 {
		return
	}
	if side.X > 0 {
		c.VLine(side.X-1, side.Y, side.H, screen.Border)
	}
	head, body := side.SplitTop(1)
	b := c.Sub(head)
	m, ok := p.Row()
	switch {
	case !ok:
	case p.past:
		b.Fill(b.Bounds(), screen.Warn, ' ')
		b.TextIn(0, 0, b.W(), screen.Warn, fmt.Sprintf("%s PAST: as of %s, event %d of %d   n: back to now", screen.TimedOut.Glyph(env.Glyphs), pane.Precise(env.Now, m.Event.TS.Time()), p.Position()+1, p.Len()))
	default:
		x := b.Text(0, 0, screen.Title, graph.Word(string(m.Event.Kind))+" "+graph.Brief(m.Event.EventID))
		b.HLine(x+1, 0, b.W()-x-1, screen.Border)
	}
	p.side.Draw(c.Sub(body), focused && p.zoom)
}

// axis is the time that the rows in sight span.
type axis struct{ from, to time.Time }

// reach is that time: from the beginning of what ends in sight to the end of
// what begins there.
func (p *Timeline) reach(env pane.Env, h int) (a axis) {
	p.Sight(h, func(m *dag.Moment) {
		from, to := span(env.Now, m)
		if a.from.IsZero() || from.Before(a.from) {
			a.from = from
		}
		if to.After(a.to) {
			a.to = to
		}
	})
	return a
}

// span is the time from what began to what ended, whichever of the two a
// record dates first; an event is a point.
func span(now time.Time, m *dag.Moment) (from, to time.Time) {
	at := m.Event.TS.Time()
	switch {
	case !m.From.IsZero():
		return ordered(m.From.Time(), at)
	case !m.Until.IsZero():
		return ordered(at, m.Until.Time())
	case m.Status == "open" || m.Status == "running":
		if now.After(at) {
			return at, now
		}
	}
	return at, at
}

func ordered(a, b time.Time) (from, to time.Time) {
	if b.Before(a) {
		return b, a
	}
	return a, b
}
