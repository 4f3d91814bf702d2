package ui

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/overlay"
)

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

// offer opens a login with the screen given up for it, if whoever sits there wants it.
func (d *dialog) offer(l Login) tea.Cmd {
	return d.ask(overlay.Confirm{Title: l.Name + " is not logged in", Verb: "log it in here", Lines: []string{l.Text}}, func(yes bool) tea.Cmd {
		if !yes {
			l.Over <- nil
			return nil
		}
		return tea.ExecProcess(l.Open(), func(err error) tea.Msg {
			l.Over <- err
			return nil
		})
	})
}
