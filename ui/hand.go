package ui

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/keymap"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/fleet"
)

// hand is the focused pane while it takes keys as they are; nil when none does.
// What stands over it comes first.
func (m *Model) hand() pane.Hand {
	if m.over.open() || m.small() {
		return nil
	}
	h, ok := m.focused().(pane.Hand)
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
func (m *Model) openTerminal() tea.Cmd {
	if p := m.focused(); p != nil {
		if it := p.Selected(m.env()); it.Agent != "" {
			m.openItem(pane.Item{Kind: fleet.TerminalName, ID: it.Agent})
			return nil
		}
	}
	return m.say(true, "", "no agent is selected")
}

// follow has the panes go on that follow something by themselves. What they wait
// for is not under way: it may never come.
func (m *Model) follow() tea.Cmd {
	var cmds []tea.Cmd
	for name, p := range m.panes {
		if f, ok := p.(pane.Follower); ok {
			cmds = append(cmds, f.Follow(m.env(), m.place.visible(name)))
		}
	}
	return tea.Batch(cmds...)
}
