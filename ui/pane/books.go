package pane

// Books is whether a list shows bookkeeping too, beside decisions, effects, failures
// and people: at first it does not.
type Books bool

// Turn does the action that shows or hides it, and reports whether it was that.
func (b *Books) Turn(action string) bool {
	if action != "show-all" {
		return false
	}
	*b = !*b
	return true
}

// Title is a list's title, which says that bookkeeping is shown.
func (b Books) Title(title string) string {
	if b {
		return title + "  with bookkeeping"
	}
	return title
}
