package ui

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/keymap"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/gate"
	"swarmdeck/ui/pane/review"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// View implements tea.Model. While a remote terminal is behind, it stays as it
// was: the frames between are never sent, and the newest follows when the
// terminal has caught up.
func (m *Model) View() tea.View {
	if t := m.opt.Terminal; t != nil && t.Full != nil && m.shownW == m.w && m.shownH == m.h && t.Full() {
		return m.shown
	}
	m.shown, m.shownW, m.shownH = m.view(), m.w, m.h
	return m.shown
}

func (m *Model) view() tea.View {
	v := tea.View{AltScreen: true, ReportFocus: true, WindowTitle: m.windowTitle()}
	// Terminals that can tell repeats and releases apart are asked to.
	v.KeyboardEnhancements.ReportEventTypes = true
	c := m.Frame()
	if !m.pointer.off || m.pointed() { // else the terminal selects text with it
		v.MouseMode = tea.MouseModeCellMotion
	}
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
	if n := len(m.queue()); n > 0 {
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
		m.toasts.Draw(c, c.Bounds()) // ctrl+c may want to be pressed twice
		return c
	}
	c.TellLinks(m.opt.Links)
	m.pointer.keys = m.pointer.keys[:0]
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
	m.toasts.Draw(c, m.body())
	m.over.Draw(c)
	return c
}

// footer shows the keys that matter here, from the live bindings; while a
// sequence is open, how it can go on.
func (m *Model) footer(c *screen.Canvas) {
	y, w := c.H()-1, c.W()
	c.Fill(screen.Rect{X: 0, Y: y, W: w, H: 1}, screen.Footer, ' ')
	x := 1
	put := func(key, text string) {
		if x+term.Width(key)+1+term.Width(text) > w {
			return // a shorter one may fit
		}
		from := x
		x = c.Text(x, y, screen.FooterKey, key)
		x = c.Text(x+1, y, screen.Footer, text)
		m.pointer.keys = append(m.pointer.keys, spot{screen.Rect{X: from, Y: y, W: x - from, H: 1}, strings.Fields(key)})
		x += 2
	}
	if keys := m.keys.Pending(); len(keys) > 0 && m.now.Sub(m.guard.lastAt) <= sequenceGap {
		x = c.Text(x, y, screen.Warn, keys.String()) + 2
		for _, n := range m.opt.Keys.Lookup(m.scopes(), keys).More {
			put(n.Keys.String(), cmp.Or(n.Binding.Hint, n.Binding.Help))
		}
		return
	}
	it, marked := m.selected(), 0
	if p := m.focused(); p != nil {
		marked = len(p.Marks())
	}
	if marked > 0 {
		x = c.Text(x, y, screen.Marked, fmt.Sprintf(" %d marked ", marked)) + 2
		for _, b := range m.opt.Keys.Bindings(m.scopes()) {
			if b.Bulk && !m.opt.ReadOnly {
				put(b.Keys[0].String(), b.Verb())
			}
		}
	}
	for _, h := range m.opt.Keys.Hints(m.scopes()) {
		switch b := &h.Binding; {
		case b.Guard && !m.answerable(), m.opt.ReadOnly && m.changes(*b), b.Action == "undo" && len(m.undo) == 0,
			b.Action == "show-engines" && !m.snap.Cluster.Shared, b.Action == "mark-all" && marked == 0,
			marked > 0 && b.Scope != "global" && !b.Guard && b.Action != "pause" && b.Action != "mark-all": // it acts on one row
			continue
		}
		if text := m.hint(&h, &it); text != "" {
			put(h.Key, text)
		}
	}
}

// hint is what the footer says of a key where a thing is under the cursor, "" where the
// key does nothing now.
func (d *dialog) hint(h *keymap.Hint, it *pane.Item) string {
	frozen := it.Task != "" && pane.Frozen(&d.snap.EStop, it.Task, it.Agent)
	switch b := &h.Binding; {
	case b.Action == "estop" && d.snap.EStop.On:
		return "thaw"
	case b.Action == "pause" && it.Paused:
		return "resume"
	case b.Action == "pause" && (it.Empty() || frozen):
		return ""
	case b.Line != "" && !b.Fill:
		line, err := parseTemplate(b.Line)
		work := it.Kind != review.DiffName || strings.HasPrefix(it.ID, "tree:")
		if err == nil && len(line.takes()) > 0 && (line.lacks(it) || !work) {
			return ""
		}
	}
	return h.Text
}

// answerable reports whether there is an approval to answer where the focus is.
func (an *answers) answerable() bool {
	if p := an.focused(); p != nil && p.Name() == gate.CardName {
		ok, _ := an.card.Ready()
		return ok
	}
	return len(an.snap.Approvals) > 0
}
