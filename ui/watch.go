package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
)

// listen waits for the engine's bell. It is the only Cmd that waits without a
// limit; it ends with the context.
func (m *Model) listen() tea.Cmd {
	bell, ctx := m.bell, m.ctx
	return func() tea.Msg {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-bell:
			if !ok {
				return nil
			}
			return bellMsg{}
		}
	}
}

// logins waits for the next login that a command offers.
func (m *Model) logins() tea.Cmd {
	offered, ctx := m.opt.Logins, m.ctx
	if offered == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case l := <-offered:
			return followUp(func() tea.Cmd { return tea.Batch(m.logins(), m.offer(l)) })
		case <-ctx.Done():
			return nil
		}
	}
}

// ring waits for the next frame: however often the bell rings, the snapshot
// is looked at once a frame.
func (m *Model) ring() tea.Cmd {
	interval := m.opt.Frame
	if m.blurred {
		interval = m.opt.Blurred
	}
	m.frameDue = true
	if wait := interval - m.now.Sub(m.lastFrame); wait > 0 && wait <= interval {
		return m.opt.After(wait, frameMsg{})
	}
	return m.frame()
}

// frame looks at the world and asks the visible panes to follow.
func (m *Model) frame() tea.Cmd {
	m.frameDue, m.lastFrame = false, m.now
	before := m.snap
	m.look()
	if m.snap.Revision == before.Revision && m.snap.LogRev == before.LogRev && len(m.snap.Tenants) == len(before.Tenants) {
		return m.listen() // another tenant's change
	}
	m.dirty = true
	cmds := []tea.Cmd{m.listen(), m.tick(), m.alert()}
	for _, pl := range m.place.shown {
		cmds = append(cmds, m.track(pl.pane.Refresh(m.env())))
	}
	return tea.Batch(cmds...)
}

// tick keeps ages and countdowns going, once a second while someone looks.
func (m *Model) tick() tea.Cmd {
	if m.ticking {
		return nil
	}
	m.ticking = true
	period := time.Second
	if m.blurred {
		period = 5 * time.Second
	}
	return m.opt.After(period, tickMsg{})
}

func (m *Model) beat() tea.Cmd {
	m.dirty = true
	m.toasts.Expire(m.now)
	var save tea.Cmd
	if m.rec != nil && m.rec.unsaved {
		save = m.rec.save(false)
	}
	var order tea.Cmd
	if m.now.Sub(m.guard.lastAt) >= stillFor {
		order = m.reorder(pane.Ordered.Stale)
	}
	return tea.Batch(m.tick(), save, m.alert(), order)
}

// stillFor is how long nobody has pressed a key before lists are put in order by
// themselves.
const stillFor = 3 * time.Second

// reorder puts those lists on the screen in order that are to be.
func (ps *places) reorder(which func(pane.Ordered) bool) tea.Cmd {
	var cmds []tea.Cmd
	for _, pl := range ps.place.shown {
		if p, ok := pl.pane.(pane.Ordered); ok && which(p) {
			cmds = append(cmds, ps.track(p.Reorder(ps.env())))
		}
	}
	return tea.Batch(cmds...)
}
