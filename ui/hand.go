package ui

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/keymap"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/fleet"
)

// hand is the focused pane while it takes keys as they are; nil when none does.
// What stands over it comes first.
func (d *dialog) hand() pane.Hand {
	if d.over.Open() || d.small() {
		return nil
	}
	h, ok := d.focused().(pane.Hand)
	if !ok {
		return nil
	}
	if _, on := h.Typing(); !on {
		return nil
	}
	return h
}

// handKey gives a key to a pane that takes them as they are, unless it is one of
// those that typing leaves.
func (m *Model) handKey(h pane.Hand, k tea.KeyPressMsg) tea.Cmd {
	scope, _ := h.Typing()
	match := m.opt.Keys.Lookup([]string{scope}, keymap.Sequence{k.String()})
	if b := match.Binding; b != nil {
		return m.perform(b, false)
	}
	return m.track(h.Press(m.env(), k))
}

// openTerminal opens the terminal of the selected agent.
func (d *dialog) openTerminal() tea.Cmd {
	if it := d.selected(); it.Agent != "" {
		return d.openItem(pane.Item{Kind: fleet.TerminalName, ID: it.Agent})
	}
	return d.say(true, "", "no agent is selected")
}

// follow has the panes go on that follow something by themselves. What they wait
// for is not under way: it may never come.
func (ps *places) follow() tea.Cmd {
	var cmds []tea.Cmd
	for name, p := range ps.panes {
		if f, ok := p.(pane.Follower); ok {
			cmds = append(cmds, f.Follow(ps.env(), ps.place.visible(name)))
		}
	}
	return tea.Batch(cmds...)
}
