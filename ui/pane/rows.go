package pane

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

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

// Index is over the rows that are in memory.
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
	t.env, t.given, t.came = env, rows, true
	t.all = t.ordered(rows)
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

// narrow makes the rows from all: those that pass the filter.
func (t *Table[T]) narrow() {
	if t.filter.Empty() && t.from.IsZero() && t.of == "" {
		t.rows = t.all
		return
	}
	cells := make([]string, len(t.spec.Cols)+len(t.spec.Members))
	set := func(col int, text string, _ screen.Role) { cells[col] = text }
	var of []string
	if t.of != "" {
		of = t.env.agentsOf(t.of)
	}
	t.rows = make([]T, 0, len(t.all))
	for i := range t.all {
		clear(cells)
		t.spec.Row(&t.env, &t.all[i], set)
		for n, m := range t.spec.Members {
			cells[len(t.spec.Cols)+n] = m.Text(&t.all[i])
		}
		if t.filter.Match(cells) && (t.from.IsZero() || !t.spec.Since(&t.all[i]).Before(t.from)) &&
			(of == nil || slices.Contains(of, t.spec.Item(&t.all[i]).Agent)) {
			t.rows = append(t.rows, t.all[i])
		}
	}
}

// columns are what a word of a filter may name.
func (t *Table[T]) columns() []string {
	all := t.grid.Titles()
	for _, m := range t.spec.Members {
		all = append(all, m.Name)
	}
	return all
}

// since takes the words since:TIME out of a filter, where rows have a time.
func (t *Table[T]) since(text string, now time.Time) (rest string, from time.Time, err error) {
	for word := range strings.FieldsSeq(text) {
		when, is := strings.CutPrefix(word, "since:")
		if t.spec.Since == nil || !is || when == "" {
			continue
		}
		if from, err = since(now, when); err != nil {
			return text, from, err
		}
		text = strings.Replace(text, word, "", 1)
	}
	return text, from, nil
}

// project takes the words project:NAME out of a filter, where rows are of agents and have no
// such column.
func (t *Table[T]) project(text string) (rest, of string) {
	for word := range strings.FieldsSeq(text) {
		name, is := strings.CutPrefix(word, "project:")
		if !is || name == "" || slices.ContainsFunc(t.columns(), func(c string) bool { return strings.EqualFold(c, "project") }) {
			continue
		}
		of, text = name, strings.Replace(text, word, "", 1)
	}
	return text, of
}

// place is where a row stands among all, and what it is put in order by.
type place struct {
	at   int
	key  string
	rank float64 // orders before the key
}

// byColumn puts rows in order by the column that they are sorted by; how a thing is, by
// how much it needs somebody.
func (t *Table[T]) byColumn(rows []T) []T {
	col, down := (t.sorted-1)/2, t.sorted%2 == 0
	cells := make([]string, len(t.spec.Cols))
	set := func(col int, text string, _ screen.Role) { cells[col] = text }
	need := t.spec.Order != nil && strings.HasPrefix(t.spec.Cols[col].Title, "STAT")
	all := make([]place, len(rows))
	for i := range rows {
		all[i] = place{at: i, rank: float64(i)}
		if need {
			continue
		}
		clear(cells)
		t.spec.Row(&t.env, &rows[i], set)
		all[i].key, all[i].rank = cells[col], 0
		if col < len(t.ranks) && t.ranks[col] != nil {
			all[i].rank = t.ranks[col](record(&rows[i]))
		}
	}
	core.Sort(all, func(a, b place) int {
		if down {
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.key, b.key))
	})
	out := make([]T, len(rows))
	for i := range all {
		out[i] = rows[all[i].at]
	}
	return out
}

// sort goes on to the next order: each column on the screen up and down, then the list's
// own.
func (t *Table[T]) sort() {
	sorted := t.sorted
	for n := 2*len(t.spec.Cols) + 1; ; {
		sorted = (sorted + 1) % n
		if sorted == 0 || t.grid.Width((sorted-1)/2) > 0 {
			break
		}
	}
	t.sortAs(sorted)
}

// sortAs puts the list in an order by its number, see sorted.
func (t *Table[T]) sortAs(sorted int) {
	t.sorted = sorted
	if t.sorted == 0 {
		t.grid.SetSort(-1, false)
	} else {
		t.grid.SetSort((t.sorted-1)/2, t.sorted%2 == 0)
	}
	t.order = order{}
	t.all = t.ordered(t.given)
	t.narrow()
}

// mark remembers row i as it is drawn now: its marks outlive the rows in
// memory.
func (t *Table[T]) mark(i int) {
	if row, ok := t.at(i); ok {
		t.marked[t.spec.ID(row)] = t.spec.Item(row)
	}
}

func (t *Table[T]) Marks() []Item {
	ids := t.grid.Marks()
	if len(ids) == 0 {
		return nil
	}
	items := make([]Item, 0, len(ids))
	for _, id := range ids {
		if it, ok := t.marked[id]; ok {
			items = append(items, it)
		}
	}
	return items
}

func (t *Table[T]) ClearMarks() {
	t.grid.ClearMarks()
	clear(t.marked)
}

// hold makes the list stand still, so that rows can be looked at while the
// world goes on, or follow it again.
func (t *Table[T]) hold(env Env) tea.Cmd {
	t.held = !t.held
	switch {
	case t.held:
		t.next = t.all
		return nil
	case t.pager != nil:
		return t.Refresh(env)
	}
	t.SetRows(env, t.next)
	t.next = nil
	return nil
}
