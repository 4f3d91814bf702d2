package pane

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/filter"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/screen"
)

// Table is a list pane: a grid over rows in memory or over pages of a list of
// any length. Embed it; it implements Pane.
type Table[T any] struct {
	spec   Spec[T]
	grid   *grid.Grid
	given  []T // as they came
	all    []T // in order
	rows   []T // those that pass the filter
	pager  *Pager[T]
	text   string
	filter *filter.Filter
	from   time.Time // what is older is left out; zero leaves nothing out
	of     string    // the project whose agents' rows are not left out; "" leaves none out
	sorted int       // 0 is the list's own order; else 2*column+1 up, 2*column+2 down
	env    Env       // of the last call, for drawing rows
	marked map[string]Item
	held   bool // the list stands still
	booked bool // bookkeeping is shown too
	next   []T  // rows that came meanwhile, of a list in memory
	ranks  []func(v any) float64
	loads  Reader[[]T]
	err    error // of what was loaded
	order

	chosen       []int // columns, by their places, in order; nil is all
	sight        sight // that Want was found for
	came         bool  // rows came since then
	least, whole int
}

// NewTable makes the list of a spec.
func NewTable[T any](spec Spec[T]) *Table[T] {
	ranks := core.Map(spec.Cols, func(c grid.Column) func(any) float64 { return spec.Ranks[c.Title] })
	if spec.Face != nil {
		laid := spec.Face.List()
		ranks = core.Map(laid, func(l face.Listed) func(any) float64 { return l.Rank })
		spec.Cols, spec.Row = faced(laid, spec.Face, spec.Cells)
	}
	if spec.ID == nil {
		spec.ID = func(row *T) string { return spec.Item(row).ID }
	}
	t := &Table[T]{spec: spec, grid: grid.New(spec.Cols...), marked: map[string]Item{}, ranks: ranks, loads: NewReader[[]T](spec.Name)}
	if spec.Fetch != nil || spec.FetchFrom != nil {
		t.pager = NewPager[T](spec.Name)
	}
	t.grid.HoldTop = spec.NewestFirst || spec.Order != nil || t.pager != nil && !spec.Forward
	t.grid.SetSource(source[T]{t})
	return t
}

// SetColumns replaces the columns; the list goes back to its own order.
func (t *Table[T]) SetColumns(cols []grid.Column) {
	t.spec.Cols, t.sorted = cols, 0
	t.grid.SetColumns(cols...)
	t.sight, t.chosen = sight{}, nil
	t.filter = filter.Parse(t.text, t.columns())
}

func (t *Table[T]) Name() string { return t.spec.Name }

func (t *Table[T]) Kind() Kind { return List }

func (t *Table[T]) Title(env Env) string {
	title := t.title(env) + t.Booked()
	if t.held {
		title += "  held still"
	}
	return title
}

// Booked is what a title says of bookkeeping that is shown.
func (t *Table[T]) Booked() string {
	if t.booked {
		return "  with bookkeeping"
	}
	return ""
}

func (t *Table[T]) title(env Env) string {
	n := source[T]{t}.Len()
	switch {
	case t.text == "":
		return fmt.Sprintf("%s %d", t.spec.Title, n)
	case t.pager == nil:
		return fmt.Sprintf("%s %d/%d  /%s", t.spec.Title, n, len(t.all), t.text)
	case t.spec.Total != nil:
		return fmt.Sprintf("%s %d/%d  /%s", t.spec.Title, n, max(n, t.spec.Total(&env)), t.text)
	}
	return fmt.Sprintf("%s %d  /%s", t.spec.Title, n, t.text)
}

func (t *Table[T]) Show(Env, Item) tea.Cmd { return nil }

// Refresh implements Pane for lists with Rows, for those that are loaded and for those in
// pages.
func (t *Table[T]) Refresh(env Env) tea.Cmd {
	t.env = env
	if t.spec.Rows != nil {
		t.SetRows(env, t.spec.Rows(env))
	}
	if load := t.spec.Load; load != nil {
		return t.loads.Read(env.Tenant, func(ctx context.Context) ([]T, error) { return load(ctx, env.Tenant) })
	}
	if t.pager == nil || t.held || t.spec.Head != nil && !t.made {
		return nil
	}
	t.stale = t.spec.Head != nil
	return t.reread(env)
}

// reread reads the rows in sight anew.
func (t *Table[T]) reread(env Env) tea.Cmd {
	first, n := t.window()
	return t.pager.Refresh(t.fetch(env), first, n)
}

// fetch reads from the tenant that is shown now. Inlined it would be there three
// times for each type of row.
//
//go:noinline
func (t *Table[T]) fetch(env Env) Fetch[T] {
	tenant, fetch, head, from := env.Tenant, t.spec.Fetch, t.head, t.spec.FetchFrom
	if t.booked {
		fetch = t.spec.All
	}
	return func(ctx context.Context, f core.Filter) (core.Page[T], error) {
		if from != nil {
			return from(ctx, tenant, head, f)
		}
		return fetch(ctx, tenant, f)
	}
}

// window is the part of the list that the screen needs.
func (t *Table[T]) window() (first, n int) {
	page := t.grid.Page()
	return max(0, t.grid.Index()-page), 2*page + 1
}

// Update implements Pane for lists that are loaded and for those in pages.
func (t *Table[T]) Update(env Env, body any) tea.Cmd {
	if a, ok := t.loads.Take(env.Tenant, body); ok {
		if t.err = a.Err; a.Err == nil {
			t.SetRows(env, a.Got)
		}
		if a.Again {
			return t.Refresh(env)
		}
	}
	if t.pager == nil {
		return nil
	}
	t.env = env
	if r, ok := body.(headReply); ok {
		if t.made = true; r.err == nil && r.tenant == env.Tenant {
			t.head = r.head
		}
		return t.reread(env)
	}
	first, n := t.window()
	atTop := t.grid.Index() <= 0
	mine, again := t.pager.Take(body, first, n)
	t.sight = sight{}
	if mine && atTop && !t.spec.Forward {
		t.holdTop()
	}
	if again {
		return t.Refresh(env)
	}
	if mine && t.pager.Err() == nil {
		return t.pager.Need(t.fetch(env), first, n)
	}
	return nil
}

// Resize implements Pane; the grid takes its size from Draw.
func (t *Table[T]) Resize(int, int) {}

// Rebind makes the list one of another thing, from its beginning; all is its All.
func (t *Table[T]) Rebind(fetch, all func(ctx context.Context, tenant string, f core.Filter) (core.Page[T], error)) {
	t.spec.Fetch, t.spec.All, t.text = fetch, all, ""
	t.Reset()
}

// Row is the one under the cursor.
func (t *Table[T]) Row() (*T, bool) { return t.at(t.grid.Index()) }

// Len is how many rows there are, not all of them in memory.
func (t *Table[T]) Len() int { return t.grid.Len() }

// Sight calls fn for the rows in sight that are in memory, of a pane h high.
func (t *Table[T]) Sight(h int, fn func(*T)) {
	first, n := t.grid.Sight(h)
	for i := range n {
		if row, ok := t.at(first + i); ok {
			fn(row)
		}
	}
}

// Want implements Wanter by the rows in sight; it reads them when others are, or other
// rows came, which only make it wider: a list that becomes narrow and wide again with
// each word of an agent is hard to read.
func (t *Table[T]) Want(env Env, h int) (least, all int) {
	t.env = env
	first, n := t.grid.Sight(h)
	if at := (sight{first, n, h}); t.sight != at || t.came {
		least, whole := t.grid.Want(h)
		if t.sight == at {
			least, whole = max(least, t.least), max(whole, t.whole)
		}
		t.sight, t.came, t.least, t.whole = at, false, least, whole
	}
	return t.least, t.whole
}

// sight is which rows are on the screen; the zero value is none that was looked at.
type sight struct{ first, n, h int }

// Width is how many cells a column had when it was last drawn; 0 is none.
func (t *Table[T]) Width(col int) int { return t.grid.Width(col) }

func (t *Table[T]) Do(env Env, action string) (tea.Cmd, bool) {
	t.env = env
	switch action {
	case "sort":
		if t.pager != nil {
			return Say("this list keeps its own order; narrow it with / instead", true), true
		}
		t.sort()
		return nil, true
	case "follow":
		return t.hold(env), true
	case "show-all":
		if t.spec.All == nil {
			return nil, false
		}
		t.booked = !t.booked
		t.Reset()
		return t.reread(env), true
	case "mark":
		t.mark(t.grid.Index())
	case "mark-all":
		if t.pager != nil && t.pager.Held() < t.pager.Len() {
			return Say(fmt.Sprintf("mark-all: %d rows are too many; narrow the list with / first", t.pager.Len()), true), true
		}
		for i := range (source[T]{t}).Len() {
			t.mark(i)
		}
	}
	if !t.grid.Do(action) {
		return nil, false
	}
	if t.pager == nil {
		return nil, true
	}
	first, n := t.window()
	return t.pager.Need(t.fetch(env), first, n), true
}

func (t *Table[T]) Selected(env Env) Item {
	t.env = env
	row, ok := t.at(t.grid.Index())
	if !ok {
		return Item{}
	}
	it := t.spec.Item(row)
	it.Row = t.line(row)
	return it
}

// line is a row as text.
func (t *Table[T]) line(row *T) string {
	cells := make([]string, len(t.spec.Cols))
	t.spec.Row(&t.env, row, func(col int, text string, _ screen.Role) { cells[col] = text })
	return Joined("\t", cells...)
}

// Aim implements Aimed.
func (t *Table[T]) Aim(y int) bool { return t.grid.Aim(y) }

// Position is the number of the row under the cursor, -1 for none: the root
// watches it to know when rows moved.
func (t *Table[T]) Position() int { return t.grid.Index() }

// Select moves to the row with this id, if it is there.
func (t *Table[T]) Select(id string) bool { return t.grid.Select(id) }

func (t *Table[T]) Filter(env Env, text string) (tea.Cmd, error) {
	t.env = env
	if t.pager == nil {
		rest, since, err := t.since(text, env.Now)
		if err != nil {
			return nil, err
		}
		rest, of := t.project(rest)
		t.text, t.from, t.of, t.filter = text, since, of, filter.Parse(rest, t.columns())
		t.narrow()
		return nil, nil
	}
	f, err := EngineFilter(text, env)
	if err != nil {
		return nil, err
	}
	t.text = text
	t.pager.Reset(f)
	t.grid.Do("top")
	return t.reread(env), nil
}

func (t *Table[T]) FilterText() string { return t.text }

// Reset forgets rows, marks and place: another tenant is shown.
func (t *Table[T]) Reset() {
	t.ClearMarks()
	t.order = order{}
	t.given, t.all, t.rows, t.next, t.held = nil, nil, nil, nil, false
	if t.pager != nil {
		f, _ := EngineFilter(t.text, t.env)
		t.pager.Reset(f)
	}
	t.grid.Do("top")
}

// empty is why there are no rows.
func (t *Table[T]) empty() string {
	switch {
	case t.pager != nil && t.pager.Err() != nil:
		return t.pager.Err().Error()
	case t.err != nil:
		return t.err.Error()
	case t.text != "":
		return "nothing passes the filter; esc clears it"
	}
	return t.spec.Empty
}

func (t *Table[T]) Draw(c *screen.Canvas, env Env, focused bool) {
	t.env = env
	t.grid.Empty = t.empty()
	t.grid.Draw(c, c.Bounds(), focused)
}
