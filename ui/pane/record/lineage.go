package record

import (
	"cmp"
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/dag"
	"swarmdeck/ui/graph"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

const lineageName = "lineage"

// depth is how many steps each way are read.
const depth = 4

// infoRows are the lines below the picture.
const infoRows = 3

// Lineage shows a graph.
type Lineage struct {
	*pane.Detail[dag.Graph]
	graph graph.Map
}

// NewLineage makes the sheet of the graph around a node of the agents' record:
// what led to it and what came of it, as boxes and lines.
func NewLineage(of DAG) *Lineage {
	p := &Lineage{}
	p.Detail = pane.NewDetail(pane.DetailSpec[dag.Graph]{
		Name: lineageName, Live: true, // what comes of a node grows
		Fetch: func(ctx context.Context, tenant, id string) (dag.Graph, error) {
			ref, err := of.FindNode(ctx, tenant, id)
			if err != nil {
				return dag.Graph{}, err
			}
			return of.Around(ctx, tenant, dag.LineageQuery{Node: ref, Depth: depth})
		},
		Took: func(g *dag.Graph) { p.graph.Set(*g) },
	})
	return p
}

func (p *Lineage) Broad() {}

func (p *Lineage) Show(env pane.Env, it pane.Item) tea.Cmd {
	if it.ID != p.Item().ID {
		p.graph = graph.Map{}
	}
	return p.Detail.Show(env, it)
}

func (p *Lineage) Reset() {
	p.Detail.Reset()
	p.graph = graph.Map{}
}

func (p *Lineage) Do(_ pane.Env, action string) (tea.Cmd, bool) { return nil, p.graph.Do(action) }

// Selected implements pane.Pane: the node under the cursor.
func (p *Lineage) Selected(pane.Env) pane.Item {
	n, ok := p.graph.Selected()
	if !ok {
		return p.Item()
	}
	it := nodeItem(n.Node)
	switch {
	case n.Node.Type == dag.TypeAgent:
		it.Agent = n.Node.ID
	case n.Node.Type == dag.TypeRun:
		it.Part = n.Node.ID
	case dag.IsEventID(n.Node.ID):
		it.ID = n.Node.ID
	}
	it.Row = graph.Name(n) + ": " + strings.Join(p.graph.Links(), "; ")
	return it
}

func (p *Lineage) Open(env pane.Env) pane.Item {
	if p.graph.Empty() {
		return pane.Item{}
	}
	it := p.Selected(env)
	it.Row = ""
	return it
}

// Picture implements pane.Viewer: the graph around the node under the cursor.
func (p *Lineage) Picture(pane.Env) pane.Item {
	n, ok := p.graph.Selected()
	if !ok || n.Level == 0 {
		return pane.Item{}
	}
	return pane.LineageOf(n.Node)
}

func (p *Lineage) Title(pane.Env) string {
	typ, id, ok := strings.Cut(p.Item().ID, ":")
	if !ok {
		typ, id = "event", typ
	}
	title := "lineage of " + graph.Word(typ) + " " + graph.Brief(id)
	if p.graph.More() {
		title += "  (there is more: v goes on from a node)"
	}
	return title
}

// Filter implements pane.Pane: a picture has nothing to search.
func (p *Lineage) Filter(pane.Env, string) (tea.Cmd, error) { return nil, nil }

func (p *Lineage) Draw(c *screen.Canvas, env pane.Env, focused bool) {
	switch got, err := p.Got(); {
	case err != nil:
		c.TextIn(1, 0, c.W()-2, screen.Bad, err.Error())
		return
	case got == nil:
		c.Text(1, 0, screen.Dim, "reading"+env.Glyphs.Ellipsis)
		return
	}
	picture, info := c.Bounds().SplitTop(max(c.H()-infoRows, 1))
	p.graph.Draw(c.Sub(picture), env.Now, focused)
	p.info(c.Sub(info), env)
}

// info says what is under the cursor, and how it is linked.
func (p *Lineage) info(c *screen.Canvas, env pane.Env) {
	n, ok := p.graph.Selected()
	if !ok || c.H() < infoRows {
		return
	}
	x := c.Text(0, 0, screen.Title, graph.Head(n))
	x = c.Text(x+1, 0, screen.Accent, graph.Brief(n.Node.ID))
	if !n.TS.IsZero() {
		x = c.Text(x+1, 0, screen.Dim, pane.Precise(env.Now, n.TS.Time()))
	}
	c.HLine(x+1, 0, c.W()-x-1, screen.Border)
	c.TextIn(0, 1, c.W(), screen.Text, n.Text)
	links := strings.Join(p.graph.Links(), "; ")
	c.TextIn(0, 2, c.W(), screen.Dim, cmp.Or(links, "nothing led to it, and nothing came of it"))
}
