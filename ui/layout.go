package ui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/bus"
	"swarmdeck/ui/pane/cad"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/gate"
	"swarmdeck/ui/pane/log"
	"swarmdeck/ui/pane/overview"
	"swarmdeck/ui/pane/record"
	"swarmdeck/ui/pane/review"
	"swarmdeck/ui/pane/skill"
	"swarmdeck/ui/screen"
)

// The least screen that can be worked on, and the widths from which more
// panes fit side by side.
const (
	leastW, leastH = 60, 15
	wideW          = 120
	fullW, fullH   = 160, 32
)

// makePanes makes every pane of the cockpit. Lists have the number keys in
// their order here, the first nine of them; a sheet shows the things of the
// kind that it is named after.
func (ps *places) makePanes() {
	s := ps.opt.Services
	ps.list, ps.card, ps.notes = gate.NewApprovals(), gate.NewCard(s.Judge), log.NewMessages()
	ps.fleet = fleet.NewList(s.Fleet, s.Skills, s.Tasks, s.Coding)
	ps.panes = map[string]pane.Pane{}
	for _, p := range []pane.Pane{
		ps.fleet, fleet.NewTasks(s.Tasks), ps.list, log.NewAudit(s.Audit), gate.NewDecisions(s.Judge),
		fleet.NewSessions(s.Sessions), ps.notes, skill.NewList(s.Skills), bus.NewList(s.Bus),
		fleet.NewTenants(), fleet.NewEngines(), skill.NewExecutions(s.Skills), skill.NewSubagents(s.Skills), bus.NewSubscriptions(s.Bus),
		cad.NewAgents(s.CAD), cad.NewWorkspaces(s.CAD), cad.NewWorkflows(s.CAD), cad.NewConflicts(s.CAD), gate.NewPolicies(s.Judge), review.NewList(s.Works), overview.New(s.Trends, s.Stories),

		fleet.NewAgent(s.Fleet, s.Files, s.Tasks), fleet.NewTerminal(ps.ctx, s.Terminals), fleet.NewTask(s.Tasks, s.Swarm, s.Judge), fleet.NewSession(s.Sessions), fleet.NewEngine(),
		ps.card, gate.NewDecision(s.Judge), gate.NewPolicy(s.Judge), log.NewEvent(s.Audit), log.NewMessage(ps.notes),
		skill.NewSheet(s.Skills), skill.NewExecution(s.Skills), skill.NewSubagent(s.Skills), bus.NewMessage(s.Bus),
		cad.NewAgent(s.CAD), cad.NewWorkspace(s.CAD), cad.NewWorkflow(s.CAD), cad.NewConflict(s.CAD), cad.NewSolid(s.CAD),
		record.NewTimeline(s.DAG, s.Forks), record.NewSheet(s.DAG, s.Forks), record.NewLineage(s.DAG), record.NewCompare(s.Comparer), record.NewStory(s.Stories),
		review.NewDiff(s.Diffs, s.Works), review.NewWork(s.Works),
	} {
		ps.panes[p.Name()] = p
		if p.Kind() == pane.List {
			ps.lists = append(ps.lists, p.Name())
		}
	}
}

// placement says which panes are on the screen and which has the focus.
type placement struct {
	base  string      // the list pane that was chosen
	lead  string      // the list whose selection the sheet follows: base, or one below
	open  []pane.Item // things that were opened, the last one shown; empty: the list has the focus
	alone bool        // the focused pane has the whole screen
	prev  string      // the base before
	shown []placed
	bound map[string]pane.Item // what each visible sheet shows
}

// placed is a pane with its place on the screen, frame included.
type placed struct {
	pane    pane.Pane
	rect    screen.Rect
	item    pane.Item // what a sheet shows
	focused bool
}

// small reports whether the screen is too small to work on.
func (sh *shared) small() bool { return sh.w < leastW || sh.h < leastH }

// body is the part of the screen between header and footer.
func (sh *shared) body() screen.Rect {
	top := 1
	if sh.snap.EStop.On {
		top = 2
	}
	return screen.Rect{X: 0, Y: top, W: sh.w, H: max(sh.h-top-1, 0)}
}

// single says that one pane is shown: on a narrow screen, and when it was asked for.
func (ps *places) single() bool { return ps.w < wideW || ps.place.alone }

// arrange decides what is shown where: one pane on a narrow screen, the list
// and the selected thing on a wide one, approvals and events below on a large
// one.
func (ps *places) arrange() []placed {
	if ps.small() {
		return nil
	}
	body, p := ps.body(), &ps.place
	opened := len(p.open) > 0
	if opened {
		it := p.open[len(p.open)-1]
		s := ps.sheet(it)
		if _, broad := s.(pane.Broad); s != nil && (broad || ps.single()) {
			return []placed{{s, body, it, true}}
		}
	}
	if ps.w < wideW {
		p.lead = p.base
	}
	if _, broad := ps.panes[p.base].(pane.Broad); ps.single() || broad && !opened {
		return []placed{{ps.panes[p.lead], body, pane.Item{}, true}}
	}
	var below []string
	if ps.w >= fullW && ps.h >= fullH {
		for _, name := range []string{gate.ApprovalsName, log.AuditName, fleet.Name} {
			if name != p.base && len(below) < 2 {
				below = append(below, name)
			}
		}
	}
	if p.lead != p.base && !slices.Contains(below, p.lead) {
		p.lead = p.base
	}
	var out []placed
	var foot screen.Rect
	if len(below) > 0 {
		body, foot = body.SplitBottom(min(max(ps.h/3, 8), 16))
	}
	out = append(out, placed{ps.panes[p.base], body, pane.Item{}, !opened && p.lead == p.base})
	it := ps.panes[p.lead].Selected(ps.env())
	if opened {
		it = p.open[len(p.open)-1]
	}
	if s := ps.sheet(it); s != nil {
		left, right := body.SplitLeft(ps.listWidth(ps.panes[p.base], s, body))
		out[0].rect = left
		out = append(out, placed{s, right, it, opened})
	} else { // nothing to show beside: the list takes the room
		out[0].focused = out[0].focused || opened
	}
	if len(below) > 0 {
		a, b := ps.panes[below[0]], ps.panes[below[1]]
		left, right := foot.SplitLeft(ps.share(a, b, foot))
		out = append(out, placed{a, left, pane.Item{}, !opened && p.lead == below[0]}, placed{b, right, pane.Item{}, !opened && p.lead == below[1]})
	}
	return out
}

// want is how wide a pane of h lines should be at least, and at most to be of use, its
// frame with it; 0 is any.
func (ps *places) want(p pane.Pane, h int) (least, all int) {
	if w, ok := p.(pane.Wanter); ok {
		if least, all = w.Want(ps.env(), h-2); least > 0 {
			return least + 2, all + 2
		}
	}
	return 0, 0
}

// pageW is a width at which pages are read well.
const pageW = 62

// listWidth is the list's part of a body in which a sheet stands beside: what it needs,
// and all that it could show where the sheet has a good width with it. Either has a third
// at least, and a sheet that is open a half. One that wants more has what leaves the list
// a third.
func (ps *places) listWidth(list, sheet pane.Pane, body screen.Rect) int {
	if w := ps.pointer.widths[list.Name()]; w > 0 {
		return min(w, body.W-leastSplit)
	}
	third, part := body.W/3, body.W/3
	if len(ps.place.open) > 0 {
		part = body.W / 2
	}
	least, all := ps.want(list, body.H)
	beside, _ := ps.want(sheet, body.H)
	most := body.W - max(part, min(beside, body.W-third))
	return max(min(max(least, min(all, body.W-pageW)), most), third)
}

// share is the first one's part of the width of two lists: neither is cut beside cells
// that the other has no use for.
func (ps *places) share(first, second pane.Pane, of screen.Rect) int {
	if w := ps.pointer.widths[first.Name()]; w > 0 {
		return min(w, of.W-leastSplit)
	}
	_, a := ps.want(first, of.H)
	_, b := ps.want(second, of.H)
	half := of.W / 2
	switch {
	case a+b <= of.W || a <= half:
		return max(a, min(half, of.W-b))
	case b <= half:
		return of.W - b
	}
	return half
}

// sheet is the pane that shows a thing, nil for none.
func (ps *places) sheet(it pane.Item) pane.Pane {
	name := it.Kind
	if name == "approval" {
		name = gate.CardName
	}
	if p := ps.panes[name]; p != nil && p.Kind() == pane.Sheet {
		return p
	}
	return nil
}

// sync makes the panes follow the state after every update: what has become
// visible is bound and read, sizes are passed on, and the guard of answers
// learns whether anything moved.
func (m *Model) sync() tea.Cmd {
	var cmds []tea.Cmd
	// A list that has just come into view has a selection only then, and with
	// it a sheet to show beside.
	for again := true; again; {
		var cmd tea.Cmd
		cmd, again = m.bind(m.arrange())
		cmds = append(cmds, cmd)
	}
	cmds = append(cmds, m.follow())
	m.visited.note(&m.place)
	if m.place.visible(gate.CardName) && !m.over.Open() {
		cmds = append(cmds, m.track(m.card.Drawn(m.env())))
	}
	m.watchCursor()
	cmds = append(cmds, m.watchCard())
	return tea.Batch(cmds...)
}

// bind puts panes on the screen, and reports whether a list is among them
// that was not there before.
func (ps *places) bind(shown []placed) (cmd tea.Cmd, fresh bool) {
	var cmds []tea.Cmd
	env := ps.env()
	bound := map[string]pane.Item{}
	for _, pl := range shown {
		in := pl.rect.Inset(1)
		pl.pane.Resize(in.W, in.H)
		name := pl.pane.Name()
		bound[name] = pl.item
		was, visible := ps.place.bound[name]
		switch {
		case pl.pane.Kind() == pane.Sheet && (!visible || was.Kind != pl.item.Kind || was.ID != pl.item.ID):
			cmds = append(cmds, ps.track(pl.pane.Show(env, pl.item)), ps.track(pl.pane.Refresh(env)))
			ps.dirty = true
		case !visible:
			cmds = append(cmds, ps.track(pl.pane.Refresh(env)))
			if p, ok := pl.pane.(pane.Ordered); ok {
				cmds = append(cmds, ps.track(p.Reorder(env)))
			}
			ps.dirty, fresh = true, true
		}
	}
	ps.place.shown, ps.place.bound = shown, bound
	return tea.Batch(cmds...), fresh
}
