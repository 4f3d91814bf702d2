package pane

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/task"
	"swarmdeck/ui/logview"
	"swarmdeck/ui/screen"
)

// Split is a sheet with a live log below it. Keys scroll the record, or the
// log once "right" gave it the whole pane; "left" at its left edge gives the
// pane back. The zero value is a sheet without a log.
type Split struct {
	tail   *Tail // nil: there is no log
	view   logview.View
	zoom   bool             // the log has the whole pane and the keys
	shift  int              // steps the log was scrolled to the right
	missed bool             // the last search found nothing
	now    Env              // of the last call, for the time of lines
	laid   map[uint64]*said // lines that are more than text, by their seq

	unfolded bool // thoughts and plans are shown whole
	scratch  *screen.Canvas
	w, h     int
}

// NewSplit makes the log part for a pane.
func NewSplit(name string, logs Logs) Split {
	s := Split{tail: NewTail(name, logs), scratch: screen.New(0, 0)}
	s.view.Do("wrap")
	return s
}

// bind shows another stream from its end: a task id, "agent:NAME", or "".
func (s *Split) bind(stream string) {
	if s.tail == nil {
		return
	}
	s.tail.Bind(stream)
	s.view.Empty = "no lines yet"
	s.view.SetSource(lines{s})
	s.zoom, s.shift, s.missed, s.laid, s.unfolded = false, 0, false, nil, false
}

// refresh reads what was added to the log.
func (s *Split) refresh(env Env) tea.Cmd {
	if s.tail == nil {
		return nil
	}
	s.now = env
	if !s.view.Following() { // what is new is below the window; only count it
		return s.tail.Count(env)
	}
	return s.tail.Refresh(env)
}

// take stores a reply and reports whether it was one about the log.
func (s *Split) take(env Env, body any) (tea.Cmd, bool) {
	if s.tail == nil {
		return nil, false
	}
	cmd, mine := s.tail.Take(env, body)
	if mine && cmd == nil {
		cmd = s.need(env)
	}
	return cmd, mine
}

// lines is the log's view of the tail.
type lines struct{ s *Split }

func (l lines) Last() uint64 { return l.s.tail.last }

func (l lines) Lines(from uint64, n int) []logview.Line {
	got := l.s.tail.Window(from, n)
	out := make([]logview.Line, len(got))
	for i := range got {
		out[i] = line(l.s.now, &got[i])
		if x := l.s.said(&got[i]); x != nil {
			out[i].Flow = x
		}
	}
	return out
}

func line(env Env, l *task.LogLine) logview.Line {
	out := logview.Line{Seq: l.Seq, Head: Clock(env.Now, l.Timestamp), HeadRole: screen.Dim, Text: l.Message}
	switch l.Level {
	case "ERROR":
		out.Role = screen.Bad
	case "WARN":
		out.Role = screen.Warn
	case "DEBUG":
		out.Role = screen.Dim
	}
	switch l.Source {
	case "", "message", "stdout":
	default:
		out.Head += " " + l.Source
	}
	return out
}

// Zoomed tells whether the log has the whole pane and the keys.
func (s *Split) Zoomed() bool { return s.zoom }

// heights are the rows of the record and of the log, with the line between.
func (s *Split) heights() (record, log int) {
	switch {
	case s.tail == nil:
		return s.h, 0
	case s.zoom:
		return 0, s.h
	}
	return s.h - s.h/2, s.h / 2
}

// resize shares the pane out.
func (s *Split) resize(page *Page, w, h int) {
	s.w, s.h = w, h
	record, _ := s.heights()
	page.Resize(w, max(record, 1))
}

// do scrolls what has the keys.
func (s *Split) do(env Env, page *Page, action string) (tea.Cmd, bool) {
	s.now = env
	switch {
	case s.tail == nil:
		return nil, page.Do(action)
	case action == "follow" || action == "wrap":
		if s.view.Do(action); action == "wrap" {
			s.shift = 0
		}
		return s.tail.Refresh(env), true
	case !s.zoom && action == "right":
		s.zoom = true
		return s.need(env), true
	case s.zoom && action == "left" && s.shift == 0:
		s.zoom = false
		s.resize(page, s.w, s.h)
		return nil, true
	case !s.zoom && (action == "fold" || action == "fold-all"):
		return nil, page.Do(action) || s.unfold()
	case !s.zoom:
		return nil, page.Do(action)
	case action == "fold" || action == "fold-all" || action == "open":
		return nil, s.unfold()
	case action == "right" && s.view.Wrapped(): // nothing is further right
		return nil, true
	case action == "next-match" || action == "prev-match":
		dir := 1
		if action == "prev-match" {
			dir = -1
		}
		s.missed = s.view.Query() != "" && !s.view.Find(dir)
		return s.need(env), true
	case !s.view.Do(action):
		return nil, false
	}
	switch action {
	case "right":
		s.shift++
	case "left":
		s.shift--
	}
	return s.need(env), true
}

// need reads the lines that the log's window lacks.
func (s *Split) need(env Env) tea.Cmd {
	_, log := s.heights()
	s.scratch.Resize(s.w, max(log-1, 0))
	s.view.Draw(s.scratch, s.scratch.Bounds())
	if from, n := s.view.Missing(); n > 0 {
		return s.tail.Need(env, from, n)
	}
	return nil
}

// search searches the log for text.
func (s *Split) search(env Env, text string) tea.Cmd {
	if s.tail == nil {
		return nil
	}
	s.now = env
	s.missed = !s.view.Search(text)
	return s.need(env)
}

// draw draws the record above and the log below.
func (s *Split) draw(c *screen.Canvas, env Env, page *Page, focused bool) {
	s.now = env
	record, log := s.heights()
	top, rest := c.Bounds().SplitTop(record)
	if record > 0 {
		page.Draw(c.Sub(top), focused)
	}
	if log < 1 {
		return
	}
	title := "log"
	if !s.view.Following() {
		title = "log (not following: f follows)"
	}
	if !s.view.Wrapped() {
		title += " not wrapped"
	}
	if q := s.view.Query(); q != "" {
		title += " /" + q
		if s.missed {
			title += ": no more in the lines at hand"
		}
	}
	if err := s.tail.err; err != nil {
		title += ": " + err.Error()
	}
	x := c.Text(rest.X, rest.Y, screen.Title, title)
	c.HLine(x+1, rest.Y, rest.W-x-1, screen.Border)
	_, body := rest.SplitTop(1)
	s.view.Draw(c, body)
}
