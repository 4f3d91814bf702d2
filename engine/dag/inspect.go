package dag

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"swarmdeck/engine/core"
)

// inspector looks at an import before any of it is taken in.
type inspector struct {
	d       *DAG
	ctx     context.Context
	tenant  string
	tally   Tally
	pos     uint64
	newest  string // the event that was looked at last
	streams map[string]*lane
	calls   map[[32]byte]string // newest tool_call by stream and call id, model_request by stream and correlation
}

// lane is one stream of an import.
type lane struct {
	seq  uint64 // of its newest event there
	here uint64 // events that it has here
}

// inspect looks at the next event.
func (c *inspector) inspect(rec Record) error {
	e := &rec.Event
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if rec.Pos <= c.pos {
		return tampered(e.EventID, "its pos %d comes after %d", rec.Pos, c.pos)
	}
	c.pos = rec.Pos
	c.tally.Add(*e)
	c.newest = e.EventID
	l, name, err := c.lane(e)
	if err != nil {
		return err
	}
	if rec.Seq != l.seq+1 {
		return tampered(e.EventID, "is number %d of %s where %d is next: an event is missing, or was added", rec.Seq, name, l.seq+1)
	}
	l.seq++
	want := derive(e, c.surroundings(e, name, rec.Seq))
	if !sameEdges(want, rec.Edges) {
		return tampered(e.EventID, "its edges are not those that follow from it: they were changed")
	}
	if l.seq > l.here {
		return nil
	}
	return c.d.view(c.ctx, c.tenant, "compare the records", func(r reader) error {
		_, pos, err := r.place(e.EventID)
		if err != nil {
			return err
		}
		if pos == 0 {
			return core.Errorf(core.Conflict, "event %s: is number %d of %s there, but another event is here: the two records went different ways", e.EventID, rec.Seq, name).
				With("field", "seq").With("event_id", e.EventID)
		}
		w, err := r.row(pos)
		if err == nil && w.seq != rec.Seq {
			err = elsewhere(rec, w.seq)
		}
		return err
	})
}

func (c *inspector) lane(e *Event) (*lane, string, error) {
	k, name := streamOf(e)
	if l := c.streams[name]; l != nil {
		return l, name, nil
	}
	l := &lane{}
	c.streams[name] = l
	return l, name, c.d.view(c.ctx, c.tenant, "compare the records", func(r reader) error {
		num, _, err := r.num(k)
		if err != nil || num == 0 {
			return err
		}
		h, err := r.head(num)
		l.here = h.Events
		return err
	})
}

// surroundings are what the writer will find, as far as edges go by it.
func (c *inspector) surroundings(e *Event, stream string, seq uint64) surroundings {
	at := surroundings{seq: seq}
	name := func(kind, id string) [32]byte { return sha256.Sum256([]byte(stream + "\x00" + kind + "\x00" + id)) }
	switch b := e.Body.(type) {
	case *ToolCall:
		c.calls[name("call", b.CallID)] = e.EventID
	case *ToolResult:
		at.call = c.calls[name("call", b.CallID)]
	case *ModelRequest:
		c.calls[name("request", e.CorrelationID)] = e.EventID
	case *ModelResponse:
		if at.request = b.RequestID; !IsEventID(at.request) {
			at.request = c.calls[name("request", e.CorrelationID)]
		}
	}
	return at
}

// sameEdges compares edges whatever their order.
func sameEdges(a, b []Edge) bool {
	if len(a) != len(b) {
		return false
	}
	count := make(map[Edge]int, len(a))
	for _, e := range a {
		count[e.plain()]++
	}
	for _, e := range b {
		count[e.plain()]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// plain is an edge whose times compare by what they say.
func (e Edge) plain() Edge {
	for _, t := range []*Time{&e.Valid.From, &e.Valid.To} {
		if !t.IsZero() {
			t.at = t.at.UTC()
		}
	}
	return e
}

// near names the event that comes before what an error is about, when it names
// none: what was cut off or is garbage has no id of its own.
func (c *inspector) near(err error) error {
	var refused *core.Error
	if !errors.As(err, &refused) || refused.Code != core.InvalidInput || c.newest == "" || refused.Details["event_id"] != nil {
		return err
	}
	return core.Errorf(core.InvalidInput, "%s; the last event before that is %s", err, c.newest).
		With("field", cmp.Or(fmt.Sprint(refused.Details["field"]), "file")).With("event_id", c.newest)
}

// settle looks at what can be known only at the end.
func (c *inspector) settle(m Manifest) error {
	if err := m.Check(); err != nil {
		return err
	}
	if got := c.tally.Manifest(); got != m {
		return core.Errorf(core.InvalidInput, "manifest: tells of %d events, and %d are there in all; one was cut off, added or moved", m.Events, got.Events).With("field", "manifest")
	}
	return nil
}
