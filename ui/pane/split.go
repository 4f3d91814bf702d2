package pane

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/swarm"
	"swarmdeck/ui/screen"
)

// Split is a sheet with a live log below it. Keys scroll the record, or the
// log once it was given the room with "right"; "left" gives it back.
type Split struct {
	Log  Tail
	zoom bool // the log has the whole pane and the keys
	top  uint64
	free bool // the log was scrolled: it does not follow
	w, h int
}

// NewSplit makes the log part for a pane.
func NewSplit(name string) Split { return Split{Log: NewTail(name)} }

// heights are the rows of the record and of the log, without the line between.
func (s *Split) heights() (record, log int) {
	if s.zoom {
		return 0, max(s.h-1, 0)
	}
	log = s.h / 2
	return s.h - log, max(log-1, 0)
}

// Resize shares the pane out.
func (s *Split) Resize(page *Page, w, h int) {
	s.w, s.h = w, h
	record, _ := s.heights()
	page.Resize(w, max(record, 1))
}

// Do scrolls what has the keys.
func (s *Split) Do(env Env, page *Page, action string) (tea.Cmd, bool) {
	switch action {
	case "right":
		if s.zoom {
			return nil, true
		}
		s.zoom = true
		return nil, true
	case "left":
		if s.zoom {
			s.zoom = false
			s.Resize(page, s.w, s.h)
			return nil, true
		}
		return nil, false
	case "follow":
		s.free = !s.free
		return s.Log.Refresh(env), true
	}
	if !s.zoom {
		return nil, page.Do(action)
	}
	return nil, false
}

// Find searches the log.
func (s *Split) Find(Env, string) tea.Cmd { return nil }

// Draw draws the record above and the log below.
func (s *Split) Draw(c *screen.Canvas, env Env, page *Page) {
	record, log := s.heights()
	top, rest := c.Bounds().SplitTop(record)
	if record > 0 {
		page.Draw(c.Sub(top))
	}
	if rest.H < 1 {
		return
	}
	x := c.Text(rest.X, rest.Y, screen.Title, "log")
	c.HLine(x+1, rest.Y, rest.W-x-1, screen.Border)
	from := uint64(1)
	if last := s.Log.Last(); last > uint64(log) {
		from = last - uint64(log) + 1
	}
	for i, l := range s.Log.Window(from, log) {
		drawLine(c, env, rest.Y+1+i, rest.W, &l)
	}
}

func drawLine(c *screen.Canvas, env Env, y, w int, l *swarm.LogLine) {
	x := c.Text(0, y, screen.Dim, Clock(env.Now, l.Timestamp))
	role := screen.Text
	switch l.Level {
	case "ERROR":
		role = screen.Bad
	case "WARN":
		role = screen.Warn
	case "DEBUG":
		role = screen.Dim
	}
	c.TextIn(x+1, y, w-x-1, role, l.Message)
}
