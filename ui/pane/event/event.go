// Package event is the sheet of one audit event.
package event

import (
	"strconv"

	"swarmdeck/engine/audit"
	"swarmdeck/ui/pane"
	log "swarmdeck/ui/pane/audit"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "event"

// Pane shows an event. Events never change, so one read is enough.
type Pane struct{ *pane.Detail[audit.Event] }

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewDetail(pane.DetailSpec[audit.Event]{
		Name: Name, Fetch: pane.World.Event, Text: text, Item: log.Item,
	})}
}

func text(env pane.Env, e *audit.Event, out *pane.Paras) {
	out.Add("event", e.EventID, screen.Accent)
	out.Add("type", e.EventType, screen.Text)
	out.Add("seq", strconv.FormatUint(e.Seq, 10), screen.Text)
	out.Add("at", pane.When(env.Now, e.CreatedAt), screen.Text)
	out.Add("actor", string(e.Kind)+" "+e.Actor+" by "+string(e.Door), screen.Text)
	out.Add("trace", e.TraceID, screen.Dim)
	if e.Prev > 0 {
		out.Add("before it", "event "+strconv.FormatUint(e.Prev, 10)+" of the same subject", screen.Dim)
	}
	out.Head("payload")
	out.JSON("", e.Payload)
}
