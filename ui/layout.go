package ui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/agent"
	"swarmdeck/ui/pane/approvals"
	"swarmdeck/ui/pane/audit"
	"swarmdeck/ui/pane/bus"
	"swarmdeck/ui/pane/busmessage"
	"swarmdeck/ui/pane/cadagent"
	"swarmdeck/ui/pane/cadagents"
	"swarmdeck/ui/pane/card"
	"swarmdeck/ui/pane/conflict"
	"swarmdeck/ui/pane/conflicts"
	"swarmdeck/ui/pane/dead"
	"swarmdeck/ui/pane/decision"
	"swarmdeck/ui/pane/decisions"
	"swarmdeck/ui/pane/event"
	"swarmdeck/ui/pane/execution"
	"swarmdeck/ui/pane/executions"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/lineage"
	"swarmdeck/ui/pane/message"
	"swarmdeck/ui/pane/messages"
	"swarmdeck/ui/pane/policies"
	"swarmdeck/ui/pane/policy"
	"swarmdeck/ui/pane/record"
	"swarmdeck/ui/pane/session"
	"swarmdeck/ui/pane/sessions"
	"swarmdeck/ui/pane/skill"
	"swarmdeck/ui/pane/skills"
	"swarmdeck/ui/pane/solidview"
	"swarmdeck/ui/pane/subagent"
	"swarmdeck/ui/pane/subagents"
	"swarmdeck/ui/pane/subscriptions"
	"swarmdeck/ui/pane/task"
	"swarmdeck/ui/pane/tasks"
	"swarmdeck/ui/pane/tenants"
	"swarmdeck/ui/pane/timeline"
	"swarmdeck/ui/pane/workflow"
	"swarmdeck/ui/pane/workflows"
	"swarmdeck/ui/pane/workspace"
	"swarmdeck/ui/pane/workspaces"
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
func (m *Model) makePanes() {
	m.list, m.card, m.notes = approvals.New(), card.New(), messages.New()
	m.panes = map[string]pane.Pane{}
	for _, p := range []pane.Pane{
		fleet.New(), tasks.New(), m.list, audit.New(), decisions.New(), sessions.New(), m.notes, skills.New(), bus.New(),
		tenants.New(), executions.New(), subagents.New(), dead.New(), subscriptions.New(),
		cadagents.New(), workspaces.New(), workflows.New(), conflicts.New(), policies.New(),
		agent.New(), task.New(), m.card, event.New(), decision.New(), session.New(), message.New(m.notes),
		skill.New(), execution.New(), subagent.New(), busmessage.New(),
		cadagent.New(), workspace.New(), workflow.New(), conflict.New(), solidview.New(),
		timeline.New(), record.New(), lineage.New(), policy.New(),
	} {
		m.panes[p.Name()] = p
		if p.Kind() == pane.List {
			m.lists = append(m.lists, p.Name())
		}
	}
}

// placement says which panes are on the screen and which has the focus.
type placement struct {
	base  string      // the list pane that was chosen
	lead  string      // the list whose selection the sheet follows: base, or one below
	open  []pane.Item // things that were opened, the last one shown; empty: the list has the focus
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
func (m *Model) small() bool { return m.w < leastW || m.h < leastH }

// body is the part of the screen between header and footer.
func (m *Model) body() screen.Rect {
	top := 1
	if m.snap.EStop.On {
		top = 2
	}
	return screen.Rect{X: 0, Y: top, W: m.w, H: max(m.h-top-1, 0)}
}

// arrange decides what is shown where: one pane on a narrow screen, the list
// and the selected thing on a wide one, approvals and events below on a large
// one.
func (m *Model) arrange() []placed {
	if m.small() {
		return nil
	}
	body, p := m.body(), &m.place
	opened := len(p.open) > 0
	if opened {
		it := p.open[len(p.open)-1]
		s := m.sheet(it)
		if _, broad := s.(pane.Broad); s != nil && (broad || m.w < wideW) {
			p.lead = p.base
			return []placed{{s, body, it, true}}
		}
	}
	if m.w < wideW {
		p.lead = p.base
		return []placed{{m.panes[p.base], body, pane.Item{}, true}}
	}
	var below []string
	if m.w >= fullW && m.h >= fullH {
		for _, name := range []string{approvals.Name, audit.Name, fleet.Name} {
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
		body, foot = body.SplitBottom(min(max(m.h/3, 8), 16))
	}
	left, right := body.SplitLeft(body.W / 2)
	out = append(out, placed{m.panes[p.base], left, pane.Item{}, !opened && p.lead == p.base})
	it := m.panes[p.lead].Selected(m.env())
	if opened {
		it = p.open[len(p.open)-1]
	}
	if s := m.sheet(it); s != nil {
		out = append(out, placed{s, right, it, opened})
	} else {
		out[0].rect = body // nothing to show beside: the list takes the room
		out[0].focused = out[0].focused || opened
	}
	for i, name := range below {
		var r screen.Rect
		r, foot = foot.SplitLeft(foot.W / (len(below) - i))
		out = append(out, placed{m.panes[name], r, pane.Item{}, !opened && p.lead == name})
	}
	return out
}

// sheet is the pane that shows a thing, nil for none.
func (m *Model) sheet(it pane.Item) pane.Pane {
	name := it.Kind
	if name == "approval" {
		name = card.Name
	}
	if p := m.panes[name]; p != nil && p.Kind() == pane.Sheet {
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
	m.visited.note(&m.place)
	if m.place.visible(card.Name) && !m.over.open() {
		cmds = append(cmds, m.track(m.card.Drawn(m.env())))
	}
	m.watchCursor()
	cmds = append(cmds, m.watchCard())
	return tea.Batch(cmds...)
}

// bind puts panes on the screen, and reports whether a list is among them
// that was not there before.
func (m *Model) bind(shown []placed) (cmd tea.Cmd, fresh bool) {
	var cmds []tea.Cmd
	env := m.env()
	bound := map[string]pane.Item{}
	for _, pl := range shown {
		in := pl.rect.Inset(1)
		pl.pane.Resize(in.W, in.H)
		name := pl.pane.Name()
		bound[name] = pl.item
		was, visible := m.place.bound[name]
		switch {
		case pl.pane.Kind() == pane.Sheet && (!visible || was.Kind != pl.item.Kind || was.ID != pl.item.ID):
			cmds = append(cmds, m.track(pl.pane.Show(env, pl.item)), m.track(pl.pane.Refresh(env)))
			m.dirty = true
		case !visible:
			cmds = append(cmds, m.track(pl.pane.Refresh(env)))
			m.dirty, fresh = true, true
		}
	}
	m.place.shown, m.place.bound = shown, bound
	return tea.Batch(cmds...), fresh
}
