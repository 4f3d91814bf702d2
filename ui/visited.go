package ui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
)

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
