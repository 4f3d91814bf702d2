package dag

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// What the record keeps of a tenant. pos is an event's place in the record; num
// is a node's number, given in the order in which nodes were first named; i is a
// place within an event's edges or nodes; n counts the entries of one list from
// 1, so that any page of it is found by its number. Keys begin with what grows,
// so that the newest stand together: a record of millions of events is written
// at its edges. Values are keys, too, but for JSON and the events. told is how many
// entries of a list up to one are no bookkeeping.
const (
	stored     record.Rows[[]byte]   = "dag.event"   // pos → recorded at, seq, num of its stream, canonical JSON
	edgesOf    record.Rows[[]Edge]   = "dag.edge"    // pos → the event's edges but RUN_HAS_EVENT
	names      record.Rows[[]byte]   = "dag.name"    // type, id → num, and of an event that is here its pos
	heads      record.Rows[head]     = "dag.head"    // num of a stream
	marks      record.Rows[RunState] = "dag.mark"    // num of a stream, seq: as of that seq
	streams    record.Rows[[]byte]   = "dag.stream"  // num of a stream, seq → pos, kind, told
	subjects   record.Rows[[]byte]   = "dag.subject" // num of an agent, task or session, n → pos, num of the stream, told
	kinds      record.Rows[[]byte]   = "dag.kind"    // kind, n → pos
	callIDs    record.Rows[[]byte]   = "dag.call"    // num of a stream, call id (0 and correlation id of a request), pos → kind
	runCalls   record.Rows[[]byte]   = "dag.calls"   // num of a stream, n → pos of a tool call
	correlated record.Rows[[]byte]   = "dag.corr"    // correlation id, n → pos
	outEdges   record.Rows[struct{}] = "dag.out"     // num, edge type, pos, i; edges from a node
	inEdges    record.Rows[struct{}] = "dag.in"      // num, edge type, pos, i; edges to a node
	stated     record.Rows[[]byte]   = "dag.node"    // num, pos → i; the versions of a node
	policies   record.Rows[[]byte]   = "dag.policy"  // active or past, n → pos
	forks      record.Rows[[]byte]   = "dag.fork"    // n → pos; events that tell where an agent comes from
	probes     record.Rows[struct{}] = "dag.probe"   // num of a resource, time, pos
	openSpans  record.Rows[[]byte]   = "dag.open"    // what, from, pos, i → id; what holds until it is ended
	holds      record.Rows[[]byte]   = "dag.hold"    // what, num, num, from, pos, i → id; the same by its ends
	ends       record.Rows[uint64]   = "dag.end"     // pos, i → when an edge ended
	lows       record.Rows[[]byte]   = "dag.low"     // what, fork of an ended time, from, pos, i → end, id
	highs      record.Rows[[]byte]   = "dag.high"    // the same with the end in place of from, newest first → from, id
)

// Lists of policies.
const (
	active byte = 'a' // that were activated
	past   byte = 'h' // activated, or stated
)

// Counters of a tenant.
const (
	countEvents = "dag"
	countNames  = "dag.names"
	countEdges  = "dag.edges"
	countRuns   = "dag.runs"
	countBlocks = "dag.blocks" // that have columns
)

// Names that are no nodes of the model: streams of no agent, tasks, sessions.
const (
	nameTenant  byte = 0xfd
	nameTask    byte = 0xfe
	nameSession byte = 0xff
)

// last is the number of entries of a list.
func (r reader) last(rows record.Rows[[]byte], under record.Key) (uint64, error) {
	n, _, err := tip(r, rows, under)
	return n, err
}

// tip is the newest entry of a list and its number; 0 and nil of an empty one.
func tip(r reader, rows record.Rows[[]byte], under record.Key) (n uint64, value []byte, err error) {
	err = rows.Within(r, under, nil, nil, true, func(rest record.Parts, found record.Found[[]byte]) (bool, error) {
		n, value = rest.Seq(), found.Data
		return false, nil
	})
	return n, value, err
}

// micros is a time as keys have it.
func micros(t time.Time) uint64 { return uint64(max(0, t.UnixMicro())) }

// nameKey is a node's key in names. All types that stand for events are one.
func nameKey(ref NodeRef) record.Key {
	if ref.Type.ofEvent() {
		raw, _ := hex.DecodeString(ref.ID) // its form was checked
		return rawNameKey(typeCode(TypeEvent), string(raw))
	}
	return rawNameKey(typeCode(ref.Type), ref.ID)
}

func rawNameKey(class byte, id string) record.Key {
	return make(record.Key, 0, 1+len(id)).Byte(class).Last(id)
}

// reader reads the record in one transaction.
type reader struct{ store.Tx }

// num finds a node's number; 0 when nothing names it.
func (r reader) num(k record.Key) (num, pos uint64, err error) {
	v, err := names.Data(r, k)
	at := record.Parts(v)
	return at.Seq(), at.Seq(), err
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
	return append(make(record.Key, 0, recordHead+len(e.raw)).Seq(micros(at)).Seq(seq).Seq(stream), e.raw...)
}

// row is a stored event that is not decoded yet. Its bytes are the store's.
type row struct {
	pos, seq, stream uint64
	at               time.Time
	raw              core.Raw
	unread           error // why it can't be read
}

// damaged says that an event can't be read.
func damaged(pos uint64, err error) error {
	return &core.Damaged{Noun: "event", Key: fmt.Sprint("number ", pos), Err: err}
}

func (r reader) row(pos uint64) (row, error) {
	v, err := stored.Data(r, record.Seq(pos))
	switch {
	case len(core.DamagedIn(err)) > 0:
		return row{}, damaged(pos, err)
	case err != nil:
		return row{}, fmt.Errorf("read event %d: %w", pos, err)
	}
	return asRow(pos, v)
}

func asRow(pos uint64, v []byte) (row, error) {
	if len(v) < recordHead {
		return row{}, damaged(pos, errors.New("it is missing, or cut short; run store check"))
	}
	head := record.Parts(v)
	return row{pos: pos, at: head.Time(), seq: head.Seq(), stream: head.Seq(), raw: v[recordHead:]}, nil
}

// recorded decodes a row. What is stored was checked when it came in.
func (w row) recorded() (Recorded, error) {
	if w.unread != nil {
		return Recorded{}, w.unread
	}
	e := Event{raw: bytes.Clone(w.raw)}
	err := core.DecodeStored(e.raw, &e.Head)
	if err == nil {
		if e.Body = newBody(e.Kind); e.Body == nil {
			err = core.Errorf(core.Internal, "its kind is %q", core.Clip(string(e.Kind)))
		} else {
			err = core.DecodeStored(e.raw, e.Body) // each takes what is its own
		}
	}
	if err != nil {
		return Recorded{}, damaged(w.pos, err)
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
	v, err := streams.Data(r, record.Seq(w.stream).Seq(w.seq))
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
	all, _, err := edgesOf.Get(r, record.Seq(pos))
	if len(core.DamagedIn(err)) > 0 {
		err = damaged(pos, fmt.Errorf("its edges: %w", err))
	}
	return all, err
}
