package pane

import (
	"strconv"

	"swarmdeck/ui/screen"
)

// Bounds of a tree.
const (
	treeRows  = 1000
	treeDepth = 64
)

// Tree lays things that lead to others out as lines: the dependencies of a
// skill, the agents of a hierarchy, the children of a task. The graph needs
// not be a tree: what stands above already is not laid out again, and a cycle
// is cut where it closes.
//
//	tree := pane.Tree[*skill.Skill]{ID: (*skill.Skill).Ref, Kids: p.needs}
//	var rows []pane.Row
//	for _, b := range tree.Branches(env.Glyphs, root) {
//		rows = append(rows, b.Row(b.Node.Ref(), screen.Accent))
//	}
//	paras.Rows("needs", rows)
//
// In a list the Lead goes before the text of the first column.
type Tree[T any] struct {
	ID     func(T) string // the same for the same thing
	Kids   func(T) []T    // in the order of drawing
	Closed func(T) bool   // its branches are only counted; nil lays out all
	Most   int            // how many lines are laid out; 0 is 1000
}

// TreeBranch is one line of a tree.
type TreeBranch[T any] struct {
	Node  T
	Depth int    // 0 is a root
	Lead  string // the lines that lead to it: "│  └─ "
	Note  string // "(above)", "(cycle)", "(3 more)", "(and more)", or ""
}

// Row is the branch as a line of a page.
func (b TreeBranch[T]) Row(text string, role screen.Role) Row {
	return Row{Lead: b.Lead, Text: text, Role: role, Note: b.Note}
}

// Branches lays out what the roots lead to, the roots first.
func (t Tree[T]) Branches(g *screen.Glyphs, roots ...T) []TreeBranch[T] {
	if t.Most <= 0 {
		t.Most = treeRows
	}
	w := treeWalk[T]{Tree: t, glyphs: g, above: map[string]bool{}, path: map[string]bool{}}
	for _, root := range roots {
		w.walk(root, 0, "", "")
	}
	return w.out
}

// treeWalk is a tree while it is laid out.
type treeWalk[T any] struct {
	Tree[T]
	glyphs *screen.Glyphs
	above  map[string]bool // ids whose branches stand above
	path   map[string]bool // ids on the way from the root
	out    []TreeBranch[T]
}

// walk adds a thing and what it leads to; lead stands before its own line,
// below before those of its branches.
func (t *treeWalk[T]) walk(node T, depth int, lead, below string) {
	if len(t.out) >= t.Most {
		t.out[len(t.out)-1].Note = "(and more)"
		return
	}
	id, kids := t.ID(node), t.Kids(node)
	b := TreeBranch[T]{Node: node, Depth: depth, Lead: lead}
	switch {
	case t.path[id]:
		b.Note = "(cycle)"
	case len(kids) == 0:
	case t.above[id]:
		b.Note = "(above)"
	case t.Closed != nil && t.Closed(node), depth >= treeDepth:
		b.Note = "(" + strconv.Itoa(len(kids)) + " more)"
	default:
		t.out = append(t.out, b)
		t.above[id], t.path[id] = true, true
		side, dash := string(t.glyphs.Vertical), string(t.glyphs.Horizontal)+" "
		for i, kid := range kids {
			if i < len(kids)-1 {
				t.walk(kid, depth+1, below+string(t.glyphs.Branch)+dash, below+side+"  ")
			} else {
				t.walk(kid, depth+1, below+string(t.glyphs.LastBranch)+dash, below+"   ")
			}
		}
		delete(t.path, id)
		return
	}
	t.out = append(t.out, b)
}
