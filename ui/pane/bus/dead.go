package bus

import (
	"swarmdeck/engine/bus"
	"swarmdeck/engine/face"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// NewDead makes the pane of dead letters: messages that did not get to one of
// those they were meant for.
func NewDead(of Bus) *pane.Table[bus.DeadLetter] {
	return pane.NewTable(pane.Spec[bus.DeadLetter]{
		Name: "dead", Title: "dead letters", Empty: "no dead letters",
		Face: face.For[bus.DeadLetter](),
		Cells: map[string]pane.Cell[bus.DeadLetter]{
			"REASON": deadReason,
			"DETAIL": func(env *pane.Env, d *bus.DeadLetter) (string, screen.Role) {
				if d.ResentAs != "" {
					return "sent again " + d.ResentAs, screen.Dim
				}
				return d.Detail, screen.Text
			},
		},
		ID: func(d *bus.DeadLetter) string { return d.MessageID + " " + d.RecipientID + " " + d.Subscription },
		Item: func(d *bus.DeadLetter) pane.Item {
			return pane.Item{Kind: "bus-message", ID: d.MessageID, Task: d.TaskID, Trace: d.TraceID}
		},
		Fetch: of.Dead,
		Total: func(env *pane.Env) int { return int(env.Snap.Bus.Dead) },
	})
}

func deadReason(env *pane.Env, d *bus.DeadLetter) (string, screen.Role) {
	st := screen.StateOf(d.Reason)
	role := st.Role()
	if d.Reason == bus.ReasonUnanswered {
		st, role = screen.Waiting, screen.Warn
	}
	if d.ResentAs != "" {
		role = screen.Dim
	}
	return st.Glyph(env.Glyphs) + " " + d.Reason, role
}
