package pane

import (
	"strconv"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/screen/screentest"
)

func treeOf(edges map[string][]string) Tree[string] {
	return Tree[string]{ID: func(s string) string { return s }, Kids: func(s string) []string { return edges[s] }}
}

func treeText(bs []TreeBranch[string]) string {
	var b strings.Builder
	for _, k := range bs {
		b.WriteString(strings.TrimRight(k.Lead+k.Node+" "+k.Note, " ") + "\n")
	}
	return b.String()
}

func TestAGraphIsLaidOutAsATree(t *testing.T) {
	tests := []struct {
		name  string
		edges map[string][]string
		want  string
	}{
		{"alone", nil, "a\n"},
		{"a chain", map[string][]string{"a": {"b"}, "b": {"c"}}, "a\n└─ b\n   └─ c\n"},
		{"branches", map[string][]string{"a": {"b", "c"}, "b": {"d", "e"}}, "a\n├─ b\n│  ├─ d\n│  └─ e\n└─ c\n"},
		{"a diamond", map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": {"e"}}, "a\n├─ b\n│  └─ d\n│     └─ e\n└─ c\n   └─ d (above)\n"},
		{"a leaf twice", map[string][]string{"a": {"b", "b"}}, "a\n├─ b\n└─ b\n"},
		{"a cycle", map[string][]string{"a": {"b"}, "b": {"a", "c"}}, "a\n└─ b\n   ├─ a (cycle)\n   └─ c\n"},
		{"itself", map[string][]string{"a": {"a"}}, "a\n└─ a (cycle)\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := treeText(treeOf(tt.edges).Branches(screen.Unicode(), "a"))
			expect.True(t, got == tt.want, "got\n%swant\n%s", got, tt.want)
		})
	}
}

func TestATreeHasBounds(t *testing.T) {
	edges := map[string][]string{}
	for i := range 500 {
		edges["n"+strconv.Itoa(i)] = []string{"n" + strconv.Itoa(i+1)}
		edges["wide"] = append(edges["wide"], "leaf"+strconv.Itoa(i))
	}
	tree := treeOf(edges)
	deep := tree.Branches(screen.ASCII(), "n0")
	n := len(deep)
	expect.True(t, n == treeDepth+1 && deep[n-1].Note == "(1 more)", "%d branches, the last %+v", n, deep[n-1])
	tree.Most = 10
	wide := tree.Branches(screen.ASCII(), "wide")
	expect.True(t, len(wide) == 10 && wide[9].Note == "(and more)", "%d branches, the last %+v", len(wide), wide[9])
	tree.Closed = func(s string) bool { return s == "wide" }
	expect.Is(t, treeText(tree.Branches(screen.ASCII(), "wide", "n499")), "wide (500 more)\nn499\n`- n500\n", "got")
}

func TestATreeOnAPageLooksRight(t *testing.T) {
	edges := map[string][]string{
		"fetch-object": {"navigate", "detect", "grasp"}, "grasp": {"detect", "move-arm"}, "detect": {"camera"}, "move-arm": {"grasp"},
		"navigate": {"a name that is so long that it does not fit in eighty columns, whatever is tried", "\x1b[31mhos\u202etile"},
	}
	page := func(g *screen.Glyphs) *Page {
		p := &Page{}
		p.Resize(80, 24)
		var rows []Row
		for _, b := range treeOf(edges).Branches(g, "fetch-object") {
			row := b.Row(b.Node, screen.Text)
			row.Item = Item{Kind: "skill", ID: b.Node}
			rows = append(rows, row)
		}
		var paras Paras
		paras.Add("name", "fetch-object", screen.Accent)
		paras.Rows("needs", rows)
		p.Set(paras)
		return p
	}
	p := page(screen.Unicode())
	do(t, p, "down", "down", "down")
	if p.Item().ID != edges["navigate"][0] || p.Row() != edges["navigate"][0] {
		t.Errorf("under the cursor: %v", p.Item())
	}
	c := screen.New(80, 24)
	p.Draw(c, true)
	screentest.Golden(t, c, "tree-80x24")

	c = screen.New(80, 24)
	c.SetGlyphs(screen.ASCII())
	page(screen.ASCII()).Draw(c, true)
	screentest.Golden(t, c, "tree-ascii-80x24")
	screentest.ASCII(t, c)
}
