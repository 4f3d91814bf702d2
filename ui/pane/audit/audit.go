// Package audit is the pane of the audit log, newest first.
package audit

import (
	log "swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "audit"

// Pane lists events.
type Pane struct{ *pane.Table[log.Event] }

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewTable(pane.Spec[log.Event]{
		Name: Name, Title: "audit", Empty: "no events",
		Cols: []grid.Column{
			{Title: "TIME", Min: 8, Priority: 1},
			{Title: "TYPE", Min: 16, Weight: 1},
			{Title: "ACTOR", Min: 10, Weight: 1, Priority: 2},
			{Title: "WHAT", Min: 16, Weight: 4, Priority: 3},
			{Title: "EVENT", Min: 19, Priority: 4, Key: true},
		},
		ID: func(e *log.Event) string { return e.EventID },
		Row: func(env *pane.Env, e *log.Event, set func(int, string, screen.Role)) {
			set(0, pane.Clock(env.Now, e.CreatedAt), screen.Dim)
			set(1, e.EventType, screen.Accent)
			set(2, e.Actor+" ("+string(e.Door)+")", screen.Text)
			set(3, subject(e), screen.Text)
			set(4, e.EventID, screen.Accent)
		},
		Item:  Item,
		Fetch: pane.World.Events,
	})}
}

// Item is an event as a thing under the cursor.
func Item(e *log.Event) pane.Item {
	return pane.Item{Kind: "event", ID: e.EventID, Trace: e.TraceID}
}

// subject names what the event is about, and the state it was left in; or what
// the event says of itself.
func subject(e *log.Event) string {
	if text := operator.HeldIn(e); text != "" {
		return text
	}
	var p struct {
		Subject string `json:"subject"`
		ID      string `json:"id"`
		State   struct {
			Status string `json:"status"`
			State  string `json:"state"`
		} `json:"state"`
	}
	if err := core.DecodeStored(e.Payload, &p); err != nil || p.Subject == "" {
		return string(e.Payload[:min(len(e.Payload), 512)])
	}
	text := p.Subject + " " + p.ID
	if s := p.State.Status + p.State.State; s != "" {
		text += " " + s
	}
	return text
}
