// Package overview is the pane that says at a glance how a tenant is doing: its figures
// over an hour, a day or a week, who costs most, and what happened while nobody was here.
package overview

import (
	"context"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/face"
	"swarmdeck/engine/story"
	"swarmdeck/engine/trend"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "overview"

// Trends tell how a tenant is doing; *trend.Trends does.
type Trends interface {
	Overview(ctx context.Context, tenant, span string) (trend.Overview, error)
}

// Stories tell what happened since a time; *engine.Engine does.
type Stories interface {
	Story(ctx context.Context, tenant string, q story.Query) (lines []story.Line, more bool, err error)
}

const (
	again               = 2 * time.Second // how often it is read anew while things happen
	leastAway, mostAway = time.Minute, 7 * 24 * time.Hour
	mostLines           = 6 // of what happened meanwhile
	nameW               = 10
	textW               = 34
)

// Overview is the pane.
type Overview struct {
	*pane.Table[trend.Share]
	trends   Trends
	stories  Stories
	span     int // of trend.Spans
	projects bool
	reader   pane.Reader[read]
	got      read
	err      error
	at       time.Time // when it was read
	top      int       // the line of the list's titles, as it was drawn
}

// read is what was read.
type read struct {
	trend.Overview
	away away
}

// away is what happened while nobody was here.
type away struct {
	tenant      string
	from, until time.Time
	lines       []story.Line // the newest first
	more        int          // how many else
}

// New makes the pane.
func New(trends Trends, stories Stories) *Overview {
	p := &Overview{trends: trends, stories: stories, reader: pane.NewReader[read](Name)}
	p.Table = pane.NewTable(pane.Spec[trend.Share]{
		Name: Name, Title: Name, Empty: "nobody works here yet", Face: face.For[trend.Share](),
		Cells: map[string]pane.Cell[trend.Share]{
			"TOKENS": func(_ *pane.Env, s *trend.Share) (string, screen.Role) { return face.Tokens(s.Tokens), screen.Dim },
		},
		ID: func(s *trend.Share) string { return s.Name },
		Item: func(s *trend.Share) pane.Item {
			if p.projects {
				return pane.Item{Kind: "project", ID: s.Name}
			}
			return pane.Item{Kind: "agent", ID: s.Name, Agent: s.Name}
		},
	})
	return p
}

// Broad implements pane.Broad: charts want room.
func (p *Overview) Broad() {}

// Title implements pane.Pane.
func (p *Overview) Title(pane.Env) string {
	return fmt.Sprintf("overview  the last %s, by %s", p.over().Name, map[bool]string{false: "agent", true: "project"}[p.projects])
}

func (p *Overview) over() trend.Span { return trend.Spans()[p.span] }

func (p *Overview) Refresh(env pane.Env) tea.Cmd {
	if env.Now.Sub(p.at) < again {
		return nil
	}
	trends, stories, tenant, span, known := p.trends, p.stories, env.Tenant, p.over().Name, p.got.away
	return p.reader.Read(p.key(env), func(ctx context.Context) (r read, err error) {
		if r.Overview, err = trends.Overview(ctx, tenant, span); err == nil {
			r.away, err = known.now(ctx, stories, tenant, r.AwaySince, r.AwayUntil)
		}
		return r, err
	})
}

// now is what happened in a time; what is past is read once.
func (a away) now(ctx context.Context, stories Stories, tenant string, from, until time.Time) (away, error) {
	if a.tenant == tenant && a.from.Equal(from) && a.until.Equal(until) {
		return a, nil
	}
	a = away{tenant: tenant, from: from, until: until}
	if d := until.Sub(from); d < leastAway || d > mostAway {
		return a, nil
	}
	all, _, err := stories.Story(ctx, tenant, story.Query{Since: from})
	for _, l := range slices.Backward(all) {
		switch {
		case l.At.After(until) || !l.Bad && !l.Begins(): // what somebody must know, and what was begun
		case len(a.lines) == mostLines:
			a.more++
		default:
			a.lines = append(a.lines, l)
		}
	}
	return a, err
}

func (p *Overview) key(env pane.Env) string { return env.Tenant + " " + p.over().Name }

func (p *Overview) Update(env pane.Env, body any) tea.Cmd {
	a, ok := p.reader.Take(p.key(env), body)
	if !ok {
		return nil
	}
	p.at, p.err = env.Now, a.Err
	if a.Err == nil {
		p.got = a.Got
		p.lay(env)
	}
	return nil
}

func (p *Overview) lay(env pane.Env) {
	if p.projects {
		p.SetRows(env, p.got.Projects)
		return
	}
	p.SetRows(env, p.got.Agents)
}

func (p *Overview) Do(env pane.Env, action string) (tea.Cmd, bool) {
	switch action {
	case "span":
		p.span, p.at = (p.span+1)%len(trend.Spans()), time.Time{}
		return p.Refresh(env), true
	case "by":
		p.projects = !p.projects
		p.lay(env)
		return nil, true
	}
	return p.Table.Do(env, action)
}

func (p *Overview) Reset() {
	p.Table.Reset()
	p.got, p.err, p.at = read{}, nil, time.Time{}
}

func (p *Overview) Draw(c *screen.Canvas, env pane.Env, focused bool) {
	w, h := c.W(), c.H()
	if p.err != nil {
		c.TextIn(0, 0, w, screen.Bad, p.err.Error())
		return
	}
	p.top = p.head(c, env, h-4)
	_, rest := c.Bounds().SplitTop(p.top)
	if n := len(p.got.away.lines); n > 0 && rest.H >= n+8 {
		var below screen.Rect
		rest, below = rest.SplitBottom(n + 2)
		p.happened(c.Sub(below), env)
	}
	p.Table.Draw(c.Sub(rest), env, focused)
}

// Aim implements pane.Aimed.
func (p *Overview) Aim(y int) bool { return p.Table.Aim(y - p.top) }

// head draws the figures in at most so many lines, and says how many it took with the
// empty one below.
func (p *Overview) head(c *screen.Canvas, env pane.Env, most int) int {
	if len(p.got.Points) == 0 {
		return 0
	}
	lines := face.TrendLines(&p.got.Overview, min(c.W()-nameW-textW, p.over().Count), env.ASCII())
	n := min(len(lines), most)
	for y, l := range lines[:max(n, 0)] {
		role := screen.Text
		if l.Bad {
			role = screen.Bad
		}
		c.Text(0, y, screen.Dim, l.Name)
		end := c.Text(nameW, y, screen.Accent, l.Chart)
		c.TextIn(end+1, y, c.W()-end-1, role, l.Text)
	}
	return max(n+1, 0)
}

// happened draws what happened while nobody was here.
func (p *Overview) happened(c *screen.Canvas, env pane.Env) {
	a := &p.got.away
	title := "while nobody was here, " + pane.Clock(env.Now, a.from) + " to " + pane.Clock(env.Now, a.until)
	if a.more > 0 {
		title += fmt.Sprintf(": the newest of %d", a.more+len(a.lines))
	}
	c.TextIn(0, 1, c.W(), screen.Title, title)
	for i, l := range a.lines {
		role := screen.Text
		if l.Bad {
			role = screen.Bad
		}
		x := c.Text(0, i+2, screen.Dim, pane.Clock(env.Now, l.At)) + 2
		if l.Agent != "" {
			x = c.Text(x, i+2, screen.Accent, l.Agent) + 1
		}
		c.TextIn(x, i+2, c.W()-x, role, l.String())
	}
}
