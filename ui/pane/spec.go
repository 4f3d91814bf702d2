package pane

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/screen"
)

// Spec is what makes one list different from another. A whole pane over a
// list of any length is:
//
//	func NewSessions(s Sessions) *pane.Table[session.Session] {
//		return pane.NewTable(pane.Spec[session.Session]{
//			Name: "sessions", Title: "sessions", Empty: "no sessions: press + to make one",
//			Face: face.For[session.Session](),
//			Cells: map[string]pane.Cell[session.Session]{
//				"STATE": pane.StateCell(pane.SessionState),
//			},
//			ID:    func(s *session.Session) string { return s.SessionID },
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
	// Face lays out the list of a noun, and Cells have what the cockpit shows otherwise
	// than a table does, by the titles of the columns: with a colour, or a sign.
	Face  *face.Face
	Cells map[string]Cell[T]
	// Cols and Row are those of a list that is of no one noun.
	Cols []grid.Column
	Row  func(env *Env, t *T, set func(col int, text string, role screen.Role))
	// Ranks are numbers that such a list is sorted by, by the titles of the columns;
	// the others are sorted by what they say.
	Ranks map[string]func(v any) float64
	// ID tells rows apart; nil is the ID of the Item.
	ID   func(*T) string
	Item func(t *T) Item
	// Fetch reads pages of a list that is too long to hold; a method of a
	// service does.
	Fetch func(ctx context.Context, tenant string, f core.Filter) (core.Page[T], error)
	// All reads bookkeeping too, which Fetch leaves out until that is asked for.
	All func(ctx context.Context, tenant string, f core.Filter) (core.Page[T], error)
	// Head and FetchFrom, in place of Fetch, are of a list that begins with those rows
	// that need somebody, by their numbers.
	Head      func(ctx context.Context, env Env) ([]uint64, error)
	FetchFrom func(ctx context.Context, tenant string, head []uint64, f core.Filter) (core.Page[T], error)
	// Load, in place of Fetch, reads all rows of a list that is never long, Rows has those
	// of one in memory. A list with none of them has its rows by SetRows.
	Load func(ctx context.Context, tenant string) ([]T, error)
	Rows func(env Env) []T
	// Order puts the rows of a list in memory in the order of need, see Ordered; nil
	// leaves them as they come.
	Order func(env *Env, rows []T)
	// Members are what the rows of a list in memory are narrowed by beside its columns,
	// as in project:NAME, and Since the time that since:15m is about.
	Members []Member[T]
	Since   func(t *T) time.Time
	// Total is how many rows a list with Fetch has without its filter; nil when
	// that is not known.
	Total func(*Env) int
	// NewestFirst is for lists that grow at their top, as all with Fetch do
	// that are not Forward: those grow at their end, and rows keep their numbers.
	NewestFirst bool
	Forward     bool
}

// Member is a text of a row that is no column.
type Member[T any] struct {
	Name string
	Text func(t *T) string
}

// Cell is a cell of a list, and its colour.
type Cell[T any] func(env *Env, v *T) (string, screen.Role)

// StateCell is the cell that shows a state.
func StateCell[T any](state func(*T) State) Cell[T] {
	return func(env *Env, v *T) (string, screen.Role) { return state(v).Cell(env) }
}

// faced makes the columns and rows of a noun's list.
func faced[T any](laid []face.Listed, f *face.Face, cells map[string]Cell[T]) ([]grid.Column, func(*Env, *T, func(int, string, screen.Role))) {
	cols, own := make([]grid.Column, len(laid)), make([]Cell[T], len(laid))
	for i := range laid {
		l := &laid[i]
		cols[i] = grid.Column{Title: l.Title, Min: l.Min, Weight: l.Weight, Priority: l.Need, Key: l.Key, Right: l.Right, Middle: l.Middle, ID: l.ID}
		if own[i] = cells[l.Title]; own[i] == nil && l.Text == nil {
			panic(fmt.Sprintf("list of %s: nothing says what %s is", f.Type, l.Title))
		}
	}
	for title := range cells {
		if !slices.ContainsFunc(laid, func(l face.Listed) bool { return l.Title == title }) {
			panic(fmt.Sprintf("list of %s: no column is called %s", f.Type, title))
		}
	}
	return cols, func(env *Env, v *T, set func(int, string, screen.Role)) {
		row, at := record(v), face.At{Now: env.Now, Clock: Clock}
		for i := range laid {
			if own[i] != nil {
				text, role := own[i](env, v)
				set(i, text, role)
				continue
			}
			set(i, laid[i].Text(row, at), role(&laid[i]))
		}
	}
}

// record is the pointer that a face takes of a row: rows may be pointers themselves.
func record[T any](v *T) any {
	if reflect.TypeFor[T]().Kind() == reflect.Pointer {
		return *v
	}
	return v
}

// role is the colour of a cell that has none of its own.
func role(l *face.Listed) screen.Role {
	switch {
	case l.Key || l.Title == "AGENT":
		return screen.Accent
	case l.Time || l.Right:
		return screen.Dim
	}
	return screen.Text
}
