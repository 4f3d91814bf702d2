// Package grid draws tables of any length. It asks its source for the rows in
// sight only, so a frame costs the same at a hundred rows and at a million,
// and it keeps its place by the id of a row, not by its number: rows may come,
// go and move, and the selection stays on the same thing.
package grid

import (
	"slices"

	"swarmdeck/ui/screen"
)

// Source is what a grid shows. All calls come from Draw and the movements, on
// the goroutine that owns the grid.
type Source interface {
	// Len is how many rows there are.
	Len() int
	// Row calls set for the cells of row i that aren't empty, 0 <= i < Len.
	Row(i int, set func(col int, text string, role screen.Role))
	// ID names row i; unique, and the same as long as the thing exists.
	ID(i int) string
	// Index is the row of id, or -1.
	Index(id string) int
}

// Grid is a table with a selected row and marks. The zero value isn't usable;
// make one with New. It belongs to one goroutine.
type Grid struct {
	Empty string // shown when there are no rows
	// HoldTop is for lists that grow at their top: while their first row is in
	// sight, rows that come in above stay in sight too, as long as the selected
	// row fits under them. Without it the selected row keeps its height on the
	// screen.
	HoldTop bool

	layout
	src   Source
	set   func(col int, text string, role screen.Role)
	cells []content // of the rows in sight, one after another
	row   []content // of the row being read
	at    int       // the selected row
	id    string    // and its name
	top   int       // the first row in sight
	page  int       // rows in sight at the last Draw
	marks map[string]struct{}
	order []string // marks in the order they were made
	desc  bool
}

// content is one cell.
type content struct {
	text string
	role screen.Role
}

// New makes a grid without rows.
func New(cols ...Column) *Grid {
	g := &Grid{page: 1, marks: map[string]struct{}{}}
	g.set = func(col int, text string, role screen.Role) {
		if col >= 0 && col < len(g.row) {
			g.row[col] = content{text, role}
		}
	}
	g.SetColumns(cols...)
	return g
}

// SetColumns replaces the columns; the sort sign goes.
func (g *Grid) SetColumns(cols ...Column) {
	g.reset(slices.Clone(cols))
	g.cells, g.row, g.sort = nil, nil, -1
}

// Choose shows these columns only, by their places, in this order; nil shows all of them,
// those that matter most where there is no room for all.
func (g *Grid) Choose(cols []int) { g.choose(cols) }

// Titles are the titles of the columns, for filter.Parse.
func (g *Grid) Titles() []string {
	out := make([]string, len(g.cols))
	for i, c := range g.cols {
		out[i] = c.Title
	}
	return out
}

// SetSort puts a sign for up or down at a column's title; -1 takes it away.
// Sorting itself is the source's work.
func (g *Grid) SetSort(col int, desc bool) { g.sort, g.desc = col, desc }

// SetSource shows other rows. The selection stays on its id when that is
// there, else on its row number.
func (g *Grid) SetSource(src Source) {
	g.src = src
	g.sync()
}

// Len is how many rows there are.
func (g *Grid) Len() int {
	if g.src == nil {
		return 0
	}
	return max(g.src.Len(), 0)
}

// Selected is the id of the selected row; ok is false when there are no rows.
func (g *Grid) Selected() (id string, ok bool) {
	g.sync()
	return g.id, g.Len() > 0
}

// Index is the number of the selected row, or -1 when there are none.
func (g *Grid) Index() int {
	g.sync()
	if g.Len() == 0 {
		return -1
	}
	return g.at
}

// Select moves to the row with this id and tells whether it is there.
func (g *Grid) Select(id string) bool {
	i := g.find(id)
	if i < 0 {
		return false
	}
	g.place(i)
	return true
}

// Aim selects the row that Draw has put into line y, its titles being line 0; false where
// none is.
func (g *Grid) Aim(y int) bool {
	g.sync()
	if i := g.top + y - 1; y > 0 && y <= g.page && i < g.Len() {
		g.place(i)
		return true
	}
	return false
}

// Move moves the selection by n rows, as far as there are rows, and tells
// whether it moved.
func (g *Grid) Move(n int) bool {
	g.sync()
	was := g.at
	// n is bounded first: a sum of two ints may wrap.
	g.place(g.at + min(max(n, -g.Len()), g.Len()))
	return g.at != was
}

// Sight is the first row that Draw would show in h lines, and how many.
func (g *Grid) Sight(h int) (first, n int) {
	g.page = max(h-1, 1)
	g.sync()
	all := g.Len()
	g.top = screen.Window(g.top, g.at, g.page, all)
	return g.top, min(g.page, all-g.top)
}

// Width is how many cells a column had at the last Draw; 0 is not shown.
func (g *Grid) Width(col int) int { return g.widths[col] }

// Page is how many rows were in sight at the last Draw; at least 1.
func (g *Grid) Page() int { return g.page }

// Do performs a movement or marking by its name in the keymap and tells
// whether it knows it: up, down, top, bottom, half-up, half-down, page-up,
// page-down, mark, mark-all, clear-marks.
func (g *Grid) Do(action string) bool {
	if by, step := screen.Step(action, g.page); step {
		g.Move(by)
		return true
	}
	switch action {
	case "top":
		g.place(0)
	case "bottom":
		g.place(g.Len() - 1)
	case "mark":
		g.ToggleMark()
		g.Move(1)
	case "mark-all":
		g.MarkAll()
	case "clear-marks":
		g.ClearMarks()
	default:
		return false
	}
	return true
}

// place selects row i, clamped.
func (g *Grid) place(i int) {
	n := g.Len()
	if n == 0 {
		g.at, g.id, g.top = 0, "", 0
		return
	}
	g.at = min(max(i, 0), n-1)
	g.id = g.src.ID(g.at)
}

// sync finds the selected row again after rows changed.
func (g *Grid) sync() {
	n := g.Len()
	if n == 0 {
		g.at, g.top = 0, 0 // the id stays: rows may come back after loading
		return
	}
	if g.id == "" {
		g.place(g.at)
		return
	}
	if g.at < n && g.src.ID(g.at) == g.id {
		return
	}
	was := g.at
	if i := g.find(g.id); i >= 0 {
		g.at = i
		if !g.HoldTop || g.top > 0 {
			g.top = max(0, g.top+i-was) // the row stays at its height on the screen
		}
		return
	}
	g.place(g.at)
}

// find is the row of id, or -1.
func (g *Grid) find(id string) int {
	if id == "" || g.Len() == 0 {
		return -1
	}
	if i := g.src.Index(id); i < g.Len() {
		return i
	}
	return -1
}

// MaxMarks bounds how many rows can be marked.
const MaxMarks = 10_000

// ToggleMark marks the selected row, or takes its mark away.
func (g *Grid) ToggleMark() {
	id, ok := g.Selected()
	if !ok {
		return
	}
	if _, marked := g.marks[id]; marked {
		delete(g.marks, id)
		g.order = slices.DeleteFunc(g.order, func(o string) bool { return o == id })
		return
	}
	g.mark(id)
}

// MarkAll marks every row, up to MaxMarks.
func (g *Grid) MarkAll() {
	for i := range min(g.Len(), MaxMarks) {
		g.mark(g.src.ID(i))
	}
}

func (g *Grid) mark(id string) {
	if _, marked := g.marks[id]; marked || len(g.order) >= MaxMarks {
		return
	}
	g.marks[id] = struct{}{}
	g.order = append(g.order, id)
}

// ClearMarks takes all marks away.
func (g *Grid) ClearMarks() {
	clear(g.marks)
	g.order = nil
}

// Marks are the marked ids in the order they were marked. A mark stays when
// its row is filtered out of sight.
func (g *Grid) Marks() []string { return slices.Clone(g.order) }
