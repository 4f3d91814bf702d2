package ui

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/keymap"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/skill"
)

// sequenceGap is how long a key sequence stays open.
const sequenceGap = 2 * time.Second

// scopes are the keymap scopes in force, the innermost first. A subagent
// stands in lists among other things, with keys of its own.
func (d *dialog) scopes() []string {
	p := d.focused()
	if p == nil {
		return []string{"global"}
	}
	if h := d.hand(); h != nil {
		scope, _ := h.Typing()
		return []string{scope}
	}
	scopes := []string{p.Name(), string(p.Kind()), "global"}
	if p.Kind() == pane.List && d.selected().Kind == skill.SubagentName {
		return append([]string{skill.SubagentName}, scopes...)
	}
	return scopes
}

// key takes one key press. Whoever stands on top gets it: an overlay, else the
// bindings of the focused pane.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	m.presses++
	name := k.String()
	gap := m.now.Sub(m.guard.lastAt)
	repeat := m.guard.press(name, k.IsRepeat, m.now)
	hand := m.hand()
	if m.rec != nil && (hand == nil || !hand.Secret()) {
		m.rec.key(name, k.Text, m.over.Typing() || hand != nil, m.now)
	}
	if hand != nil {
		return m.handKey(hand, k)
	}
	if name == "ctrl+c" {
		return m.interrupt()
	}
	m.quitAt = time.Time{}
	if m.small() {
		return nil
	}
	if m.over.Open() {
		return m.overlayKey(k, repeat)
	}
	if len(m.keys.Pending()) > 0 && gap > sequenceGap {
		m.keys.Reset()
	}
	match := m.keys.Press(m.scopes(), name)
	if match.Binding == nil {
		return nil
	}
	return m.perform(match.Binding, repeat)
}

// perform does what a binding says.
func (m *Model) perform(b *keymap.Binding, repeat bool) tea.Cmd {
	if b.Guard {
		if repeat {
			return nil
		}
		m.guard.asked, m.guard.pressed = m.now, b.Keys[0].String()
		if ok, why := m.mayAnswer(); !ok {
			return m.say(false, "", why)
		}
	}
	if (b.Line != "" || b.Action == "pause") && m.now.Sub(m.guard.slipped) < deadTime {
		return m.say(false, "", "too early: another row has just come under the cursor")
	}
	switch {
	case b.Action != "":
		return m.action(b.Action)
	case b.Fill:
		return m.fillPalette(b)
	case strings.HasPrefix(b.Line, "view "):
		return m.typed(b.Line)
	default:
		return m.bound(b)
	}
}

// interrupt is ctrl+c: it leaves at once when nothing runs, else on the second
// press.
func (m *Model) interrupt() tea.Cmd {
	n := m.working()
	if m.opt.Attached || n == 0 || !m.quitAt.IsZero() && m.now.Sub(m.quitAt) < 5*time.Second {
		if m.rec != nil {
			save := m.rec.save(true)
			return func() tea.Msg { save(); return tea.QuitMsg{} }
		}
		return tea.Quit
	}
	m.quitAt = m.now
	return m.say(false, "", "press ctrl+c again to quit: "+strconv.Itoa(n)+" at work stop with the engine")
}

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
