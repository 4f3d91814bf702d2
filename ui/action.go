package ui

import (
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/gate"
	"swarmdeck/ui/pane/log"
	"swarmdeck/ui/pane/review"
)

// action does one of the cockpit's own actions.
func (m *Model) action(name string) tea.Cmd {
	switch name {
	case "back":
		return m.goBack()
	case "quit":
		return m.interrupt()
	case "palette":
		return m.openPalette("")
	case "filter":
		return m.openFilter()
	case "help":
		m.openHelp()
	case "pager":
		return m.page()
	case "edit-file":
		return m.editFile()
	case "next-need":
		return m.nextNeed()
	case "view":
		return m.openPicture()
	case "timeline":
		return m.openTimeline()
	case "story":
		m.openStory()
	case "work":
		return m.openWork()
	case "review", "swap":
		return m.openReview(name == "swap")
	case "compare":
		return m.openCompare()
	case "copy", "copy-row":
		return m.copy(name == "copy-row")
	case "links":
		return m.links()
	case "alone":
		return m.zoom()
	case "focus-next":
		m.cycle(1)
	case "focus-prev":
		m.cycle(-1)
	case "panes":
		return m.choosePane()
	case "last-view":
		if m.place.prev != "" {
			m.goTo(m.place.prev)
		}
	case "history-back":
		m.visit(-1)
	case "history-forward":
		m.visit(1)
	case "messages":
		m.goTo(log.MessagesName)
	case "tenants":
		m.goTo(fleet.TenantsName)
	case "dismiss":
		m.toasts.Dismiss()
	case "redraw":
		return tea.Batch(tea.ClearScreen, m.reorder(func(pane.Ordered) bool { return true }))
	case "undo":
		return m.takeBack()
	case "mouse":
		m.pointer.off = !m.pointer.off
		return m.say(false, "", map[bool]string{true: "the mouse is the terminal's: it selects text", false: "the mouse selects, opens and scrolls; with shift it selects text"}[m.pointer.off])
	case "suspend":
		return m.suspend()
	case "terminal":
		return m.openTerminal()
	case "estop":
		return m.estop()
	case "pause":
		return m.pause()
	case "approve", "deny", "abort", "edit", "always", "defer":
		return m.answer(name)
	default:
		if digit, is := strings.CutPrefix(name, "goto-"); is {
			if n, err := strconv.Atoi(digit); err == nil && n <= len(m.lists) {
				m.goTo(m.lists[n-1])
			}
			return nil
		}
		if list, ok := strings.CutPrefix(name, "show-"); ok && slices.Contains(m.lists, list) {
			m.goTo(list)
			return nil
		}
		return m.paneAction(name)
	}
	return nil
}

// paneAction passes an action to the focused pane; enter opens, left and right
// move the focus where the pane has no use for them.
func (m *Model) paneAction(name string) tea.Cmd {
	p := m.focused()
	if p == nil {
		return nil
	}
	if filler, ok := p.(pane.Filler); ok {
		switch f, has, err := filler.Fill(m.env(), name); {
		case err != nil:
			return pane.Say(err.Error(), true)
		case has:
			return m.fill(f, true)
		}
	}
	var line tea.Cmd
	if r, ok := p.(pane.Runner); ok {
		if words, ok := r.Run(m.env(), name); ok {
			line = m.submit(job{lines: [][]string{words}})
		}
	}
	if cmd, ok := p.Do(m.env(), name); ok {
		return tea.Batch(line, m.track(cmd))
	}
	switch name {
	case "open", "right":
		if p.Kind() == pane.List {
			return m.enter(p)
		}
		if o, ok := p.(pane.Opener); ok && name == "open" {
			if it := o.Open(m.env()); !it.Empty() {
				m.openItem(it)
				return nil
			}
		}
		if it := p.Selected(m.env()); name == "open" && it.Approval != "" && p.Name() != gate.CardName {
			m.openItem(pane.Item{Kind: "approval", ID: it.Approval})
		}
	case "left":
		if p.Kind() == pane.Sheet {
			m.back()
		}
	}
	return nil
}

// enter opens the selected row; a tenant is switched to.
func (m *Model) enter(p pane.Pane) tea.Cmd {
	it := p.Selected(m.env())
	if it.Kind == "tenant" {
		return m.use(it.ID)
	}
	m.openItem(it)
	return nil
}

// goBack clears toasts that stay, marks and the filter, then closes; it never
// leaves the cockpit.
func (m *Model) goBack() tea.Cmd {
	if m.dismissBad() {
		return nil
	}
	p := m.focused()
	if p != nil && len(p.Marks()) > 0 {
		p.ClearMarks()
		return nil
	}
	if p != nil && p.FilterText() != "" {
		cmd, _ := p.Filter(m.env(), "")
		return m.track(cmd)
	}
	if !m.back() && m.place.base != fleet.Name {
		m.goTo(fleet.Name)
	}
	return nil
}

// use shows another tenant: one of a database has an engine, and a cockpit, of its own.
func (m *Model) use(id string) tea.Cmd {
	switch {
	case slices.Contains(m.snap.Tenants, id):
		return m.switchTenant(id)
	case slices.Contains(m.snap.Cluster.Tenants(), id):
		return m.say(true, "", id+" has a cockpit of its own: swarmdeck --tenant "+id)
	}
	return m.say(true, "", "use: no tenant "+id)
}

// switchTenant shows another tenant from now on.
func (m *Model) switchTenant(id string) tea.Cmd {
	if id == m.tenant {
		m.goTo(fleet.Name)
		return nil
	}
	m.tenant = id
	m.look()
	for _, p := range m.panes {
		p.Reset()
	}
	m.heed(m.queue())
	m.place.bound = map[string]pane.Item{}
	m.goTo(fleet.Name)
	return m.say(false, "", "tenant "+id)
}

// openTimeline opens what happened to the selected thing.
func (d *dialog) openTimeline() tea.Cmd {
	it := d.selected()
	if line := pane.TimelineOf(it); !line.Empty() {
		d.openItem(line)
		return nil
	}
	if it.Empty() {
		return d.say(true, "", "nothing is selected")
	}
	return d.say(true, "", "there is no timeline of a "+it.Kind)
}

// openStory opens what happened to the selected agent; from there, or without one, to all.
func (d *dialog) openStory() {
	all := pane.Item{Kind: "story", ID: "all agents"}
	if p := d.focused(); p != nil && p.Name() != all.Kind {
		it := d.selected()
		if it.Kind == "agent" {
			it.Agent = it.ID
		}
		if it.Agent != "" {
			all.ID, all.Agent = "agent "+it.Agent, it.Agent
		}
	}
	d.openItem(all)
}

// openWork opens what the selected agent changed in its tree.
func (d *dialog) openWork() tea.Cmd {
	it := d.selected()
	if it.Agent == "" {
		return d.say(true, "", "no agent is selected")
	}
	d.openItem(pane.Item{Kind: "diff", ID: "tree:" + it.Agent, Agent: it.Agent})
	return nil
}

// openReview opens what is known of the work under the cursor beside its diff, or with
// swap the comparison of two works the other way round.
func (d *dialog) openReview(swap bool) tea.Cmd {
	it := d.selected()
	works, is := strings.CutPrefix(it.ID, "tree:")
	a, b, both := strings.Cut(works, " ")
	switch {
	case !is || it.Kind != review.DiffName:
		return d.say(true, "", "no work of an agent is selected")
	case !swap:
		d.openItem(pane.Item{Kind: review.WorkName, ID: a, Agent: a})
	case !both:
		return d.say(true, "", "only a comparison of two works has another way round: mark two in the list of reviews, then =")
	default:
		d.place.open = d.place.open[:max(len(d.place.open)-1, 0)]
		d.openItem(pane.Item{Kind: review.DiffName, ID: "tree:" + b + " " + a, Agent: b})
	}
	return nil
}

// openCompare opens how what two marked things did differs, or one of them and
// what is selected. Of reviews it is their files.
func (d *dialog) openCompare() tea.Cmd {
	p := d.focused()
	if p == nil {
		return nil
	}
	two := p.Marks()
	if len(two) == 1 {
		two = append(two, p.Selected(d.env()))
	}
	if p.Name() == review.ListName {
		if len(two) != 2 || two[0].Agent == two[1].Agent {
			return d.say(true, "", "mark two reviews to compare what their agents made of the same files")
		}
		d.openItem(pane.Item{Kind: review.DiffName, ID: "tree:" + two[0].Agent + " " + two[1].Agent, Agent: two[0].Agent})
		return nil
	}
	var names []string
	for _, it := range two {
		if line := pane.TimelineOf(it); !line.Empty() && !slices.Contains(names, line.ID) {
			names = append(names, line.ID)
		}
	}
	if len(names) != 2 {
		return d.say(true, "", "mark two agents, tasks or sessions to compare what they did")
	}
	d.openItem(pane.Item{Kind: "compare", ID: strings.Join(names, " ")})
	return nil
}

// openPicture opens the picture of the selected thing, or the solids of the
// workspace that it is in.
func (d *dialog) openPicture() tea.Cmd {
	it := pane.PictureOf(d.selected().Workspace, "")
	if p, is := d.focused().(pane.Viewer); is {
		it = p.Picture(d.env())
	}
	if it.Empty() {
		return d.say(true, "", "there is nothing here to look at in another way")
	}
	d.openItem(it)
	return nil
}
