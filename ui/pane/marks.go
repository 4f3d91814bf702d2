package pane

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
