// Package sessions is the pane of a tenant's sessions: start, pause, resume
// and stop them.
package sessions

import (
	"strconv"

	"swarmdeck/engine/session"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "sessions"

// Pane lists sessions.
type Pane struct{ *pane.Table[session.Session] }

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewTable(pane.Spec[session.Session]{
		Name: Name, Title: "sessions", Empty: "no sessions: press + to make one",
		Cols: []grid.Column{
			{Title: "STATE", Min: 10},
			{Title: "ID", Min: 19, Key: true},
			{Title: "NAME", Min: 10, Weight: 2, Priority: 1},
			{Title: "AGE", Min: 4, Priority: 3, Right: true},
			{Title: "ACKS", Min: 8, Priority: 4, Right: true},
			{Title: "REASON", Min: 10, Weight: 3, Priority: 2},
		},
		ID: func(s *session.Session) string { return s.SessionID },
		Row: func(env *pane.Env, s *session.Session, set func(int, string, screen.Role)) {
			st := pane.SessionState(s)
			set(0, st.Label(env.Glyphs), st.Role())
			set(1, s.SessionID, screen.Accent)
			set(2, s.Name, screen.Text)
			set(3, pane.Age(env.Now, s.CreatedAt), screen.Dim)
			if n := len(s.Pausing); n > 0 {
				set(4, strconv.Itoa(n)+" to go", screen.Warn)
			}
			set(5, s.Reason, screen.Text)
		},
		Item:  Item,
		Fetch: pane.World.Sessions,
	})}
}

// Item is a session as a thing under the cursor.
func Item(s *session.Session) pane.Item {
	return pane.Item{Kind: "session", ID: s.SessionID, Session: s.SessionID, Paused: s.State == session.Paused}
}
