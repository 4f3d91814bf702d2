package ui

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/gate"
	"swarmdeck/ui/pane/log"
)

// places is which panes are shown where.
type places struct {
	*shared
	panes   map[string]pane.Pane
	lists   []string // names of the lists, in the order of their keys
	fleet   *fleet.List
	list    *pane.Table[*judge.Approval]
	card    *gate.Card
	notes   *log.Messages
	place   placement
	visited visited
	pointer pointer
}

// focused is the pane that has the keys; nil on a screen that is too small.
func (ps *places) focused() pane.Pane {
	for _, pl := range ps.place.shown {
		if pl.focused {
			return pl.pane
		}
	}
	return nil
}

// selected is the thing under the cursor of the focused pane; empty for none.
func (ps *places) selected() pane.Item {
	if p := ps.focused(); p != nil {
		return p.Selected(ps.env())
	}
	return pane.Item{}
}

// goTo shows a list pane; "" is none.
func (ps *places) goTo(name string) tea.Cmd {
	p := &ps.place
	if name == "" {
		return nil
	}
	if p.base != name {
		p.prev, p.base = p.base, name
	}
	p.lead, p.open = name, nil
	return nil
}

// choosePane offers every list, also those beyond the number keys.
func (d *dialog) choosePane() tea.Cmd {
	return d.menu("go to", d.lists, func(i int) tea.Cmd { return d.goTo(d.lists[i]) })
}

// zoom gives the focused pane the whole screen, or takes that back.
func (d *dialog) zoom() tea.Cmd {
	if d.w < wideW {
		return d.say(false, "", fmt.Sprintf("the pane has the whole screen: others stand beside it from %d columns on", wideW))
	}
	d.place.alone = !d.place.alone
	return nil
}

// cycle moves the focus to the next place (step 1) or the one before (-1); a
// narrow screen has one place, so there the pane changes.
func (ps *places) cycle(step int) tea.Cmd {
	if ps.single() {
		i := slices.Index(ps.lists, ps.place.lead)
		return ps.goTo(ps.lists[(i+step+len(ps.lists))%len(ps.lists)])
	}
	shown := ps.place.shown
	at := slices.IndexFunc(shown, func(pl placed) bool { return pl.focused })
	if at >= 0 && len(shown) > 1 {
		ps.focusOn(shown[(at+step+len(shown))%len(shown)])
	}
	return nil
}

// focusOn gives a pane that is shown the keys.
func (ps *places) focusOn(pl placed) {
	if pl.focused {
		return
	}
	ps.place.open = nil
	if pl.pane.Kind() == pane.Sheet {
		ps.place.open = []pane.Item{pl.item}
		return
	}
	ps.place.lead = pl.pane.Name()
}

// openItem opens the thing under the cursor.
func (ps *places) openItem(it pane.Item) tea.Cmd {
	if ps.sheet(it) == nil {
		return nil
	}
	ps.place.open = append(ps.place.open, it)
	if n := len(ps.place.open); n > 32 {
		ps.place.open = ps.place.open[n-32:]
	}
	return nil
}

// back closes the last opened thing and reports whether there was one.
func (ps *places) back() bool {
	if n := len(ps.place.open); n > 0 {
		ps.place.open = ps.place.open[:n-1]
		return true
	}
	if ps.place.alone {
		ps.place.alone = false
		return true
	}
	if ps.place.lead != ps.place.base {
		ps.place.lead = ps.place.base
		return true
	}
	return false
}

// visible reports whether a pane is on the screen.
func (p *placement) visible(name string) bool {
	_, ok := p.bound[name]
	return ok
}

// visited is the history of views that [ and ] walk through.
type visited struct {
	stops []stop
	at    int
}

type stop struct {
	base string
	open []pane.Item
}

const trailMost = 50

// note adds the view that is shown when it is a new one.
func (t *visited) note(p *placement) {
	if len(t.stops) > 0 {
		s := t.stops[t.at]
		same := slices.EqualFunc(s.open, p.open, func(a, b pane.Item) bool { return a.Kind == b.Kind && a.ID == b.ID })
		if s.base == p.base && same {
			return
		}
		t.stops = t.stops[:t.at+1]
	}
	t.stops = append(t.stops, stop{p.base, slices.Clone(p.open)})
	if n := len(t.stops); n > trailMost {
		t.stops = slices.Clone(t.stops[n-trailMost:])
	}
	t.at = len(t.stops) - 1
}

// visit goes back (-1) or forward (1) in the history of views.
func (ps *places) visit(step int) tea.Cmd {
	at := ps.visited.at + step
	if at >= 0 && at < len(ps.visited.stops) {
		s := ps.visited.stops[at]
		ps.visited.at = at
		ps.place.base, ps.place.lead, ps.place.open = s.base, s.base, slices.Clone(s.open)
	}
	return nil
}
