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

// actions are the cockpit's own actions.
func actions() map[string]func(m *Model) tea.Cmd {
	return map[string]func(m *Model) tea.Cmd{
		"back":            (*Model).goBack,
		"quit":            (*Model).interrupt,
		"palette":         func(m *Model) tea.Cmd { return m.openPalette("") },
		"filter":          (*Model).openFilter,
		"help":            (*Model).openHelp,
		"pager":           (*Model).page,
		"edit-file":       (*Model).editFile,
		"next-need":       (*Model).nextNeed,
		"view":            (*Model).openPicture,
		"timeline":        (*Model).openTimeline,
		"story":           (*Model).openStory,
		"work":            (*Model).openWork,
		"review":          func(m *Model) tea.Cmd { return m.openReview(false) },
		"swap":            func(m *Model) tea.Cmd { return m.openReview(true) },
		"compare":         (*Model).openCompare,
		"copy":            func(m *Model) tea.Cmd { return m.copy(false) },
		"copy-row":        func(m *Model) tea.Cmd { return m.copy(true) },
		"links":           (*Model).links,
		"alone":           (*Model).zoom,
		"focus-next":      func(m *Model) tea.Cmd { return m.cycle(1) },
		"focus-prev":      func(m *Model) tea.Cmd { return m.cycle(-1) },
		"panes":           (*Model).choosePane,
		"last-view":       func(m *Model) tea.Cmd { return m.goTo(m.place.prev) },
		"history-back":    func(m *Model) tea.Cmd { return m.visit(-1) },
		"history-forward": func(m *Model) tea.Cmd { return m.visit(1) },
		"messages":        func(m *Model) tea.Cmd { return m.goTo(log.MessagesName) },
		"tenants":         func(m *Model) tea.Cmd { return m.goTo(fleet.TenantsName) },
		"dismiss":         func(m *Model) tea.Cmd { m.toasts.Dismiss(); return nil },
		"redraw": func(m *Model) tea.Cmd {
			return tea.Batch(tea.ClearScreen, m.reorder(func(pane.Ordered) bool { return true }))
		},
		"undo":     (*Model).takeBack,
		"mouse":    (*Model).switchMouse,
		"suspend":  (*Model).suspend,
		"terminal": (*Model).openTerminal,
		"estop":    (*Model).estop,
		"pause":    (*Model).pause,
	}
}

// action does one of the cockpit's own actions, answers an approval, goes to a list, or
// leaves it to the focused pane.
func (m *Model) action(name string) tea.Cmd {
	digit, number := strings.CutPrefix(name, "goto-")
	n, err := strconv.Atoi(digit)
	list, _ := strings.CutPrefix(name, "show-")
	switch do := actions()[name]; {
	case do != nil:
		return do(m)
	case slices.Contains([]string{"approve", "deny", "abort", "edit", "always", "defer"}, name):
		return m.answer(name)
	case number && err == nil && n <= len(m.lists):
		return m.goTo(m.lists[n-1])
	case number:
		return nil
	case list != name && slices.Contains(m.lists, list):
		return m.goTo(list)
	}
	return m.paneAction(name)
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
				return m.openItem(it)
			}
		}
		if it := p.Selected(m.env()); name == "open" && it.Approval != "" && p.Name() != gate.CardName {
			return m.openItem(pane.Item{Kind: "approval", ID: it.Approval})
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
	return m.openItem(it)
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
		return m.goTo(fleet.Name)
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
		return m.goTo(fleet.Name)
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

// openOr opens a thing, or says why there is none.
func (d *dialog) openOr(it pane.Item, none string) tea.Cmd {
	if it.Empty() {
		return d.say(true, "", none)
	}
	return d.openItem(it)
}

// openTimeline opens what happened to the selected thing.
func (d *dialog) openTimeline() tea.Cmd {
	it := d.selected()
	if it.Empty() {
		return d.say(true, "", "nothing is selected")
	}
	return d.openOr(pane.TimelineOf(it), "there is no timeline of a "+it.Kind)
}

// openStory opens what happened to the selected agent; from there, or without one, to all.
func (d *dialog) openStory() tea.Cmd {
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
	return d.openItem(all)
}

// openWork opens what the selected agent changed in its tree.
func (d *dialog) openWork() tea.Cmd {
	agent := d.selected().Agent
	if agent == "" {
		return d.say(true, "", "no agent is selected")
	}
	return d.openItem(pane.Item{Kind: review.DiffName, ID: "tree:" + agent, Agent: agent})
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
		return d.openItem(pane.Item{Kind: review.WorkName, ID: a, Agent: a})
	case !both:
		return d.say(true, "", "only a comparison of two works has another way round: mark two in the list of reviews, then =")
	}
	d.place.open = d.place.open[:max(len(d.place.open)-1, 0)]
	return d.openItem(pane.Item{Kind: review.DiffName, ID: "tree:" + b + " " + a, Agent: b})
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
		return d.openItem(pane.Item{Kind: review.DiffName, ID: "tree:" + two[0].Agent + " " + two[1].Agent, Agent: two[0].Agent})
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
	return d.openItem(pane.Item{Kind: "compare", ID: strings.Join(names, " ")})
}

// openPicture opens the picture of the selected thing, or the solids of the
// workspace that it is in.
func (d *dialog) openPicture() tea.Cmd {
	it := pane.PictureOf(d.selected().Workspace, "")
	if p, is := d.focused().(pane.Viewer); is {
		it = p.Picture(d.env())
	}
	return d.openOr(it, "there is nothing here to look at in another way")
}
