package dag

import (
	"errors"
	"fmt"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// indexes has reconcile make all that leads to the events anew. The audit log has
// digests of the events alone: what follows from them is what the writer makes of
// them, in their order.
type indexes struct{}

var _ audit.Deriver = indexes{}

func (indexes) Subject() string { return "dag.index" }

func (indexes) States(store.Tx, func(string, any) error) error { return nil }

func (indexes) Derives() []string {
	return []string{
		string(edgesOf), string(names), string(heads), string(marks), string(streams), string(subjects), string(kinds), string(callIDs), string(runCalls),
		string(correlated), string(outEdges), string(inEdges), string(stated), string(policies), string(forks), string(probes), string(openSpans),
		string(holds), string(ends), string(lows), string(highs), "#" + countEvents, "#" + countNames, "#" + countEdges, "#" + countRuns,
	}
}

// Derive fails with a core.Damaged at the first event that can't be read: the numbers
// of all that comes after it hang on it.
func (indexes) Derive(tx store.Tx, d *audit.Derivation) error {
	a := &again{Tx: tx, d: d, held: map[string]*heldRows{}, counts: map[string]int64{}}
	w := &writer{reader: reader{a}, heads: map[uint64]*head{}}
	err := tx.Scan(store.Bucket(stored), nil, nil, false, func(key, value []byte) (bool, error) {
		if len(key) != 8 {
			return true, nil // none of ours, as its digest says
		}
		pos := uint64(a.Add(countEvents, 1))
		if record.LastSeq(key) != pos {
			return false, damaged(pos, errors.New("it is missing"))
		}
		row, err := asRow(pos, value)
		if err != nil {
			return false, err
		}
		rec, err := row.recorded()
		if err != nil {
			return false, err
		}
		if err := w.again(&rec.Event, pos); err != nil {
			return false, damaged(pos, fmt.Errorf("take it in anew: %w", err))
		}
		return true, nil
	})
	if err == nil {
		err = w.putHeads()
	}
	if err == nil {
		a.end()
	}
	return err
}

// again takes in an event that is in the record.
func (w *writer) again(e *Event, pos uint64) error {
	self := nameKey(NodeRef{TypeEvent, e.EventID})
	num, _, err := w.num(self)
	if err != nil {
		return err
	}
	key, name := streamOf(e)
	stream, _, err := w.intern(key)
	if err != nil {
		return err
	}
	h, err := w.headOf(stream, name)
	if err != nil {
		return err
	}
	return w.take(e, self, num, pos, stream, h)
}

// again is a transaction in which the writer finds what it has put, and nothing else
// but the events. What it can't come back to is told at once: of a list that is all but
// its newest entry, of the calls of an id all but the newest.
type again struct {
	store.Tx
	d      *audit.Derivation
	held   map[string]*heldRows // that the writer changes or takes away again
	counts map[string]int64
}

// heldRows are rows of a bucket that are found together: a few, where they are scanned.
type heldRows struct {
	bucket store.Bucket
	rows   map[string][]byte
}

// heldIn names the rows that a key stands among. newest says that the writer comes back
// to the newest of them alone.
func heldIn(b store.Bucket, key []byte) (name string, held, newest bool) {
	switch record.Rows[[]byte](b) {
	case names, openSpans:
		return string(b), true, false
	case holds:
		return string(b) + " " + string(key[:heldKey]), true, false
	case subjects, kinds, callIDs, runCalls, correlated, policies, forks, stated:
		return string(b) + " " + string(key[:len(key)-8]), true, true
	}
	return "", false, false
}

// heldKey is how much of a key of holds says what is held.
const heldKey = 9

func (a *again) Put(b store.Bucket, key, value []byte) error {
	name, held, newest := heldIn(b, key)
	if !held || b == store.Bucket(callIDs) && value[0] == KindToolResult.code() {
		a.d.Row(b, key, value)
		return nil
	}
	of := a.held[name]
	if of == nil {
		of = &heldRows{b, map[string][]byte{}}
		a.held[name] = of
	}
	if _, same := of.rows[string(key)]; newest && !same {
		of.tell(a.d)
	}
	of.rows[string(key)] = value
	return nil
}

// tell tells the rows, and forgets them.
func (of *heldRows) tell(d *audit.Derivation) {
	for key, value := range of.rows {
		d.Row(of.bucket, []byte(key), value)
	}
	clear(of.rows)
}

func (a *again) Delete(b store.Bucket, key []byte) error {
	name, _, _ := heldIn(b, key)
	if of := a.held[name]; of != nil {
		delete(of.rows, string(key))
	}
	return nil
}

func (a *again) Get(b store.Bucket, key []byte) ([]byte, error) {
	if b == store.Bucket(stored) {
		return a.Tx.Get(b, key)
	}
	name, _, _ := heldIn(b, key)
	if of := a.held[name]; of != nil {
		return of.rows[string(key)], nil
	}
	return nil, nil
}

// Scan visits what begins with from, in any order: the writer wants the newest, which is
// all there is, or all that is held.
func (a *again) Scan(b store.Bucket, from, _ []byte, _ bool, visit func(key, value []byte) (bool, error)) error {
	name := string(b) + " " + string(from)
	if b == store.Bucket(holds) {
		name, _, _ = heldIn(b, from)
	}
	of := a.held[name]
	if of == nil {
		return nil
	}
	for key, value := range of.rows {
		if strings.HasPrefix(key, string(from)) {
			if more, err := visit([]byte(key), value); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

func (a *again) Counter(name string) int64 { return a.counts[name] }

func (a *again) Add(name string, delta int64) int64 {
	a.counts[name] += delta
	return a.counts[name]
}

// end tells what is left.
func (a *again) end() {
	for _, of := range a.held {
		of.tell(a.d)
	}
	for name, n := range a.counts {
		a.d.Count(name, n)
	}
}
