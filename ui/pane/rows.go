package pane

import (
	"cmp"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/ui/screen"
)

// source is the grid's view of the table.
type source[T any] struct{ t *Table[T] }

func (s source[T]) Len() int {
	if s.t.pager != nil {
		return s.t.pager.Len()
	}
	return len(s.t.rows)
}

func (s source[T]) ID(i int) string {
	if row, ok := s.t.at(i); ok {
		return s.t.spec.ID(row)
	}
	return ""
}

func (s source[T]) Row(i int, set func(col int, text string, role screen.Role)) {
	if row, ok := s.t.at(i); ok {
		s.t.spec.Row(&s.t.env, row, set)
		return
	}
	set(0, s.t.env.Glyphs.Ellipsis, screen.Dim)
}

// Index implements grid.Finder over the rows that are in memory.
func (s source[T]) Index(id string) int {
	if s.t.pager != nil {
		return s.t.pager.Index(func(row *T) bool { return s.t.spec.ID(row) == id })
	}
	for i := range s.t.rows {
		if s.t.spec.ID(&s.t.rows[i]) == id {
			return i
		}
	}
	return -1
}

func (t *Table[T]) at(i int) (*T, bool) {
	if t.pager != nil {
		return t.pager.At(i)
	}
	if i < 0 || i >= len(t.rows) {
		return nil, false
	}
	return &t.rows[i], true
}

// SetRows replaces the rows of a list in memory, or keeps them for later while
// the list is held still.
func (t *Table[T]) SetRows(env Env, rows []T) {
	if t.held {
		t.env, t.next = env, rows
		return
	}
	top := t.grid.Index() <= 0
	t.env, t.all = env, rows
	t.narrow()
	if top && t.spec.NewestFirst {
		t.holdTop()
	}
}

// holdTop keeps the newest row selected of a list that nobody works in.
func (t *Table[T]) holdTop() {
	if t.env.Focus != t.spec.Name {
		t.grid.Do("top")
	}
}

// narrow makes the rows from all: those that pass the filter, in order.
func (t *Table[T]) narrow() {
	if t.filter.Empty() && t.sorted == 0 {
		t.rows = t.all
		return
	}
	cells := make([]string, len(t.spec.Cols))
	set := func(col int, text string, _ screen.Role) { cells[col] = text }
	kept := make([]place, 0, len(t.all))
	for i := range t.all {
		clear(cells)
		t.spec.Row(&t.env, &t.all[i], set)
		if t.filter.Match(cells) {
			kept = append(kept, place{at: i, key: cells[max(t.sorted-1, 0)/2], rank: t.rank(i)})
		}
	}
	if t.sorted > 0 {
		order(kept, t.sorted%2 == 0)
	}
	t.rows = make([]T, len(kept))
	for i := range kept {
		t.rows[i] = t.all[kept[i].at]
	}
}

// place is where a row stands among all, and what it is put in order by.
type place struct {
	at   int
	key  string
	rank float64 // orders before the key
}

// rank is the number that a row is put in order by; 0 for all where its text does.
func (t *Table[T]) rank(i int) float64 {
	if t.sorted == 0 || t.ranks == nil || t.ranks[(t.sorted-1)/2] == nil {
		return 0
	}
	return t.ranks[(t.sorted-1)/2](record(&t.all[i]))
}

func order(rows []place, down bool) {
	core.Sort(rows, func(a, b place) int {
		if down {
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.key, b.key))
	})
}

// sort goes on to the next order: each column up and down, then the list's own.
func (t *Table[T]) sort() {
	t.sorted = (t.sorted + 1) % (2*len(t.spec.Cols) + 1)
	if t.sorted == 0 {
		t.grid.SetSort(-1, false)
	} else {
		t.grid.SetSort((t.sorted-1)/2, t.sorted%2 == 0)
	}
	t.narrow()
}
