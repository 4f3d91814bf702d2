package dag

import (
	"cmp"
	"encoding/binary"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// A search goes by blocks of the record: of each that is full there is a row with
// what its events can be narrowed by, so that a million events are a few thousand
// rows, and one with the pieces of text that are in it. They are written with
// the event that fills the block. Events of blocks without them, the newest and
// those of a record that an earlier version wrote, are looked at themselves.

// blockEvents is how many events a block has.
const blockEvents = 256

const (
	columns record.Rows[[]byte] = "dag.columns" // block → columnWidth bytes for each event: ts, kind, status
	returns record.Rows[[]byte] = "dag.returns" // block → a byte for each event: what came of a tool call
	pieces  record.Rows[[]byte] = "dag.pieces"  // block → bits of the pieces of its events' JSON
)

const columnWidth = 10

// blockOf is the block of an event, and its place there.
func blockOf(pos uint64) (block uint64, i int) {
	return (pos - 1) / blockEvents, int((pos - 1) % blockEvents)
}

// Codes of a status in columns and returns.
const (
	statusNone byte = iota
	statusOther
	statusFirst // of statusWords
)

// statusWords have codes by their places: new ones come at the end.
func statusWords() []string {
	return []string{
		"ok", "error", "timeout", "canceled", "interrupted", callOpen, callReplaced,
		string(OutcomeUnsupported), string(LiveUnknown), string(Alive), string(Dead), "success",
	}
}

func statusCode(status string) byte {
	if status == "" {
		return statusNone
	}
	if i := slices.Index(statusWords(), status); i >= 0 {
		return statusFirst + byte(i)
	}
	return statusOther
}

// column is what one event of a block can be narrowed by.
type column []byte

func (c column) micros() uint64 { return binary.BigEndian.Uint64(c) }
func (c column) kind() byte     { return c[8] }
func (c column) status() byte   { return c[9] }

// skimmed is what columns have of an event: read in one pass, without its content.
type skimmed struct {
	Kind    Kind   `json:"kind"`
	TS      Time   `json:"ts"`
	Status  string `json:"status"`
	Outcome string `json:"outcome"`
	Exit    string `json:"exit"`
	CallID  string `json:"call_id"`
}

func (w row) skim() (s skimmed, err error) {
	if err = core.DecodeStored(w.raw, &s); err != nil {
		return s, damaged(w.pos, err)
	}
	return s, nil
}

// told is the status of an event, as status has it of a decoded one: no kind has more
// than one of them.
func (s *skimmed) told() string { return cmp.Or(s.Status, s.Outcome, s.Exit) }

// block is what the rows of a full block say.
type block struct{ columns, returns, pieces []byte }

// maxPieced is how many bytes of JSON a block has pieces of; one with more has
// none, and is looked through.
const maxPieced = 16 << 20

// readBlock makes the rows of a block out of its events.
func (r reader) readBlock(n uint64) (b block, err error) {
	b.columns = make([]byte, 0, blockEvents*columnWidth)
	b.returns = make([]byte, blockEvents)
	var text gatherer
	size := 0
	for i := range blockEvents {
		w, err := r.row(n*blockEvents + uint64(i) + 1)
		if err != nil {
			return b, err
		}
		s, err := w.skim()
		if err != nil {
			return b, err
		}
		b.columns = append(record.Key(b.columns).Seq(micros(s.TS.at)), s.Kind.code(), statusCode(s.told()))
		if s.Kind == KindToolCall {
			came, err := r.cameOf(w, s.CallID)
			if err != nil {
				return b, err
			}
			b.returns[i] = statusCode(came)
		}
		if size += len(w.raw); size <= maxPieced {
			text.add(w.raw)
		}
	}
	if b.pieces = text.bits(); size > maxPieced {
		b.pieces = nil
	}
	return b, nil
}

// cameOf is the status of a tool call, as Call has it.
func (r reader) cameOf(call row, id string) (string, error) {
	result, without, err := r.resultOf(call.stream, call.pos, id)
	if err != nil || result == 0 {
		return without, err
	}
	w, err := r.row(result)
	if err != nil {
		return "", err
	}
	s, err := w.skim()
	return s.Status, err
}

// blocksAtOnce bounds what one transaction adds beside what it fills, to a record
// that has events without columns.
const blocksAtOnce = 2

// fillBlocks writes the rows of blocks that are full and have none. They are empty
// for one with an event that can't be read: it is looked through.
func (w *writer) fillBlocks() error {
	next := uint64(w.Counter(countBlocks))
	full := uint64(w.Counter(countEvents)) / blockEvents
	for end := min(full, next+blocksAtOnce+w.fresh/blockEvents); next < end; next++ {
		b, err := w.readBlock(next)
		if len(core.DamagedIn(err)) > 0 {
			b, err = block{}, nil
		}
		if err != nil {
			return err
		}
		for _, of := range b.rows() {
			if err := of.rows.Put(w.tx.Derived(), record.Seq(next), of.data); err != nil {
				return err
			}
		}
		w.tx.Add(countBlocks, 1)
	}
	return nil
}

// blockRow is one of the rows of a block.
type blockRow struct {
	rows record.Rows[[]byte]
	data []byte
}

func (b *block) rows() []blockRow {
	return []blockRow{{columns, b.columns}, {returns, b.returns}, {pieces, b.pieces}}
}

// came notes what came of a call whose block is full already.
func (w *writer) came(call uint64, status string) error {
	return w.setReturned(call, func(byte) byte { return statusCode(status) })
}

// replaced notes that a call without a result is followed by one of its id.
func (w *writer) replaced(call uint64) error {
	return w.setReturned(call, func(now byte) byte {
		if now == statusCode(callOpen) {
			return statusCode(callReplaced)
		}
		return now
	})
}

func (w *writer) setReturned(call uint64, status func(now byte) byte) error {
	n, i := blockOf(call)
	now, err := returns.Data(w, record.Seq(n))
	if err != nil || len(now) != blockEvents || status(now[i]) == now[i] {
		return err
	}
	next := append(w.tx.Alloc(blockEvents), now...)
	next[i] = status(now[i])
	return returns.Put(w.tx.Derived(), record.Seq(n), next)
}

// blocks has reconcile make the rows of blocks anew.
type blocks struct{}

var _ audit.Deriver = blocks{}

func (blocks) Subject() string { return "dag.block" }

func (blocks) States(store.Tx, func(string, any) error) error { return nil }

func (blocks) Derives() []string {
	return []string{string(columns), string(returns), string(pieces)}
}

func (blocks) Derive(tx store.Tx, d *audit.Derivation) error {
	r := reader{tx}
	for n := range uint64(r.Counter(countBlocks)) {
		b, err := r.readBlock(n)
		unread := len(core.DamagedIn(err)) > 0
		if err != nil && !unread {
			return err
		}
		for _, of := range b.rows() {
			if unread { // which is told where the event is
				if of.data, err = of.rows.Data(r, record.Seq(n)); err != nil || of.data == nil {
					continue
				}
			}
			if err := of.rows.Expect(d, record.Seq(n), of.data); err != nil {
				return err
			}
		}
	}
	return nil
}
