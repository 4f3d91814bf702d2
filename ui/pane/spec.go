package pane

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/screen"
)

// Spec is what makes one list different from another. A whole pane over a
// list of any length is:
//
//	func NewSessions(s Sessions) *pane.Table[session.Session] {
//		return pane.NewTable(pane.Spec[session.Session]{
//			Name: "sessions", Title: "sessions", Empty: "no sessions: press + to make one",
//			Cols: []grid.Column{{Title: "STATE", Min: 10}, {Title: "ID", Min: 19, Key: true}},
//			ID:   func(s *session.Session) string { return s.SessionID },
//			Row: func(env *pane.Env, s *session.Session, set func(int, string, screen.Role)) {
//				st := pane.SessionState(s)
//				set(0, st.Label(env.Glyphs), st.Role())
//				set(1, s.SessionID, screen.Accent)
//			},
//			Item:  func(s *session.Session) pane.Item { return pane.Item{Kind: "session", ID: s.SessionID} },
//			Fetch: s.List,
//		})
//	}
//
// One whose rows are in the snapshot has no Fetch, and Rows in its place.
type Spec[T any] struct {
	Name  string
	Title string
	Empty string // said when there are no rows
	Cols  []grid.Column
	ID    func(*T) string
	Row   func(env *Env, t *T, set func(col int, text string, role screen.Role))
	Item  func(t *T) Item
	// Fetch reads pages of a list that is too long to hold; a method of a
	// service does.
	Fetch func(ctx context.Context, tenant string, f core.Filter) (core.Page[T], error)
	// Rows are those of a list in memory. A list with neither has its rows by
	// SetRows.
	Rows func(env Env) []T
	// Total is how many rows a list with Fetch has without its filter; nil when
	// that is not known.
	Total func(*Env) int
	// NewestFirst is for lists that grow at their top, as all with Fetch do
	// that are not Forward: those grow at their end, and rows keep their numbers.
	NewestFirst bool
	Forward     bool
}
