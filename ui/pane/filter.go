package pane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/ui/filter"
)

// since is the time that since:TEXT means.
func since(now time.Time, text string) (time.Time, error) {
	at, err := core.ParsePast(now, text)
	if err != nil {
		return at, fmt.Errorf("filter since:%s: %w", text, err)
	}
	return at, nil
}

// EngineFilter turns a filter line into one that the engine applies to a list
// of any length: words, and col:value for the columns that core.Filter knows; a
// project is its agents. Signs that need every row read (! and ~) are refused.
func EngineFilter(text string, env Env) (core.Filter, error) {
	var f core.Filter
	var words []string
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "!") || strings.HasPrefix(word, "~") {
			return f, fmt.Errorf("filter %s: this list is filtered by the engine, with words and col:value only", word)
		}
		col, value, ok := strings.Cut(word, ":")
		if !ok {
			words = append(words, word)
			continue
		}
		switch strings.ToLower(col) {
		case "status", "state", "decision":
			f.Status = strings.ToLower(value)
		case "agent":
			f.Agent = value
		case "project":
			f.Agent = strings.Join(env.agentsOf(value), ",")
		case "kind", "type":
			f.Kind = value
		case "session":
			f.Session = value
		case "trace":
			f.Trace = strings.ToLower(value)
		case "task":
			f.Task = value
		case "since":
			var err error
			if f.Since, err = since(env.Now, value); err != nil {
				return f, err
			}
		default:
			words = append(words, word)
		}
	}
	f.Match = strings.Join(words, " ")
	return f, nil
}

// agentsOf are the names of the agents of the projects whose names have a text in them.
// No agent is called what stands for none.
func (e *Env) agentsOf(project string) (names []string) {
	if e.Snap != nil {
		for _, a := range e.Snap.Agents {
			if _, _, in := filter.Index(a.Project, strings.ToLower(project)); in {
				names = append(names, a.Name)
			}
		}
	}
	if names == nil {
		names = []string{"-"}
	}
	return names
}

// FilterWord takes the words col:value out of what a filter line matches and
// returns their values: lists narrow by columns of their own so.
func FilterWord(f *core.Filter, col string) (values []string) {
	var rest []string
	for word := range strings.FieldsSeq(f.Match) {
		name, value, ok := strings.Cut(word, ":")
		if ok && strings.EqualFold(name, col) && value != "" {
			values = append(values, value)
		} else {
			rest = append(rest, word)
		}
	}
	f.Match = strings.Join(rest, " ")
	return values
}

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
