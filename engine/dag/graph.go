package dag

import (
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// graph takes in what an event says of the graph: its edges, the nodes that it
// states, and what ends with it.
func (w *writer) graph(e *Event, pos uint64, at surroundings) error {
	edges := derive(e, at)
	if e.RunID != "" {
		// The run's stream says it already.
		edges = slices.DeleteFunc(edges, func(x Edge) bool { return x.Type == RunHasEvent })
	}
	if len(edges) > 0 {
		if err := edgesOf.Put(w, record.Seq(pos), edges); err != nil {
			return err
		}
		w.Add(countEdges, int64(len(edges)))
	}
	for i, x := range edges {
		if err := w.edge(e, x, pos, i); err != nil {
			return err
		}
	}
	for i, n := range e.Nodes {
		if err := w.node(e, n, pos, i); err != nil {
			return err
		}
	}
	states := func(t NodeType) bool { return slices.ContainsFunc(e.Nodes, func(n Node) bool { return n.Type == t }) }
	if e.Kind == KindPolicyActivated || states(TypePolicy) {
		if err := w.append(policies, record.Key{past}, record.Seq(pos)); err != nil {
			return err
		}
	}
	if e.Kind == KindAgentForked || states(TypeSubagent) {
		if err := w.append(forks, nil, record.Seq(pos)); err != nil {
			return err
		}
	}
	if b, ok := e.Body.(*ResourceDetached); ok {
		return w.detach(e, b, pos)
	}
	return w.mention(e, pos)
}

// edgeKey is an edge's place under one of its ends.
func edgeKey(num uint64, relation int, pos uint64, i int) record.Key {
	return record.Seq(num).Byte(byte(relation)).Seq(pos).Short(uint16(i))
}

func (w *writer) edge(e *Event, x Edge, pos uint64, i int) error {
	from, _, err := w.intern(nameKey(x.From))
	if err != nil {
		return err
	}
	to, _, err := w.intern(nameKey(x.To))
	if err != nil {
		return err
	}
	all := relations()
	r := slices.IndexFunc(all, func(r relation) bool { return r.typ == x.Type })
	if err := outEdges.Put(w, edgeKey(from, r, pos, i), struct{}{}); err != nil {
		return err
	}
	if err := inEdges.Put(w, edgeKey(to, r, pos, i), struct{}{}); err != nil {
		return err
	}
	if !all[r].lasts {
		return nil
	}
	resource, other := to, from
	sp := span{what: byte(r), from: x.Valid.start(e.TS), pos: pos, i: i, id: x.To.ID}
	if x.Type == AttachedTo {
		resource, other, sp.id = from, to, x.From.ID
		if x.To.Type == TypeAgent {
			sp.what = spanHeld
		}
	}
	open, err := w.isOpen(sp.what, resource, other)
	switch {
	case err != nil:
		return err
	case open && !x.Valid.To.IsZero() && x.Valid.From.IsZero(): // tells the end of what holds
		return w.end(sp.what, resource, other, x.Valid.To.at)
	case open: // goes on in another way
		if err := w.end(sp.what, resource, other, sp.from); err != nil {
			return err
		}
	}
	if !x.Valid.To.IsZero() {
		return w.closed(sp, x.Valid.To.at)
	}
	return w.opened(sp, resource, other)
}

// node takes a node's new version in.
func (w *writer) node(e *Event, n Node, pos uint64, i int) error {
	num, fresh, err := w.intern(nameKey(n.Ref()))
	if err != nil {
		return err
	}
	if n.Type.fixed() && !fresh {
		known, err := w.version(num, ^uint64(0))
		if err != nil {
			return err
		}
		if known != nil {
			return nil // the same: see checkNodes
		}
	}
	if err := stated.Put(w, record.Seq(num).Seq(pos), record.Key(nil).Short(uint16(i))); err != nil {
		return err
	}
	if n.Type == TypeResource {
		if n.Body.(*Resource).Scope != nil {
			if err := w.endOthers(relationCode(OwnsResource), num, n.Valid.start(e.TS), pos); err != nil {
				return err
			}
		}
		return w.exists(n.Ref(), num, e.TS, n.Valid, pos, i)
	}
	return nil
}

// checkNodes: what some nodes are does not change.
func (w *writer) checkNodes(e *Event, f *problems) error {
	for i, n := range e.Nodes {
		if !n.Type.fixed() {
			continue
		}
		num, _, err := w.num(nameKey(n.Ref()))
		if err != nil {
			return err
		}
		if num == 0 {
			continue
		}
		known, err := w.version(num, ^uint64(0))
		if err != nil {
			return err
		}
		if known != nil && !sameNode(known.Node, n) {
			f.add(fmt.Sprintf("nodes[%d].id", i), "%s is stated otherwise by event %s, and does not change", n.Ref(), known.EventID)
		}
	}
	return nil
}

func sameNode(a, b Node) bool {
	x, errX := core.Digest(a)
	y, errY := core.Digest(b)
	return errX == nil && errY == nil && x == y
}

// mention notes that resources exist which an event names without stating them.
func (w *writer) mention(e *Event, pos uint64) error {
	var ids []string
	switch b := e.Body.(type) {
	case *SnapshotCreated:
		ids = append(ids, b.ResourceRef)
	case *ResourceAttached:
		ids = append(ids, b.ResourceRef)
	case *LivenessProbe:
		ids = append(ids, b.ResourceRef)
		if err := w.probe(e, b.ResourceRef, pos); err != nil {
			return err
		}
	case *RestoreAttempted:
		ids = append(ids, b.NewResourceRef)
	case *MCPResourceUpdated:
		ids = append(ids, MCPResourceID(b.Server, b.URI))
	}
	for _, id := range ids {
		if id == "" {
			continue
		}
		ref := NodeRef{TypeResource, id}
		num, _, err := w.intern(nameKey(ref))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(e.Nodes, func(n Node) bool { return n.Ref() == ref }) {
			continue // stated, which says more
		}
		open, err := w.isOpen(spanExists, num, 0)
		if err != nil || open {
			return err
		}
		if err := w.exists(ref, num, e.TS, Valid{}, pos, len(e.Nodes)); err != nil {
			return err
		}
	}
	return nil
}

// probe notes when a resource was probed.
func (w *writer) probe(e *Event, id string, pos uint64) error {
	num, _, err := w.intern(nameKey(NodeRef{TypeResource, id}))
	if err != nil {
		return err
	}
	return probes.Put(w, record.Seq(num).Seq(micros(e.TS.at)).Seq(pos), struct{}{})
}

// exists notes the time over which a resource is there, by the place of its node in
// the event.
func (w *writer) exists(ref NodeRef, num uint64, ts Time, v Valid, pos uint64, i int) error {
	open, err := w.isOpen(spanExists, num, 0)
	if err != nil {
		return err
	}
	s := span{what: spanExists, from: v.start(ts), pos: pos, i: i, id: ref.ID}
	switch {
	case !v.To.IsZero():
		if !open {
			return w.closed(s, v.To.at)
		}
		return w.end(spanExists, num, 0, v.To.at)
	case open:
		return nil
	}
	return w.opened(s, num, 0)
}

// detach ends what the same holder has of a resource.
func (w *writer) detach(e *Event, b *ResourceDetached, pos uint64) error {
	resource, _, err := w.num(nameKey(NodeRef{TypeResource, b.ResourceRef}))
	if err != nil || resource == 0 {
		return err
	}
	holder, _, err := w.num(nameKey((&deriver{e: e}).holder()))
	if err != nil || holder == 0 {
		return err
	}
	if e.RunID == "" {
		return w.end(spanHeld, resource, holder, e.TS.at)
	}
	if err := w.end(relationCode(AttachedTo), resource, holder, e.TS.at); err != nil {
		return err
	}
	return w.end(relationCode(MountsResource), resource, holder, e.TS.at)
}

// start is when something begins to hold that an event of a time states.
func (v Valid) start(ts Time) time.Time {
	if v.From.IsZero() {
		return ts.at
	}
	return v.From.at
}

func relationCode(t EdgeType) byte {
	return byte(slices.IndexFunc(relations(), func(r relation) bool { return r.typ == t }))
}
