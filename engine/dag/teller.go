package dag

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// maxTold is how many edges a walk remembers the places of.
const maxTold = 1 << 20

// teller reads single edges of events. It remembers where each edge of an event
// stands, so that one of thousands costs as much as one of few: an event is
// looked through once, not for each of its edges.
type teller struct {
	known map[uint64]*told // by pos
	edges int              // of all of them
}

// told is an event that tells of edges.
type told struct {
	id   string
	ts   Time
	raw  []byte // its edges as they are stored; the store's
	ends []int  // where each of them ends in raw
}

// edge is one of those that an event tells of.
func (t *teller) edge(r reader, pos uint64, i int) (Edge, *told, error) {
	e := t.known[pos]
	if e == nil {
		var err error
		if e, err = r.told(pos); err != nil {
			return Edge{}, nil, fmt.Errorf("look through the edges of event %d: %w", pos, err)
		}
		if t.edges += len(e.ends); t.known == nil || t.edges > maxTold {
			t.known, t.edges = map[uint64]*told{}, len(e.ends)
		}
		t.known[pos] = e
	}
	if i >= len(e.ends) {
		return Edge{}, nil, core.Errorf(core.Internal, "event %d has no edge %d", pos, i)
	}
	from := 0
	if i > 0 {
		from = e.ends[i-1]
	}
	var x Edge
	if err := core.DecodeStored(bytes.TrimLeft(e.raw[from:e.ends[i]], "[,"), &x); err != nil {
		return x, nil, fmt.Errorf("decode edge %d of event %d: %w", i, pos, err)
	}
	return x, e, nil
}

// told looks through an event.
func (r reader) told(pos uint64) (*told, error) {
	w, err := r.row(pos)
	if err != nil {
		return nil, err
	}
	e, err := w.folded()
	if err != nil {
		return nil, err
	}
	t := &told{id: e.EventID, ts: e.TS}
	if t.raw, err = edgesOf.Data(r, record.Seq(pos)); err != nil || t.raw == nil {
		return t, err
	}
	dec := jsontext.NewDecoder(bytes.NewReader(t.raw))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	for dec.PeekKind() == '{' {
		if err := dec.SkipValue(); err != nil {
			return nil, err
		}
		t.ends = append(t.ends, int(dec.InputOffset()))
	}
	return t, nil
}
