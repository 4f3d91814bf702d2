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

// pointed reports whether a pane is shown that takes the mouse.
func (m *Model) pointed() bool {
	for _, pl := range m.place.shown {
		if _, is := pl.pane.(pane.Pointed); is {
			return !m.over.open() && !m.small()
		}
	}
	return false
}

// mouse gives what the mouse did to the pane that it stands on.
func (m *Model) mouse(msg tea.MouseMsg) tea.Cmd {
	if !m.pointed() {
		return nil
	}
	at := msg.Mouse()
	for _, pl := range m.place.shown {
		in := pl.rect.Inset(1)
		if p, is := pl.pane.(pane.Pointed); is && in.Contains(at.X, at.Y) {
			return m.track(p.Mouse(m.env(), msg, at.X-in.X, at.Y-in.Y))
		}
	}
	return nil
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
