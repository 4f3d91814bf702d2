package dag

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Buckets of a tenant. Numbers are big-endian. pos is an event's place in the
// record; num is a node's number, given in the order in which nodes were first
// named; i is a place within an event's edges or nodes; n counts the entries
// of one list from 1, so that any page of it is found by its number. Keys begin with what
// grows, so that the newest stand together: a record of millions of events is
// written at its edges.
const (
	bEvent   store.Bucket = "dag.event"   // pos → recorded at, seq, num of its stream, canonical JSON
	bEdge    store.Bucket = "dag.edge"    // pos → the event's edges but RUN_HAS_EVENT, JSON
	bName    store.Bucket = "dag.name"    // type, id → num, and of an event that is here its pos
	bHead    store.Bucket = "dag.head"    // num of a stream → head
	bMark    store.Bucket = "dag.mark"    // num of a stream, seq → head as of that seq
	bStream  store.Bucket = "dag.stream"  // num of a stream, seq → pos
	bSubject store.Bucket = "dag.subject" // num of an agent, task or session, n → pos, num of the stream
	bKind    store.Bucket = "dag.kind"    // kind, n → pos
	bCall    store.Bucket = "dag.call"    // num of a stream, call id (0 and correlation id of a request), 0, pos → kind
	bCalls   store.Bucket = "dag.calls"   // num of a stream, n → pos of a tool call
	bCorr    store.Bucket = "dag.corr"    // correlation id, 0, n → pos
	bOut     store.Bucket = "dag.out"     // num, edge type, pos, i → nothing; edges from a node
	bIn      store.Bucket = "dag.in"      // num, edge type, pos, i → nothing; edges to a node
	bNode    store.Bucket = "dag.node"    // num, pos → i; the versions of a node
	bPolicy  store.Bucket = "dag.policy"  // 'a' for active or 'h' for history, n → pos
	bFork    store.Bucket = "dag.fork"    // n → pos; events that tell where an agent comes from
	bProbe   store.Bucket = "dag.probe"   // num of a resource, time, pos → nothing
	bOpen    store.Bucket = "dag.open"    // what, from, pos, i → id; what holds until it is ended
	bHold    store.Bucket = "dag.hold"    // what, num, num, from, pos, i → nothing; the same by its ends
	bEnd     store.Bucket = "dag.end"     // pos, i → when an edge ended
	bLow     store.Bucket = "dag.low"     // what, fork of an ended time, from, pos, i → id
	bHigh    store.Bucket = "dag.high"    // the same with the end in place of from, newest first
)

// Counters of a tenant.
const (
	countEvents = "dag"
	countNames  = "dag.names"
	countEdges  = "dag.edges"
	countRuns   = "dag.runs"
)

// Names that are no nodes of the seed: streams of no agent, tasks, sessions.
const (
	nameTenant  byte = 0xfd
	nameTask    byte = 0xfe
	nameSession byte = 0xff
)

// last is the number of entries of a list with that prefix.
func (r reader) last(b store.Bucket, prefix []byte) (n uint64, err error) {
	err = r.scan(b, prefix, nil, nil, true, func(rest, _ []byte) (bool, error) {
		n = get64(rest)
		return false, nil
	})
	return n, err
}

// put64 appends a number.
func put64(b []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(b, n) }

func get64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// key joins numbers.
func key(nums ...uint64) []byte {
	b := make([]byte, 0, 8*len(nums)+4)
	for _, n := range nums {
		b = put64(b, n)
	}
	return b
}

// textKey is a text, a zero byte that no text has, and a number.
func textKey(before []byte, text string, n uint64) []byte {
	b := append(make([]byte, 0, len(before)+len(text)+9), before...)
	return put64(append(append(b, text...), 0), n)
}

// micros is a time as keys have it.
func micros(t time.Time) uint64 { return uint64(max(0, t.UnixMicro())) }

// nameKey is a node's key in bName. All types that stand for events are one.
func nameKey(ref NodeRef) []byte {
	if ref.Type.ofEvent() {
		k := make([]byte, 1, 33)
		k[0] = typeCode(TypeEvent)
		raw, _ := hex.DecodeString(ref.ID) // its form was checked
		return append(k, raw...)
	}
	return rawNameKey(typeCode(ref.Type), ref.ID)
}

func rawNameKey(class byte, id string) []byte {
	return append(append(make([]byte, 0, 1+len(id)), class), id...)
}

// reader reads the record in one transaction.
type reader struct{ store.Tx }

// num finds a node's number; 0 when nothing names it.
func (r reader) num(k []byte) (num, pos uint64, err error) {
	v, err := r.Get(bName, k)
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("find a node: %w", err)
	case len(v) == 8:
		return get64(v), 0, nil
	case len(v) == 16:
		return get64(v), get64(v[8:]), nil
	}
	return 0, 0, nil
}

// place finds an event by its id: its num, 0 when nothing names it, and its
// pos, 0 when it is not here.
func (r reader) place(id string) (num, pos uint64, err error) {
	if !IsEventID(id) {
		return 0, 0, core.Invalid("event_id", id, "an event's id, 64 lower-case hex digits")
	}
	return r.num(nameKey(NodeRef{TypeEvent, id}))
}

// recordHead is what stands before the JSON of a stored event.
const recordHead = 24

func encodeRecord(at time.Time, seq, stream uint64, e *Event) []byte {
	b := make([]byte, 0, recordHead+len(e.raw))
	return append(put64(put64(put64(b, micros(at)), seq), stream), e.raw...)
}

// row is a stored event that is not decoded yet. Its bytes are the store's.
type row struct {
	pos, seq, stream uint64
	at               time.Time
	raw              core.Raw
}

func (r reader) row(pos uint64) (row, error) {
	v, err := r.Get(bEvent, key(pos))
	if err != nil {
		return row{}, fmt.Errorf("read event %d: %w", pos, err)
	}
	return asRow(pos, v)
}

func asRow(pos uint64, v []byte) (row, error) {
	if len(v) < recordHead {
		return row{}, core.Errorf(core.Internal, "event %d of the record is missing; run store check", pos)
	}
	return row{
		pos: pos, at: time.UnixMicro(int64(get64(v))).UTC(), seq: get64(v[8:]), stream: get64(v[16:]),
		raw: v[recordHead:],
	}, nil
}

// recorded decodes a row. What is stored was checked when it came in.
func (w row) recorded() (Recorded, error) {
	e := Event{raw: bytes.Clone(w.raw)}
	err := core.DecodeStored(e.raw, &e.Head)
	if err == nil {
		if e.Body = newBody(e.Kind); e.Body == nil {
			err = core.Errorf(core.Internal, "its kind is %q", shorten(string(e.Kind)))
		} else {
			err = core.DecodeStored(e.raw, e.Body) // each takes what is its own
		}
	}
	if err != nil {
		return Recorded{}, fmt.Errorf("decode event %d: %w", w.pos, err)
	}
	e.identify()
	return Recorded{Pos: w.pos, Seq: w.seq, RecordedAt: At(w.at), Event: e}, nil
}

// event reads one event.
func (r reader) event(pos uint64) (Recorded, error) {
	w, err := r.row(pos)
	if err != nil {
		return Recorded{}, err
	}
	return w.recorded()
}

// kind is the code of an event's kind, without a look into it.
func (r reader) kind(pos uint64) (byte, error) {
	w, err := r.row(pos)
	if err != nil {
		return 0, err
	}
	v, err := r.Get(bStream, key(w.stream, w.seq))
	if err == nil && len(v) < 9 {
		err = core.Errorf(core.Internal, "event %d of the record is in no stream; run store check", pos)
	}
	if err != nil {
		return 0, err
	}
	return v[8], nil
}

// edges reads an event's edges, but RUN_HAS_EVENT.
func (r reader) edges(pos uint64) ([]Edge, error) {
	v, err := r.Get(bEdge, key(pos))
	if err != nil || v == nil {
		return nil, err
	}
	var all []Edge
	if err := core.DecodeStored(v, &all); err != nil {
		return nil, fmt.Errorf("decode the edges of event %d: %w", pos, err)
	}
	return all, nil
}

// scan calls fn for the keys that begin with prefix and are in [from, to) after
// it; nil bounds nothing.
func (r reader) scan(b store.Bucket, prefix, from, to []byte, reverse bool, fn func(rest, value []byte) (bool, error)) error {
	lo := append(bytes.Clone(prefix), from...)
	hi := append(bytes.Clone(prefix), to...)
	if to == nil {
		hi = after(prefix)
	}
	var bad error
	err := r.Scan(b, lo, hi, reverse, func(k, v []byte) bool {
		var more bool
		more, bad = fn(k[len(prefix):], v)
		return more && bad == nil
	})
	return errors.Join(err, bad)
}

// after is the first key that does not begin with prefix; nil when there is
// none.
func after(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
