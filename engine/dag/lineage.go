package dag

import (
	"cmp"
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// LineageQuery asks where a node comes from.
type LineageQuery struct {
	Node  NodeRef
	Depth int  // steps at most, 1-100; 0 means 10
	Down  bool // what came of it instead
	Most  int  // steps in all, 1-10,000; 0 means 1,000
}

// Step is one edge of a lineage. Its Node led to the one before it, or came of
// it when one asks downwards.
type Step struct {
	Depth   int     `json:"depth"` // from 1
	Node    NodeRef `json:"node"`  // that it comes to
	Edge    Edge    `json:"edge"`
	EventID string  `json:"event_id"` // that told of the edge
	TS      Time    `json:"ts"`
}

// Lineage is what led to a node, breadth first.
type Lineage struct {
	Node  NodeRef `json:"node"`
	Steps []Step  `json:"steps"`
	More  bool    `json:"more"` // depth or number ended it
}

// Bounds of a lineage.
const (
	maxDepth = 100
	maxSteps = 10_000
	maxFan   = 200 // edges of one type at one node: the newest
)

// Lineage follows DERIVED_FROM and every other edge of which one end led to
// the other (see relations): the events that made a message, the request that
// a response answers and what that consumed, the call behind a result.
func (d *DAG) Lineage(ctx context.Context, tenant string, q LineageQuery) (Lineage, error) {
	if err := q.check(10, maxDepth, 1000, maxSteps); err != nil {
		return Lineage{}, err
	}
	w := &walk{q: q, seen: map[string]bool{}, out: Lineage{Node: q.Node, Steps: []Step{}}}
	err := d.view(ctx, tenant, "follow a lineage", func(r reader) error {
		if _, err := r.named(q.Node); err != nil {
			return err
		}
		w.reader = r
		var said []NodeRef
		var err error
		if !q.Down && q.Node.Type.ofEvent() { // what it says comes from more than itself
			if said, err = w.said(); err != nil {
				return err
			}
		}
		return w.run(ctx, said...)
	})
	return w.out, err
}

// check fills in how far one goes where that is not said, and reports what is out of
// its bounds.
func (q *LineageQuery) check(depth, mostDepth, most, mostSteps int) error {
	q.Depth, q.Most = cmp.Or(q.Depth, depth), cmp.Or(q.Most, most)
	f := &problems{}
	q.Node.check(f, "node")
	f.upto("depth", q.Depth, mostDepth)
	f.upto("most", q.Most, mostSteps)
	return f.err()
}

// named is the number of a node that some event has to name.
func (r reader) named(ref NodeRef) (uint64, error) {
	num, _, err := r.num(nameKey(ref))
	if err == nil && num == 0 {
		err = core.Missing("node", ref.String())
	}
	return num, err
}

// walk is one search of a lineage.
type walk struct {
	reader
	teller
	q    LineageQuery
	seen map[string]bool // nodes, by their keys
	out  Lineage
}

func (w *walk) run(ctx context.Context, also ...NodeRef) error {
	level := append([]NodeRef{w.q.Node}, also...)
	for _, ref := range level {
		w.seen[string(nameKey(ref))] = true
	}
	for depth := 1; len(level) > 0; depth++ {
		if depth > w.q.Depth {
			w.out.More = true
			return nil
		}
		var next []NodeRef
		for _, ref := range level {
			more, err := w.around(ctx, ref, depth)
			if err != nil {
				return err
			}
			next = append(next, more...)
			if len(w.out.Steps) >= w.q.Most {
				w.out.More = true
				return nil
			}
		}
		level = next
	}
	return nil
}

// said are the nodes that the event asked about produced.
func (w *walk) said() (all []NodeRef, err error) {
	_, pos, err := w.place(w.q.Node.ID)
	if err != nil || pos == 0 {
		return nil, err
	}
	edges, err := w.reader.edges(pos)
	for _, x := range edges {
		if x.Type == EventProduces {
			all = append(all, x.To)
		}
	}
	return all, err
}

// around follows the edges of one node that lead the way asked for.
func (w *walk) around(ctx context.Context, ref NodeRef, depth int) (next []NodeRef, err error) {
	num, _, err := w.num(nameKey(ref))
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for code, r := range relations() {
		if r.cause == neither {
			continue
		}
		// Upwards the end that came first is wanted, downwards the other.
		edges, toFar := outEdges, (r.cause == toEnd) != w.q.Down
		if !toFar {
			edges = inEdges
		}
		n := 0
		err := edges.Within(w, record.Seq(num).Byte(byte(code)), nil, nil, true, func(rest record.Parts, _ record.Found[struct{}]) (bool, error) {
			if n++; n > maxFan || len(w.out.Steps) >= w.q.Most {
				w.out.More = true
				return false, nil
			}
			found, err := w.step(rest.Seq(), int(rest.Short()), toFar, depth)
			if found != nil {
				next = append(next, *found)
			}
			return true, cmp.Or(err, ctx.Err())
		})
		if err != nil {
			return nil, err
		}
	}
	return next, nil
}

// step takes one edge in, and returns its far node when that is new.
func (w *walk) step(pos uint64, i int, toFar bool, depth int) (*NodeRef, error) {
	edge, told, err := w.edge(w.reader, pos, i)
	if err != nil {
		return nil, err
	}
	far := edge.From
	if toFar {
		far = edge.To
	}
	w.out.Steps = append(w.out.Steps, Step{depth, far, edge, told.id, told.ts})
	k := string(nameKey(far))
	if w.seen[k] {
		return nil, nil
	}
	w.seen[k] = true
	return &far, nil
}
