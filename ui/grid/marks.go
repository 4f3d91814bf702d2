package grid

import "slices"

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
