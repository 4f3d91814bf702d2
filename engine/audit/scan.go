package audit

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// head is what a scan can filter on without decoding an event. Its slices
// point into the stored bytes.
type head struct {
	tenant, trace, id, typ, at []byte
	seq                        uint64
	actor                      []byte
	prev, told                 uint64
	routine                    bool
	payload                    []byte // the JSON object
	subject, subjectID         []byte
	after                      []byte // what follows the id in the payload
}

// parseHead reads an event in the exact shape that appendEvent writes. It
// reports false for any other shape, and for escaped strings: those few go
// through the JSON decoder.
func parseHead(data []byte) (h head, ok bool) {
	s := scanner{rest: data, ok: true}
	h.tenant = s.text(`{"tenant_id":"`)
	h.trace = s.text(`,"trace_id":"`)
	h.id = s.text(`,"event_id":"`)
	h.typ = s.text(`,"event_type":"`)
	h.at = s.text(`,"created_at":"`)
	h.seq = s.number(`,"seq":`)
	h.actor = s.text(`,"actor":"`)
	s.text(`,"actor_kind":"`)
	s.text(`,"door":"`)
	if s.ok && bytes.HasPrefix(s.rest, []byte(`,"prev":`)) {
		h.prev = s.number(`,"prev":`)
	}
	h.told = s.number(`,"told":`)
	if s.rest, h.routine = bytes.CutPrefix(s.rest, []byte(`,"routine":true`)); !s.ok {
		return h, false
	}
	s.literal(`,"payload":`)
	if s.ok && len(s.rest) > 0 {
		h.payload = s.rest[:len(s.rest)-1]
	}
	h.subject = s.text(`{"subject":"`)
	h.subjectID = s.text(`,"id":"`)
	h.after = s.rest
	return h, s.ok
}

// state is the payload's state, nil when it has none.
func (h *head) state() ([]byte, error) {
	if rest, ok := bytes.CutPrefix(h.after, []byte(`,"state":`)); ok {
		if n := objectLen(rest); n > 0 {
			return rest[:n], nil
		}
	}
	var p Payload
	if err := core.DecodeStored(h.payload, &p); err != nil {
		return nil, fmt.Errorf("event %d: %w", h.seq, err)
	}
	return p.State, nil
}

// objectLen is the length of the JSON object that b begins with, 0 when it
// begins with anything else. b is part of valid JSON.
func objectLen(b []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth <= 0 {
				return i + 1
			}
		}
		if depth == 0 {
			return 0
		}
	}
	return 0
}

// headOf is parseHead, or the JSON decoder where that does not do.
func headOf(data []byte) (head, error) {
	if h, ok := parseHead(data); ok {
		return h, nil
	}
	e, err := decode(data)
	if err != nil {
		return head{}, err
	}
	p, err := e.Data()
	if err != nil {
		return head{}, err
	}
	at, err := e.CreatedAt.MarshalText()
	return head{
		tenant: []byte(e.TenantID), trace: []byte(e.TraceID), id: []byte(e.EventID), typ: []byte(e.EventType), at: at,
		seq: e.Seq, actor: []byte(e.Actor), prev: e.Prev, told: e.Told, routine: e.Routine, payload: e.Payload, subject: []byte(p.Subject), subjectID: []byte(p.ID),
	}, err
}

type scanner struct {
	rest []byte
	ok   bool
}

func (s *scanner) literal(want string) {
	if !s.ok || len(s.rest) < len(want) || string(s.rest[:len(want)]) != want {
		s.ok = false
		return
	}
	s.rest = s.rest[len(want):]
}

func (s *scanner) text(before string) []byte {
	if s.literal(before); !s.ok {
		return nil
	}
	end := bytes.IndexByte(s.rest, '"')
	if end < 0 || bytes.IndexByte(s.rest[:end], '\\') >= 0 {
		s.ok = false
		return nil
	}
	text := s.rest[:end]
	s.rest = s.rest[end+1:]
	return text
}

func (s *scanner) number(before string) uint64 {
	s.literal(before)
	var n uint64
	digits := 0
	for s.ok && digits < len(s.rest) && s.rest[digits] >= '0' && s.rest[digits] <= '9' {
		n = n*10 + uint64(s.rest[digits]-'0')
		digits++
	}
	if !s.ok || digits == 0 || digits > 19 {
		s.ok = false
		return 0
	}
	s.rest = s.rest[digits:]
	return n
}

// Routine says of a type of events that they keep books: they prove rows, or tell of a
// step that another event tells of as it is done. Lists leave them out unless they are
// asked for. What it says is stored with each event.
func Routine(eventType string) bool {
	switch eventType {
	case rowsEvent, "dag.finished", "worker.consumed", "task.sent", "agent.busy", "agent.released", "agent.process", "agent.offers",
		"resource.state", "egress.used", "rule.used", "message.read", "cad.messages.read":
		return true
	}
	return false
}

// told takes a page out of the events lo to hi that are told. Each is looked for by its
// number among them, which the events have: how many there are between two is any number.
func told(tx store.Tx, f core.Filter, lo, hi uint64) (page core.Page[Event], err error) {
	if lo > hi {
		return core.NewPage[Event](nil, f, 0), nil
	}
	first, err := headAt(tx, lo)
	if err != nil {
		return page, err
	}
	last, err := headAt(tx, hi)
	if err != nil {
		return page, err
	}
	before := first.told
	if !first.routine {
		before--
	}
	total := int(last.told - min(before, last.told))
	items := make([]Event, 0, min(f.Size, total))
	for n := f.Offset(); n < total && len(items) < f.Size; n++ {
		want := last.told - uint64(n)
		at := lo + uint64(sort.Search(int(hi-lo), func(i int) bool {
			h, bad := headAt(tx, lo+uint64(i))
			if bad != nil {
				err = bad
			}
			return bad != nil || h.told >= want
		}))
		if err != nil {
			return page, err
		}
		e, err := get(tx, at)
		if err != nil {
			return page, err
		}
		items, hi = append(items, e), max(at-1, lo)
	}
	return core.NewPage(slices.Clip(items), f, total), nil
}

// headAt is the head of one event, without what follows.
func headAt(tx store.Tx, seq uint64) (head, error) {
	data, err := tx.Get(Events, key(seq))
	if err != nil {
		return head{}, fmt.Errorf("event %d: %w", seq, err)
	}
	if data == nil {
		return head{}, core.Errorf(core.Internal, "event %d is missing from the log; run audit verify", seq)
	}
	h, err := headOf(data)
	if err != nil {
		return head{}, fmt.Errorf("event %d: %w", seq, err)
	}
	return h, nil
}
