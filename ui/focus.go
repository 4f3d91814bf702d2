package ui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
)

// focused is the pane that has the keys; nil on a screen that is too small.
func (m *Model) focused() pane.Pane {
	for _, pl := range m.place.shown {
		if pl.focused {
			return pl.pane
		}
	}
	return nil
}

// goTo shows a list pane.
func (m *Model) goTo(name string) {
	p := &m.place
	if p.base != name {
		p.prev, p.base = p.base, name
	}
	p.lead, p.open = name, nil
}

// choosePane offers every list, also those beyond the number keys.
func (m *Model) choosePane() tea.Cmd {
	return m.menu("go to", m.lists, func(i int) tea.Cmd {
		m.goTo(m.lists[i])
		return nil
	})
}

// cycle moves the focus to the next place (step 1) or the one before (-1); a
// narrow screen has one place, so there the pane changes.
func (m *Model) cycle(step int) {
	if m.w < wideW {
		i := slices.Index(m.lists, m.place.base)
		m.goTo(m.lists[(i+step+len(m.lists))%len(m.lists)])
		return
	}
	shown := m.place.shown
	at := slices.IndexFunc(shown, func(pl placed) bool { return pl.focused })
	if at < 0 || len(shown) < 2 {
		return
	}
	next := shown[(at+step+len(shown))%len(shown)]
	m.place.open = nil
	if next.pane.Kind() == pane.Sheet {
		m.place.open = []pane.Item{next.item}
		return
	}
	m.place.lead = next.pane.Name()
}

// openItem opens the thing under the cursor.
func (m *Model) openItem(it pane.Item) {
	if m.sheet(it) == nil {
		return
	}
	m.place.open = append(m.place.open, it)
	if n := len(m.place.open); n > 32 {
		m.place.open = m.place.open[n-32:]
	}
}

// back closes the last opened thing and reports whether there was one.
func (m *Model) back() bool {
	if n := len(m.place.open); n > 0 {
		m.place.open = m.place.open[:n-1]
		return true
	}
	if m.place.lead != m.place.base {
		m.place.lead = m.place.base
		return true
	}
	return false
}

// visible reports whether a pane is on the screen.
func (p *placement) visible(name string) bool {
	_, ok := p.bound[name]
	return ok
}
