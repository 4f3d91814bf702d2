package ui

import (
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/keymap"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/approvals"
	"swarmdeck/ui/pane/card"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/messages"
	"swarmdeck/ui/pane/tenants"
)

// sequenceGap is how long a key sequence stays open.
const sequenceGap = 2 * time.Second

// scopes are the keymap scopes in force, the innermost first.
func (m *Model) scopes() []string {
	p := m.focused()
	if p == nil {
		return []string{"global"}
	}
	return []string{p.Name(), string(p.Kind()), "global"}
}

// key takes one key press. Whoever stands on top gets it: an overlay, else the
// bindings of the focused pane.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	m.presses++
	name := k.String()
	gap := m.now.Sub(m.answers.lastAt)
	repeat := m.answers.press(name, k.IsRepeat, m.now)
	if m.rec != nil {
		m.rec.key(name, k.Text, m.over.typing(), m.now)
	}
	if name == "ctrl+c" {
		return m.interrupt()
	}
	m.quitAt = time.Time{}
	if m.small() {
		return nil
	}
	if m.over.open() {
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
		m.answers.asked = m.now
		if ok, why := m.mayAnswer(); !ok {
			return m.say(true, "", why)
		}
	}
	if (b.Line != "" || b.Action == "pause") && m.now.Sub(m.answers.slipped) < deadTime {
		return m.say(true, "", "too early: another row has just come under the cursor")
	}
	switch {
	case b.Action != "":
		return m.action(b.Action)
	case b.Fill:
		return m.fillPalette(b)
	default:
		return m.bound(b)
	}
}

// interrupt is ctrl+c: it leaves at once when nothing runs, else on the second
// press.
func (m *Model) interrupt() tea.Cmd {
	n := m.working()
	if m.opt.Remote || n == 0 || !m.quitAt.IsZero() && m.now.Sub(m.quitAt) < 5*time.Second {
		return m.leave()
	}
	m.quitAt = m.now
	return m.say(true, "", strconv.Itoa(n)+" at work stop with the engine: press ctrl+c again to quit")
}

func (m *Model) leave() tea.Cmd {
	if m.rec != nil {
		save := m.rec.save(true)
		return func() tea.Msg { save(); return tea.QuitMsg{} }
	}
	return tea.Quit
}

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
	case "next-need":
		return m.nextNeed()
	case "copy", "copy-row":
		return m.copy(name == "copy-row")
	case "focus-next":
		m.cycle(1)
	case "focus-prev":
		m.cycle(-1)
	case "last-view":
		if m.place.prev != "" {
			m.goTo(m.place.prev)
		}
	case "history-back":
		m.visit(-1)
	case "history-forward":
		m.visit(1)
	case "messages":
		m.goTo(messages.Name)
	case "tenants":
		m.goTo(tenants.Name)
	case "dismiss":
		m.toasts.Dismiss()
	case "redraw":
		return tea.ClearScreen
	case "estop":
		return m.estop()
	case "pause":
		return m.pause()
	case "approve", "deny", "abort", "edit", "always", "defer":
		return m.answer(name)
	default:
		if n, ok := gotoNumber(name); ok {
			if n <= len(lists) {
				m.goTo(lists[n-1])
			}
			return nil
		}
		return m.paneAction(name)
	}
	return nil
}

func gotoNumber(action string) (int, bool) {
	if len(action) == len("goto-1") && action[:5] == "goto-" && action[5] >= '1' && action[5] <= '9' {
		return int(action[5] - '0'), true
	}
	return 0, false
}

// paneAction passes an action to the focused pane; enter opens, left and right
// move the focus where the pane has no use for them.
func (m *Model) paneAction(name string) tea.Cmd {
	p := m.focused()
	if p == nil {
		return nil
	}
	if cmd, ok := p.Do(m.env(), name); ok {
		return m.track(cmd)
	}
	switch name {
	case "open", "right":
		if p.Kind() == pane.List {
			return m.enter(p)
		}
		if it := p.Selected(m.env()); name == "open" && it.Approval != "" && p.Name() != card.Name {
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
		return m.switchTenant(it.ID)
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

// nextNeed goes to the next thing that waits for the operator.
func (m *Model) nextNeed() tea.Cmd {
	open := m.snap.Approvals
	if len(open) > 0 {
		next := open[0]
		if a := m.card.Approval(); a != nil && m.place.visible(card.Name) {
			for i, o := range open {
				if o.ApprovalID == a.ApprovalID && i+1 < len(open) {
					next = open[i+1]
				}
			}
		}
		m.goTo(approvals.Name)
		m.list.Refresh(m.env())
		_, _ = m.list.Filter(m.env(), "")
		m.list.Select(next.ApprovalID)
		if m.w < wideW {
			m.openItem(approvals.Item(next))
		}
		return nil
	}
	for _, a := range m.snap.Agents {
		if a.Attention != "" {
			m.goTo(fleet.Name)
			m.panes[fleet.Name].(*fleet.Pane).Select(a.Name)
			return nil
		}
	}
	return m.say(false, "", "nothing needs you")
}

// copy sends the id or the row under the cursor to the terminal's clipboard.
func (m *Model) copy(row bool) tea.Cmd {
	p := m.focused()
	if p == nil {
		return nil
	}
	it := p.Selected(m.env())
	text := it.ID
	if row && it.Row != "" {
		text = it.Row
	}
	if text == "" {
		return m.say(true, "", "nothing is selected")
	}
	return m.toClipboard(text)
}

// clipLimit bounds what is sent: terminals drop longer sequences silently.
const clipLimit = 64 << 10

func (m *Model) toClipboard(text string) tea.Cmd {
	if len(text) > clipLimit {
		return m.say(true, "", "too long for the terminal's clipboard; use :write FILE")
	}
	m.copied = text
	return tea.Batch(m.say(false, "", "sent to terminal clipboard: "+text), tea.SetClipboard(text))
}

// switchTenant shows another tenant from now on.
func (m *Model) switchTenant(id string) tea.Cmd {
	if id == m.tenant {
		m.goTo(fleet.Name)
		return nil
	}
	m.tenant = id
	m.look()
	m.alerted = len(m.snap.Approvals)
	for _, p := range m.panes {
		p.Reset()
	}
	m.place.bound = map[string]pane.Item{}
	m.goTo(fleet.Name)
	return m.say(false, "", "tenant "+id)
}
