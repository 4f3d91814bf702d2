package ui

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// View implements tea.Model.
func (m *Model) View() tea.View {
	v := tea.View{AltScreen: true, ReportFocus: true, WindowTitle: m.windowTitle()}
	// Terminals that can tell repeats and releases apart are asked to.
	v.KeyboardEnhancements.ReportEventTypes = true
	c := m.Frame()
	if m.content == "" {
		m.content = c.Render(m.theme)
	}
	v.Content = m.content
	if x, y, ok := c.Cursor(); ok {
		v.Cursor = tea.NewCursor(x, y)
	}
	return v
}

func (m *Model) windowTitle() string {
	if n := len(m.snap.Approvals); n > 0 {
		return "(" + strconv.Itoa(n) + ") swarmdeck"
	}
	return "swarmdeck"
}

// Frame is the screen as cells. It is drawn anew only when something changed.
func (m *Model) Frame() *screen.Canvas {
	if !m.dirty {
		return m.canvas
	}
	m.dirty, m.content = false, ""
	c := m.canvas
	if c.W() != m.w || c.H() != m.h {
		c.Resize(m.w, m.h)
	} else {
		c.Clear()
	}
	if m.small() {
		c.Text(0, 0, screen.Warn, fmt.Sprintf("needs %dx%d (now %dx%d), ctrl+c quits", leastW, leastH, m.w, m.h))
		return c
	}
	m.header(c)
	env := m.env()
	for _, pl := range m.place.shown {
		role := screen.Border
		if pl.focused {
			role = screen.BorderFocus
		}
		in := c.Box(pl.rect, role, pl.pane.Title(env))
		pl.pane.Draw(c.Sub(in), env, pl.focused)
	}
	m.footer(c)
	m.toasts.Draw(c, m.body(), m.focusRow(c)) // the first one lies on the frame's lower edge
	m.over.Draw(c)
	return c
}

// focusRow is the screen's row of the selected thing, -1 for none: toasts keep
// off it.
func (m *Model) focusRow(c *screen.Canvas) int {
	for _, pl := range m.place.shown {
		if !pl.focused {
			continue
		}
		for y := pl.rect.Y + 1; y < pl.rect.Y+pl.rect.H-1; y++ {
			if _, role, ok := c.At(pl.rect.X+1, y); ok && role == screen.Selected {
				return y
			}
		}
	}
	return -1
}

// headCounts are the header's numbers, counted once a snapshot.
type headCounts struct {
	states  [6]int
	working int
	queued  int64
	budget  float64 // the largest used share, 0 for none
}

// agentWords are the header's states in their order; the rest is offline.
var agentWords = [6]string{"needs you", "working", "idle", "paused", "failed", "offline"}

func count(s *engine.Snapshot) headCounts {
	var h headCounts
	for _, a := range s.Agents {
		i := 5
		switch a.State() {
		case "waiting for you":
			i = 0
		case "working", "busy", "starting":
			i = 1
		case "idle":
			i = 2
		case "paused", "pausing":
			i = 3
		case "failed":
			i = 4
		}
		h.states[i]++
	}
	h.working = h.states[0] + h.states[1]
	h.queued = s.Counts.ByStatus["queued"]
	for _, b := range s.Budgets {
		h.budget = max(h.budget, pane.BudgetShare(b))
	}
	return h
}

// header says where I am and what is going on, in one line; a second one
// stands out while the emergency stop is on.
func (m *Model) header(c *screen.Canvas) {
	w := c.W()
	c.Fill(screen.Rect{X: 0, Y: 0, W: w, H: 1}, screen.Header, ' ')
	x := c.Text(1, 0, screen.Header, m.tenant)
	if s := m.sessionText(); s != "" {
		x = c.Text(x, 0, screen.Header, " "+string(c.Glyphs().Separator)+" "+s)
	}
	right := w
	if n := len(m.snap.Approvals); n > 0 {
		text := fmt.Sprintf(" %s %d need you ", screen.Waiting.Glyph(c.Glyphs()), n)
		right = m.headRight(c, right, screen.HeaderHot, text)
	}
	if m.opt.ReadOnly {
		right = m.headRight(c, right, screen.HeaderHot, " read-only ")
	}
	if m.rec != nil {
		right = m.headRight(c, right, screen.HeaderHot, " rec ")
	}
	var parts []string
	for i, n := range m.counts.states {
		if i == 0 && w < wideW && len(m.snap.Approvals) > 0 {
			continue // what is on the right says it already
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, agentWords[i]))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no agents")
	}
	parts = append(parts, fmt.Sprintf("queue %d", m.counts.queued))
	if m.counts.budget > 0 {
		parts = append(parts, fmt.Sprintf("budget %.0f%%", 100*m.counts.budget))
	}
	c.TextIn(x+2, 0, right-x-3, screen.Header, strings.Join(parts, " "+string(c.Glyphs().Bullet)+" "))
	if e := m.snap.EStop; e.On {
		text := fmt.Sprintf(" EMERGENCY STOP, all %d acknowledged, E E thaws", e.Frozen)
		if n := len(e.Waiting); n > 0 {
			text = fmt.Sprintf(" EMERGENCY STOP, %d not acknowledged: %s", n, strings.Join(e.Waiting[:min(n, 3)], ", "))
		}
		c.TextIn(0, 1, w, screen.Danger, fmt.Sprintf("%s (%s, %s ago: %s)", text, e.By, pane.Age(m.now, e.At), e.Reason))
	}
}

func (m *Model) headRight(c *screen.Canvas, right int, role screen.Role, text string) int {
	n := len([]rune(text))
	c.Text(right-n, 0, role, text)
	return right - n
}

// sessionText is the session that is live, or how many are.
func (m *Model) sessionText() string {
	switch n := len(m.snap.Sessions); n {
	case 0:
		return ""
	case 1:
		s := m.snap.Sessions[0]
		name := s.Name
		if name == "" {
			name = s.SessionID
		}
		return name + " " + pane.SessionState(s).Word
	default:
		return fmt.Sprintf("%d sessions", n)
	}
}

// footer shows the keys that matter here, from the live bindings; while a
// sequence is open, how it can go on.
func (m *Model) footer(c *screen.Canvas) {
	y, w := c.H()-1, c.W()
	c.Fill(screen.Rect{X: 0, Y: y, W: w, H: 1}, screen.Footer, ' ')
	x := 1
	put := func(key, text string) bool {
		n := len([]rune(key)) + 1 + len([]rune(text)) + 2
		if x+n > w {
			return false
		}
		x = c.Text(x, y, screen.FooterKey, key)
		x = c.Text(x+1, y, screen.Footer, text) + 2
		return true
	}
	if keys := m.keys.Pending(); len(keys) > 0 && m.now.Sub(m.answers.lastAt) <= sequenceGap {
		x = c.Text(x, y, screen.Warn, keys.String()) + 2
		for _, n := range m.opt.Keys.Lookup(m.scopes(), keys).More {
			put(n.Keys.String(), n.Binding.Help)
		}
		return
	}
	if p := m.focused(); p != nil {
		if n := len(p.Marks()); n > 0 {
			x = c.Text(x, y, screen.Marked, fmt.Sprintf(" %d marked ", n)) + 2
		}
	}
	for _, h := range m.opt.Keys.Hints(m.scopes()) {
		if !put(h.Key, h.Text) {
			break
		}
	}
}
