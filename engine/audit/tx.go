package audit

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Tx is a transaction of the ledger: the store's, plus audit and changes. It
// is itself a store.Tx.
type Tx struct {
	store.Tx
	By    core.Caller
	Trace string // of events that name none; "" gives each a fresh one
	at    time.Time
	l     *Ledger

	stamp    stamp // its time is written by the first Record
	stampBuf [40]byte
	events   int
	last     uint64 // seq of the newest event recorded here
	wrote    bool
	readOnly bool
	changes  []core.Change

	held []byte // the newest event, which may still tell of rows: key and JSON without its end
	rows []row  // written, and told by no event yet

	figures []figure // held counters that were changed
	derived derivedTx

	// See Ledger.once.
	audited bool
	fn      func(*Tx) error
	run     func(store.Tx) error
	tell    func()
}

var _ store.Tx = (*Tx)(nil)

// Now is the one time of this transaction; it never runs backwards from one
// transaction to the next.
func (tx *Tx) Now() time.Time { return tx.at }

// ReadOnly says whether it is one of View.
func (tx *Tx) ReadOnly() bool { return tx.readOnly }

func (tx *Tx) Put(b store.Bucket, key, value []byte) error {
	tx.wrote = true
	tx.keep(b, key, value, false)
	return tx.Tx.Put(b, key, value)
}

func (tx *Tx) Delete(b store.Bucket, key []byte) error {
	tx.wrote = true
	tx.keep(b, key, nil, true)
	return tx.Tx.Delete(b, key)
}

func (tx *Tx) Add(name string, delta int64) int64 {
	tx.wrote = true
	if delta != 0 {
		tx.counted(name)
	}
	n := tx.Tx.Add(name, delta)
	tx.hold(name, n)
	return n
}

// Derived is the transaction for rows of derived and volatile buckets.
func (tx *Tx) Derived() store.Tx { return &tx.derived }

// Next is the seq that the next event will have.
func (tx *Tx) Next() uint64 { return uint64(tx.Counter(counter)) + 1 }

// Record appends an event and returns its seq, which is what the next Entry
// about the same subject gives as Prev.
func (tx *Tx) Record(e Entry) (uint64, error) {
	if tx.readOnly {
		return 0, fmt.Errorf("record audit event %s: %w", e.Type, store.ErrReadOnly)
	}
	if e.Type == "" || e.Subject == "" || e.ID == "" {
		return 0, core.Errorf(core.Internal, "audit event %q about %q %q: type, subject and id are required", e.Type, e.Subject, e.ID)
	}
	if e.Trace = cmp.Or(e.Trace, tx.Trace); e.Trace == "" {
		e.Trace = tx.l.opt.NewTrace()
	} else if err := core.CheckTrace(e.Trace); err != nil {
		return 0, err
	}
	if tx.stamp.at == nil {
		tx.stamp.by, tx.stamp.at = tx.By, tx.at.AppendFormat(tx.stampBuf[:0], time.RFC3339Nano)
	}
	if err := tx.settle(); err != nil {
		return 0, err
	}
	seq := uint64(tx.Tx.Add(counter, 1))
	held, err := tx.stamp.begin(tx.Tx, seq, &e)
	if err != nil {
		return 0, err
	}
	tx.held = held
	tx.events++
	tx.last = seq
	return seq, nil
}

// settle stores the newest event, with the rows that were written up to now.
func (tx *Tx) settle() error {
	if tx.held == nil {
		return nil
	}
	b := tx.appendRows(tx.held)
	tx.held = nil
	return end(tx.Tx, b)
}

// finish ends the transaction's events. Rows for which an event had no room are
// in events of their own.
func (tx *Tx) finish() error {
	for {
		if err := tx.settle(); err != nil || len(tx.rows) == 0 {
			return err
		}
		if _, err := tx.Record(Entry{Type: rowsEvent, Subject: "rows", ID: string(tx.rows[0].bucket)}); err != nil {
			return err
		}
	}
}

// begin is an event without its end, behind its key: both are one piece.
func (s *stamp) begin(tx store.Tx, seq uint64, e *Entry) ([]byte, error) {
	const head = 640 // what an event takes beside its state and detail
	buf := binary.BigEndian.AppendUint64(tx.Alloc(8+head+rawLen(e.State)+rawLen(e.Detail)+len(e.RawState)+len(e.RawDetail)), seq)
	told := uint64(tx.Counter(toldCounter))
	if !Routine(e.Type) {
		told = uint64(tx.Add(toldCounter, 1))
	}
	buf, err := s.appendEvent(buf, seq, told, e)
	if err != nil {
		return nil, fmt.Errorf("audit event %s of %s %s: %w", e.Type, e.Subject, e.ID, err)
	}
	return buf, nil
}

// end ends an event and stores it.
func end(tx store.Tx, b []byte) error {
	b = append(b, '}', '}')
	return tx.Put(Events, b[:8:8], b[8:])
}

func rawLen(v any) int {
	raw, ok := v.(core.Raw)
	if !ok {
		return 64
	}
	return len(raw)
}

// Changed tells the watchers, after the commit, that a record changed.
func (tx *Tx) Changed(kind, id string) {
	tx.changes = append(tx.changes, core.Change{Tenant: tx.Tenant(), Kind: kind, ID: id})
}

// announce hands the changes over at the commit. One more, of kind "event",
// follows them when the log grew: it has no id.
func (tx *Tx) announce() {
	if tx.events > 0 {
		tx.hold(counter, int64(tx.last))
		tx.Changed("event", "")
	}
	if len(tx.changes)+len(tx.figures) > 0 {
		tx.OnCommit(tx.tell)
	}
}

func (tx *Tx) notify() {
	tx.keepFigures()
	if tx.l.opt.OnChange == nil {
		return
	}
	for _, c := range tx.changes {
		tx.l.opt.OnChange(c)
	}
}
