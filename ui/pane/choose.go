package pane

import (
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Chooser is a list whose columns can be chosen and that can be sorted by one of them.
// Columns are named by their titles, in small letters with - for spaces.
type Chooser interface {
	// Columns are all that there are, and those that were chosen, in order; nil is the
	// list's own choice.
	Columns() (all, chosen []string)
	// Choose shows these columns in this order; none is the list's own choice. An error
	// leaves everything as it was.
	Choose(names []string) error
	// Sorted is the column that the list is sorted by, with a minus the other way round;
	// "" is its own order. SortBy sorts it so.
	Sorted() string
	SortBy(env Env, name string) error
}

// named is a column as a line names it.
func named(title string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-")
}

// Columns implements Chooser.
func (t *Table[T]) Columns() (all, chosen []string) {
	for _, col := range t.spec.Cols {
		all = append(all, named(col.Title))
	}
	for _, i := range t.chosen {
		chosen = append(chosen, all[i])
	}
	return all, chosen
}

// column is the place of a column that a line names.
func (t *Table[T]) column(name string) (int, error) {
	all, _ := t.Columns()
	i := slices.Index(all, named(name))
	if i < 0 {
		return i, core.Invalid("column", core.Clip(name), "of "+t.spec.Name+": "+strings.Join(all, ", "))
	}
	return i, nil
}

// Choose implements Chooser.
func (t *Table[T]) Choose(names []string) error {
	var chosen []int
	for _, name := range names {
		i, err := t.column(name)
		if err != nil {
			return err
		}
		if slices.Contains(chosen, i) {
			return core.Invalid("column", core.Clip(name), "each column once")
		}
		chosen = append(chosen, i)
	}
	t.chosen, t.sight = chosen, sight{}
	t.grid.Choose(chosen)
	return nil
}

// Sorted implements Chooser.
func (t *Table[T]) Sorted() string {
	if t.sorted == 0 {
		return ""
	}
	name := named(t.spec.Cols[(t.sorted-1)/2].Title)
	if t.sorted%2 == 0 {
		name = "-" + name
	}
	return name
}

// SortBy implements Chooser.
func (t *Table[T]) SortBy(env Env, name string) error {
	sorted := 0
	if name != "" {
		title, down := strings.CutPrefix(name, "-")
		i, err := t.column(title)
		if err != nil {
			return err
		}
		if t.pager != nil {
			return core.Errorf(core.InvalidInput, "sort: %s keep their own order; narrow them with / instead", t.spec.Name)
		}
		sorted = 2*i + 1
		if down {
			sorted++
		}
	}
	t.env = env
	t.sortAs(sorted)
	return nil
}
