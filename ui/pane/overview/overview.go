// Package overview is the pane that says at a glance how a tenant is doing: its figures
// over an hour, a day or a week, who costs most, and what happened while nobody was here.
package overview

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/face"
	"swarmdeck/engine/story"
	"swarmdeck/engine/trend"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/record"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "overview"

// Trends tell how a tenant is doing; *trend.Trends does.
type Trends interface {
	Overview(ctx context.Context, tenant, span string) (trend.Overview, error)
}

const (
	again    = 2 * time.Second // how often it is read anew while things happen
	longAway = 7 * 24 * time.Hour
	mostAway = 6 // lines of what happened meanwhile
	nameW    = 10
	textW    = 34
)

// Overview is the pane.
type Overview struct {
	*pane.Table[trend.Share]
	trends   Trends
	stories  record.Storyteller
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
	away []story.Line // the newest first
	more int          // how many else
}

// New makes the pane.
func New(trends Trends, stories record.Storyteller) *Overview {
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
	trends, stories, tenant, span := p.trends, p.stories, env.Tenant, p.over().Name
	return p.reader.Read(p.key(env), func(ctx context.Context) (r read, err error) {
		if r.Overview, err = trends.Overview(ctx, tenant, span); err != nil || r.AwaySince.IsZero() || r.At.Sub(r.AwaySince) > longAway {
			return r, err
		}
		lines, _, err := stories.Story(ctx, tenant, story.Query{Since: r.AwaySince})
		for i := len(lines) - 1; i >= 0; i-- { // what somebody must know first, of this what is new
			if l := lines[i]; l.Bad || l.Begins() {
				r.away = append(r.away, l)
			}
		}
		r.more = max(0, len(r.away)-mostAway)
		r.away = r.away[:len(r.away)-r.more]
		return r, err
	})
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
	if n := len(p.got.away); n > 0 && rest.H >= n+8 {
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
	title := "since " + pane.Clock(env.Now, p.got.AwaySince) + ", while nobody was here"
	if p.got.more > 0 {
		title += fmt.Sprintf(": the newest of %d", p.got.more+len(p.got.away))
	}
	c.TextIn(0, 1, c.W(), screen.Title, title)
	for i, l := range p.got.away {
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
