package dag

import (
	"cmp"
	"context"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Graph is what stands around a node: what led to it and what came of it.
type Graph struct {
	Nodes []GraphNode `json:"nodes"` // the node itself first
	Edges []GraphEdge `json:"edges"`
	More  bool        `json:"more"` // there is more than was asked for
}

// GraphNode is one node of a graph.
type GraphNode struct {
	Node  NodeRef `json:"node"`
	Level int     `json:"level"`          // 0 the node itself, -1 what led to it, 1 what came of it, and so on
	Kind  Kind    `json:"kind,omitempty"` // of an event that is here
	Text  string  `json:"text"`           // what it says in a few words; from outside
	TS    Time    `json:"ts,omitzero"`    // of the event, or of the newest that states the node
}

// GraphEdge is an edge between two nodes of a graph, by their numbers in it.
// From is the one of the lower level: what came first.
type GraphEdge struct {
	From int      `json:"from"`
	To   int      `json:"to"`
	Type EdgeType `json:"type"`
}

// Bounds of a graph.
const (
	maxLevels  = 20
	maxBoxes   = 500
	maxBeside  = 8   // edges of one type at the node that don't say what led to what: the newest
	maxCaption = 200 // bytes of a node's text
)

// Around finds the lineage of a node both ways. At the node itself there are
// also the edges that say nothing of cause: the runs of an agent, the owners
// and holders of a resource, the newest 8 of each type. Depth and Most are levels
// and nodes each way, 1-20 and 1-500; 0 means 3 and 60.
func (d *DAG) Around(ctx context.Context, tenant string, q LineageQuery) (Graph, error) {
	if err := q.check(3, maxLevels, 60, maxBoxes); err != nil {
		return Graph{}, err
	}
	g := &grapher{at: map[string]int{}, drawn: map[GraphEdge]bool{}}
	err := d.view(ctx, tenant, "draw a lineage", func(r reader) error {
		num, err := r.named(q.Node)
		if err != nil {
			return err
		}
		g.reader = r
		g.place(q.Node, 0)
		for _, down := range []bool{false, true} {
			w := &walk{reader: r, q: LineageQuery{Node: q.Node, Depth: q.Depth, Most: q.Most, Down: down}, seen: map[string]bool{}}
			if err := w.run(ctx); err != nil {
				return err
			}
			g.out.More = g.out.More || w.out.More
			for _, s := range w.out.Steps {
				g.step(s, down)
			}
		}
		if err := g.beside(num); err != nil {
			return err
		}
		return g.caption(ctx)
	})
	return g.out, err
}

// grapher gathers a graph.
type grapher struct {
	reader
	out    Graph
	at     map[string]int // number of a node by its key
	drawn  map[GraphEdge]bool
	stated Recorded // the event that stated the last node
}

// place finds a node's number, and gives it one on a level when it has none.
func (g *grapher) place(ref NodeRef, level int) int {
	k := string(nameKey(ref))
	i, known := g.at[k]
	if !known {
		i = len(g.out.Nodes)
		g.at[k] = i
		g.out.Nodes = append(g.out.Nodes, GraphNode{Node: ref, Level: level})
	}
	return i
}

func (g *grapher) link(from, to int, t EdgeType) {
	e := GraphEdge{from, to, t}
	if from != to && !g.drawn[e] {
		g.drawn[e] = true
		g.out.Edges = append(g.out.Edges, e)
	}
}

// step takes one step of a lineage in.
func (g *grapher) step(s Step, down bool) {
	near := s.Edge.From
	if string(nameKey(near)) == string(nameKey(s.Node)) {
		near = s.Edge.To
	}
	if down {
		from := g.place(near, s.Depth-1)
		g.link(from, g.place(s.Node, s.Depth), s.Edge.Type)
		return
	}
	to := g.place(near, 1-s.Depth)
	g.link(g.place(s.Node, -s.Depth), to, s.Edge.Type)
}

// beside adds the edges at the node itself that say nothing of cause; of those
// of a run to its events there is a timeline.
func (g *grapher) beside(num uint64) error {
	for code, r := range relations() {
		if r.cause != neither || r.typ == RunHasEvent {
			continue
		}
		for _, out := range []bool{true, false} {
			rows := inEdges
			if out {
				rows = outEdges
			}
			n := 0
			err := rows.Within(g, record.Seq(num).Byte(byte(code)), nil, nil, true, func(rest record.Parts, _ record.Found[struct{}]) (bool, error) {
				if n++; n > maxBeside {
					g.out.More = true
					return false, nil
				}
				pos, i := rest.Seq(), int(rest.Short())
				edges, err := g.edges(pos)
				if err != nil || i >= len(edges) {
					return false, err
				}
				if out {
					g.link(0, g.place(edges[i].To, 1), r.typ)
				} else {
					g.link(g.place(edges[i].From, -1), 0, r.typ)
				}
				return true, nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// caption says of each node what it is.
func (g *grapher) caption(ctx context.Context) error {
	for i := range g.out.Nodes {
		n := &g.out.Nodes[i]
		say := g.captionNode
		if n.Node.Type.ofEvent() {
			say = g.captionEvent
		}
		if err := cmp.Or(ctx.Err(), say(n)); err != nil {
			return err
		}
		if len(n.Text) > maxCaption {
			n.Text = strings.ToValidUTF8(n.Text[:maxCaption], "")
		}
	}
	return nil
}

// captionNode says what was stated last of a node. One event may state a whole
// conversation: it is kept for the next node.
func (g *grapher) captionNode(n *GraphNode) error {
	num, _, err := g.num(nameKey(n.Node))
	if err != nil || num == 0 {
		return err
	}
	return stated.Within(g, record.Seq(num), nil, nil, true, func(rest record.Parts, found record.Found[[]byte]) (bool, error) {
		pos, i := rest.Seq(), placeOf(found)
		if g.stated.Pos != pos {
			if g.stated, err = g.event(pos); err != nil {
				return false, err
			}
		}
		e := &g.stated.Event
		if i >= len(e.Nodes) {
			return false, core.Errorf(core.Internal, "event %d states no node %d", pos, i)
		}
		n.Text, n.TS = e.Nodes[i].Brief(), e.TS
		return false, nil
	})
}

func (g *grapher) captionEvent(n *GraphNode) error {
	_, pos, err := g.reader.place(n.Node.ID)
	if err != nil || pos == 0 {
		return err
	}
	e, err := g.event(pos)
	if err != nil {
		return err
	}
	n.Kind, n.TS, n.Text = e.Event.Kind, e.Event.TS, e.Event.Brief()
	if b, ok := e.Event.Body.(*ModelResponse); ok {
		m, err := g.message(&e.Event, b.OutputRef)
		if m != nil {
			n.Text = m.Short()
		}
		return err
	}
	return nil
}

// Brief is what an event states about a node, in a few words. It holds text
// from outside.
func (n *Node) Brief() string {
	switch b := n.Body.(type) {
	case *Message:
		return b.Brief()
	case *Resource:
		return string(b.Kind) + " " + b.Name
	case *Snapshot:
		return b.Method + " of " + b.ResourceRef
	case *RunSnapshot:
		return "summary of " + b.RunID
	case *Handle:
		return b.Provider + " " + b.ProviderID
	case *Policy:
		return strings.TrimSpace(string(b.Kind) + " " + b.Docstring)
	case *Subagent:
		return "of " + b.ParentAgentID
	}
	return ""
}
