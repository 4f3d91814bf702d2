package pane

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"
)

// Ordered is a list in an order that is made: by need, or by a column. It is made when
// the list comes into view and stands still from then on: no row jumps away from whoever
// moves in it, and what comes meanwhile stands at the end.
type Ordered interface {
	// Stale says that the order may no longer be what it was made by.
	Stale() bool
	// Reorder makes it anew.
	Reorder(env Env) tea.Cmd
}

// order is the one that was made last.
type order struct {
	places map[string]int // of rows in memory, by id; nil: it is to be made
	made   bool           // head is known
	head   []uint64       // what a list in pages begins with
	stale  bool
}

// headReply is what a list in pages is to begin with.
type headReply struct {
	tenant string
	head   []uint64
	err    error
}

// Stale implements Ordered.
func (t *Table[T]) Stale() bool { return t.stale && !t.held }

// Reorder implements Ordered.
func (t *Table[T]) Reorder(env Env) tea.Cmd {
	switch {
	case t.held:
	case t.spec.Head != nil:
		t.stale = false
		tenant, find := env.Tenant, t.spec.Head
		return Ask(t.spec.Name, func(ctx context.Context) any {
			head, err := find(ctx, env)
			return headReply{tenant, head, err}
		})
	case t.pager == nil:
		t.order = order{}
		t.SetRows(env, t.given)
	}
	return nil
}

// place gives the rows that have none a place after the others.
func (t *Table[T]) place(rows []T) {
	for i := range rows {
		id := t.spec.ID(&rows[i])
		if _, known := t.places[id]; !known { // an id that is there twice has one
			t.places[id] = len(t.places)
		}
	}
}

// ordered puts rows of a list in memory where they stood; with no order yet it makes
// one. It costs the same whatever has moved.
func (t *Table[T]) ordered(rows []T) []T {
	switch {
	case t.spec.Order == nil && t.sorted == 0:
		return rows
	case t.places == nil:
		rows = slices.Clone(rows)
		if t.spec.Order != nil {
			t.spec.Order(&t.env, rows)
		}
		if t.sorted > 0 {
			rows = t.byColumn(rows)
		}
		t.places = make(map[string]int, len(rows))
		t.place(rows)
		return rows
	}
	t.stale = true
	t.place(rows)
	at := make([]int, len(t.places)) // one more than the number of the row in that place
	for i := range rows {
		at[t.places[t.spec.ID(&rows[i])]] = i + 1
	}
	out := make([]T, 0, len(rows))
	for _, n := range at {
		if n > 0 {
			out = append(out, rows[n-1])
		}
	}
	return out
}
