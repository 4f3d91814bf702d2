package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// pointer is what the mouse can do, of what was drawn last. A click is a key: whatever
// holds a key back holds a click on its word in the footer back too.
type pointer struct {
	off    bool           // the mouse is the terminal's, which selects text with it
	keys   []spot         // of the footer and the header
	split  string         // the pane whose right border is being dragged, "" for none
	widths map[string]int // of panes whose border was dragged
}

// spot is a part of the screen that stands for keys.
type spot struct {
	screen.Rect
	keys []string
}

const (
	wheelLines = 3  // that a step of the wheel goes
	leastSplit = 24 // cells of a pane whose border is dragged
)

// switchMouse gives the mouse to the terminal, or takes it back.
func (m *Model) switchMouse() tea.Cmd {
	if m.pointer.off = !m.pointer.off; m.pointer.off {
		return m.say(false, "", "the mouse is the terminal's: it selects text")
	}
	return m.say(false, "", "the mouse selects, opens and scrolls; with shift it selects text")
}

// pointed reports whether a pane is shown that has the mouse for itself.
func (d *dialog) pointed() bool {
	for _, pl := range d.place.shown {
		if _, is := pl.pane.(pane.Pointed); is {
			return !d.over.Open() && !d.small()
		}
	}
	return false
}

// mouse does what the mouse asks for.
func (m *Model) mouse(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	p := &m.pointer
	switch msg.(type) {
	case tea.MouseReleaseMsg:
		p.split = ""
	case tea.MouseMotionMsg:
		if p.split != "" && at.Button == tea.MouseLeft {
			m.drag(at.X)
			return nil
		}
	case tea.MouseClickMsg, tea.MouseWheelMsg:
		m.presses++ // what comes under the cursor by it is meant
	}
	if m.small() {
		return nil
	}
	if s := m.spotAt(at.X, at.Y); s != nil && !m.over.Open() {
		if _, is := msg.(tea.MouseClickMsg); is && at.Button == tea.MouseLeft {
			return m.pressed(s.keys)
		}
		return nil
	}
	if m.rec != nil {
		m.rec.mouse(msg, m.now)
	}
	if m.over.Open() {
		if w, is := msg.(tea.MouseWheelMsg); is {
			return m.overlayKey(tea.KeyPressMsg{Code: map[tea.MouseButton]rune{tea.MouseWheelUp: tea.KeyUp, tea.MouseWheelDown: tea.KeyDown}[w.Button]}, false)
		}
		cmd, _ := m.over.Update(msg, m.now)
		return cmd
	}
	for _, pl := range m.place.shown {
		if !pl.rect.Contains(at.X, at.Y) {
			continue
		}
		in := pl.rect.Inset(1)
		if h, is := pl.pane.(pane.Pointed); is && in.Contains(at.X, at.Y) {
			return m.track(h.Mouse(m.env(), msg, at.X-in.X, at.Y-in.Y))
		}
		return m.mouseOn(pl, msg, at.X, at.Y-in.Y)
	}
	return nil
}

// mouseOn does what the mouse asks for on a pane: the wheel scrolls it, a click gives it
// the keys and selects the row at y, and one on what is selected opens that. The right
// button marks a row.
func (m *Model) mouseOn(pl placed, msg tea.MouseMsg, x, y int) tea.Cmd {
	switch b := msg.Mouse().Button; msg.(type) {
	case tea.MouseWheelMsg:
		step := map[tea.MouseButton]string{tea.MouseWheelUp: "up", tea.MouseWheelDown: "down"}[b]
		var cmds []tea.Cmd
		for range wheelLines {
			if cmd, ok := pl.pane.Do(m.env(), step); ok {
				cmds = append(cmds, m.track(cmd))
			}
		}
		return tea.Batch(cmds...)
	case tea.MouseClickMsg:
		if b == tea.MouseRight {
			if l, is := pl.pane.(pane.Aimed); is && pl.pane.Kind() == pane.List && l.Aim(y) {
				m.focusOn(pl)
				cmd, _ := pl.pane.Do(m.env(), "mark")
				l.Aim(y) // which goes on to the next row
				return m.track(cmd)
			}
		}
		if b != tea.MouseLeft {
			return nil
		}
		if x == pl.rect.X+pl.rect.W-1 && x < m.w-1 {
			m.pointer.split = pl.pane.Name()
			return nil
		}
		was := pl.pane.Selected(m.env())
		row := false
		if l, is := pl.pane.(pane.Aimed); is {
			row = l.Aim(y)
		}
		if row && pl.focused && pl.pane.Selected(m.env()).ID == was.ID {
			return m.action("open")
		}
		m.focusOn(pl)
	}
	return nil
}

// spotAt is what stands for keys at a place, nil for none.
func (ps *places) spotAt(x, y int) *spot {
	for i := range ps.pointer.keys {
		if ps.pointer.keys[i].Contains(x, y) {
			return &ps.pointer.keys[i]
		}
	}
	return nil
}

// pressed presses keys that were clicked on.
func (m *Model) pressed(keys []string) tea.Cmd {
	var cmds []tea.Cmd
	for _, name := range keys {
		if k, err := Key(name); err == nil {
			cmds = append(cmds, m.key(k))
		}
	}
	return tea.Batch(cmds...)
}

// drag has the pane whose border is dragged end at a column.
func (m *Model) drag(x int) {
	for _, pl := range m.place.shown {
		if pl.pane.Name() == m.pointer.split {
			m.pointer.widths[m.pointer.split] = min(max(x+1-pl.rect.X, leastSplit), m.w-leastSplit)
		}
	}
}

// keysOf are the keys of an action that the footer tells of.
func (sh *shared) keysOf(action string) []string {
	for _, h := range sh.opt.Keys.Hints([]string{"global"}) {
		if h.Binding.Action == action {
			return strings.Fields(h.Key)
		}
	}
	return nil
}
