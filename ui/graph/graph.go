// Package graph draws a lineage as boxes and lines on cells: what led to a node
// to its left, what came of it to its right, a column for each step. It draws
// the part in sight only.
package graph

import (
	"cmp"
	"slices"
	"strings"

	"swarmdeck/engine/dag"
)

// Map is a laid out graph with a place in it. The zero value is empty. It
// belongs to one goroutine.
type Map struct {
	nodes []dag.GraphNode
	edges []dag.GraphEdge
	cols  [][]int // nodes by column and slot order
	col   []int   // of each node
	slot  []int   // row of each node
	at    int     // the selected node
	top   int     // the first line in sight
	more  bool
}

// Set shows another graph; the selection stays on its node when that is there,
// else it goes to the first.
func (m *Map) Set(g dag.Graph) {
	was, had := m.Selected()
	*m = Map{nodes: g.Nodes, edges: g.Edges, more: g.More, top: m.top}
	m.lay()
	if had {
		m.at = max(0, slices.IndexFunc(m.nodes, func(n dag.GraphNode) bool { return n.Node == was.Node }))
	}
}

// Empty reports whether there is nothing to draw.
func (m *Map) Empty() bool { return len(m.nodes) == 0 }

// More reports whether the graph goes on beyond what is drawn.
func (m *Map) More() bool { return m.more }

// Selected is the node under the cursor.
func (m *Map) Selected() (dag.GraphNode, bool) {
	if m.Empty() {
		return dag.GraphNode{}, false
	}
	return m.nodes[m.at], true
}

// lay gives each node a column by its level and a row: the next free one of
// its column, or that of the node nearer to the root which it is linked to.
func (m *Map) lay() {
	if m.Empty() {
		return
	}
	low, high := 0, 0
	for _, n := range m.nodes {
		low, high = min(low, n.Level), max(high, n.Level)
	}
	m.cols, m.col, m.slot = make([][]int, high-low+1), make([]int, len(m.nodes)), make([]int, len(m.nodes))
	for i, n := range m.nodes {
		m.col[i] = n.Level - low
	}
	order := make([]int, len(m.nodes)) // from the root outwards
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return abs(m.nodes[a].Level) - abs(m.nodes[b].Level) })
	for _, i := range order {
		col := &m.cols[m.col[i]]
		free := 0
		if n := len(*col); n > 0 {
			free = m.slot[(*col)[n-1]] + 1
		}
		m.slot[i] = max(free, m.inner(i))
		*col = append(*col, i)
	}
}

// inner is the row of the first node nearer to the root that i is linked to.
func (m *Map) inner(i int) int {
	for _, e := range m.edges {
		for _, ends := range [][2]int{{e.From, e.To}, {e.To, e.From}} {
			if ends[0] == i && abs(m.nodes[ends[1]].Level) < abs(m.nodes[i].Level) {
				return m.slot[ends[1]]
			}
		}
	}
	return 0
}

func abs(n int) int { return max(n, -n) }

// Do moves the selection by a named action and reports whether it knows it.
func (m *Map) Do(action string) bool {
	if m.Empty() {
		return slices.Contains([]string{"up", "down", "left", "right", "top", "bottom", "half-up", "half-down", "page-up", "page-down"}, action)
	}
	switch action {
	case "up":
		m.move(-1)
	case "down":
		m.move(1)
	case "half-up", "page-up":
		m.move(-4)
	case "half-down", "page-down":
		m.move(4)
	case "left":
		m.across(-1)
	case "right":
		m.across(1)
	case "top":
		m.at = 0
	case "bottom":
		m.move(len(m.nodes))
	default:
		return false
	}
	return true
}

func (m *Map) move(by int) {
	col := m.cols[m.col[m.at]]
	i := slices.Index(col, m.at)
	m.at = col[min(max(i+by, 0), len(col)-1)]
}

// across goes to the next column: to a node that is linked, else to the one of
// the nearest row.
func (m *Map) across(by int) {
	to := m.col[m.at] + by
	if to < 0 || to >= len(m.cols) {
		return
	}
	best := -1
	near := func(i int) {
		if best < 0 || abs(m.slot[i]-m.slot[m.at]) < abs(m.slot[best]-m.slot[m.at]) {
			best = i
		}
	}
	for _, e := range m.edges {
		switch {
		case e.From == m.at && m.col[e.To] == to:
			near(e.To)
		case e.To == m.at && m.col[e.From] == to:
			near(e.From)
		}
	}
	if best < 0 {
		for _, i := range m.cols[to] {
			near(i)
		}
	}
	if best >= 0 {
		m.at = best
	}
}

// Links says how the selected node is linked: by which edge to which node, in
// words, those from the left first.
func (m *Map) Links() (all []string) {
	for _, e := range m.edges {
		if e.To == m.at {
			all = append(all, Word(string(e.Type))+" from "+Name(m.nodes[e.From]))
		}
	}
	for _, e := range m.edges {
		if e.From == m.at {
			all = append(all, Word(string(e.Type))+" to "+Name(m.nodes[e.To]))
		}
	}
	return all
}

// Edge is an edge in words.
func Edge(g dag.Graph, e dag.GraphEdge) string {
	return Name(g.Nodes[e.From]) + " leads to " + Name(g.Nodes[e.To]) + " (" + Word(string(e.Type)) + ")"
}

// Name is what a node is, with as much of its id as tells it apart.
func Name(n dag.GraphNode) string { return Head(n) + " " + Brief(n.Node.ID) }

// Head is what a node is: the kind of an event, the type of anything else.
func Head(n dag.GraphNode) string {
	return Word(cmp.Or(string(n.Kind), string(n.Node.Type)))
}

// Word is a name of the record as a person reads it.
func Word(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", " ")) }

// Brief is the beginning of an event's id, and any other id whole.
func Brief(id string) string {
	if dag.IsEventID(id) {
		return id[:8]
	}
	return id
}
