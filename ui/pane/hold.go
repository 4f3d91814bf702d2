package pane

import tea "charm.land/bubbletea/v2"

// hold makes the list stand still, so that rows can be looked at while the
// world goes on, or follow it again.
func (t *Table[T]) hold(env Env) tea.Cmd {
	t.held = !t.held
	switch {
	case t.held:
		t.next = t.all
		return nil
	case t.pager != nil:
		return t.Refresh(env)
	}
	t.SetRows(env, t.next)
	t.next = nil
	return nil
}
