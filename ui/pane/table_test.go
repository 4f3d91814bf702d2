package pane

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/view"
	"swarmdeck/expect"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/screen"
)

// counter is a list of growing numbers.
type counter struct {
	n     int
	reads []int
}

func (c *counter) page(ctx context.Context, _ string, f core.Filter) (core.Page[int], error) {
	return numbers(&c.n, &c.reads)(ctx, f)
}

func numberTable(c *counter, paged bool) *Table[int] {
	spec := Spec[int]{
		Name: "numbers", Title: "numbers", Empty: "none", Cols: []grid.Column{{Title: "N", Min: 8}},
		ID:   func(n *int) string { return strconv.Itoa(*n) },
		Row:  func(_ *Env, n *int, set func(int, string, screen.Role)) { set(0, "n"+strconv.Itoa(*n), screen.Text) },
		Item: func(n *int) Item { return Item{Kind: "number", ID: strconv.Itoa(*n)} },
	}
	if paged {
		spec.Fetch = c.page
	}
	return NewTable(spec)
}

func tableText(t *Table[int], env Env) string {
	c := screen.New(20, 8)
	t.Draw(c, env, true)
	return t.Title(env) + "\n" + strings.Join(c.Plain(), "\n")
}

func TestAListHeldStillStaysAsItIsUntilItFollows(t *testing.T) {
	w := &counter{n: 2}
	env := Env{Glyphs: screen.Unicode()}
	for _, paged := range []bool{false, true} {
		w.n = 2
		table := numberTable(w, paged)
		look := func() string {
			if !paged {
				rows := make([]int, w.n)
				for i := range rows {
					rows[i] = i
				}
				table.SetRows(env, rows)
			}
			for _, b := range bodies(table.Refresh(env)) {
				table.Update(env, b)
			}
			return tableText(table, env)
		}
		out := look()
		expect.Must(t, strings.HasPrefix(out, "numbers 2\n"), "paged %v:\n%s", paged, out)
		_, ok := table.Do(env, "follow")
		expect.Must(t, ok, "it can't be held")
		before := tableText(table, env)
		w.n = 3
		out = look()
		expect.Must(t, out == before && strings.HasPrefix(out, "numbers 2  held still\n"), "paged %v, held:\n%s", paged, out)
		cmd, _ := table.Do(env, "follow")
		for _, b := range bodies(cmd) {
			table.Update(env, b)
		}
		out = tableText(table, env)
		expect.Must(t, strings.HasPrefix(out, "numbers 3\n"), "paged %v, followed:\n%s", paged, out)
		table.Do(env, "follow")
		table.Reset()
		out = look()
		expect.Must(t, strings.HasPrefix(out, "numbers 3\n"), "paged %v, another tenant:\n%s", paged, out)
	}
}

func TestAListIsPutInOrderByWhatItsColumnsMean(t *testing.T) {
	type run struct {
		Name string    `json:"name"`
		Runs int       `json:"runs"`
		Made time.Time `json:"made_at"`
	}
	env := Env{Glyphs: screen.Unicode(), Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	ago := func(d time.Duration) time.Time { return env.Now.Add(-d) }
	table := NewTable(Spec[run]{
		Name: "runs", Face: face.Of[run]{Columns: "NAME:name RUNS:runs AGE:made_at,age", List: "NAME:8k RUNS:4 AGE:4"}.Face(),
		ID: func(r *run) string { return r.Name }, Item: func(r *run) Item { return Item{ID: r.Name} },
	})
	table.SetRows(env, []run{{"a", 10, ago(14 * time.Minute)}, {"b", 9, ago(9 * time.Second)}, {"c", 100, ago(time.Hour)}})
	table.Draw(screen.New(40, 5), env, true)
	for _, want := range []string{"abc", "cba", "bac", "cab", "bac", "cab", "abc"} { // each column up and down, then its own
		table.Do(env, "sort")
		got := ""
		for i := range table.Len() {
			row, _ := table.at(i)
			got += row.Name
		}
		expect.Is(t, got, want)
	}
}

func TestRowsOfOneIDStandInOnePlace(t *testing.T) {
	var rows []string
	p := NewTable(Spec[string]{
		Name: "words", Cols: []grid.Column{{Title: "WORD", Min: 4}},
		Row:   func(_ *Env, s *string, set func(int, string, screen.Role)) { set(0, *s, screen.Text) },
		ID:    func(s *string) string { return *s },
		Item:  func(s *string) Item { return Item{Kind: "word", ID: *s} },
		Rows:  func(Env) []string { return rows },
		Order: func(*Env, []string) {},
	})
	env := Env{Snap: &view.Snapshot{}, Glyphs: screen.Unicode()}
	for _, rows = range [][]string{{"a", "b", "a", "c"}, {"a", "b", "a", "c", "d"}} {
		p.Refresh(env)
	}
	expect.True(t, p.Select("d") && p.Select("c"), "a row is not there")
}
