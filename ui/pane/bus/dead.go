package bus

import (
	"swarmdeck/engine/bus"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// NewDead makes the pane of dead letters: messages that did not get to one of
// those they were meant for.
func NewDead(of Bus) *pane.Table[bus.DeadLetter] {
	return pane.NewTable(pane.Spec[bus.DeadLetter]{
		Name: "dead", Title: "dead letters", Empty: "no dead letters",
		Cols: []grid.Column{
			{Title: "REASON", Min: 13},
			{Title: "TO", Min: 16, Weight: 2, Key: true},
			{Title: "FROM", Min: 10, Weight: 1, Priority: 3, Middle: true},
			{Title: "TYPE", Min: 8, Priority: 5},
			{Title: "MISSED BY", Min: 12, Weight: 1, Priority: 4},
			{Title: "AGE", Min: 4, Priority: 2, Right: true},
			{Title: "DETAIL", Min: 14, Weight: 3, Priority: 1},
		},
		ID: func(d *bus.DeadLetter) string { return d.MessageID + " " + d.RecipientID + " " + d.Subscription },
		Item: func(d *bus.DeadLetter) pane.Item {
			return pane.Item{Kind: "bus-message", ID: d.MessageID, Task: d.TaskID, Trace: d.TraceID}
		},
		Row:   deadRow,
		Fetch: of.Dead,
		Total: func(env *pane.Env) int { return int(env.Snap.Bus.Dead) },
	})
}

func deadRow(env *pane.Env, d *bus.DeadLetter, set func(int, string, screen.Role)) {
	st := screen.StateOf(d.Reason)
	role := st.Role()
	if d.Reason == bus.ReasonUnanswered {
		st, role = screen.Waiting, screen.Warn
	}
	if d.ResentAs != "" {
		role = screen.Dim
	}
	set(0, st.Glyph(env.Glyphs)+" "+d.Reason, role)
	set(1, address(d.Topic, d.RecipientID), screen.Accent)
	set(2, d.SenderID, screen.Text)
	set(3, string(d.MessageType), screen.Text)
	set(4, d.Subscription, screen.Text)
	set(5, pane.Age(env.Now, d.At), screen.Dim)
	switch {
	case d.ResentAs != "":
		set(6, "sent again "+d.ResentAs, screen.Dim)
	default:
		set(6, d.Detail, screen.Text)
	}
}
