package record

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/store"
)

// PrunedEvent is recorded for each slice of records that leave by retention.
const PrunedEvent = "retention.pruned"

// Slice is the most records that leave in one commit, and SliceRows about the
// most rows.
const (
	Slice     = 128
	SliceRows = 4096
)

// Limit says which records of a kind may leave. The zero value lets none.
type Limit struct {
	Before time.Time // those that ended earlier; zero is no limit
	Keep   int64     // all but so many of the newest; 0 is any number
}

// Excess is how many of n records are too many.
func (l Limit) Excess(n int64) int64 {
	if l.Keep <= 0 {
		return 0
	}
	return max(0, n-l.Keep)
}

// Old says whether what ended then may leave for its age.
func (l Limit) Old(ended time.Time) bool { return !l.Before.IsZero() && ended.Before(l.Before) }

// Removal gathers what one event says of records that leave together.
type Removal struct {
	Kind   string `json:"kind"`
	Count  int    `json:"count"`
	First  string `json:"first"`
	Last   string `json:"last"`
	SHA256 string `json:"sha256"` // over the rows that are passed to Add, each after its length (8 bytes)
	rows   hash.Hash
}

// Add takes a record in, with the rows that make it.
func (r *Removal) Add(id string, rows ...[]byte) {
	if r.Count++; r.Count == 1 {
		r.First, r.rows = id, sha256.New()
	}
	r.Last = id
	for _, row := range rows {
		r.rows.Write(binary.BigEndian.AppendUint64(nil, uint64(len(row))))
		r.rows.Write(row)
	}
}

// Record writes the event, unless nothing leaves. The rows that the transaction
// removes are told of in it, by their keys.
func (r *Removal) Record(tx *audit.Tx) error {
	return r.record(tx, audit.Entry{Type: PrunedEvent, Subject: "retention", ID: r.Kind})
}

func (r *Removal) record(tx *audit.Tx, e audit.Entry) error {
	if r.Count == 0 {
		return nil
	}
	r.SHA256 = hex.EncodeToString(r.rows.Sum(nil))
	e.Detail = r
	_, err := tx.Record(e)
	return err
}

// Dense is a bucket whose keys are the numbers from 1 on, as its counter gave
// them out, and of which records leave. Few stay below the newest that left.
type Dense struct {
	Bucket store.Bucket
	Count  string // counter of the numbers that were given out
}

func (d Dense) left() string { return d.Count + ".left" }
func (d Dense) upto() string { return d.Count + ".left.upto" }

// Hold has a ledger hold what Total needs, and other counters.
func (d Dense) Hold(l *audit.Ledger, more ...string) { l.Hold("", append(more, d.Count, d.left())...) }

// Total is how many records there are.
func (d Dense) Total(c Counters) int64 { return c.Counter(d.Count) - c.Counter(d.left()) }

// Leave counts a record that leaves.
func (d Dense) Leave(tx store.Tx, n uint64) {
	tx.Add(d.left(), 1)
	if more := int64(n) - tx.Counter(d.upto()); more > 0 {
		tx.Add(d.upto(), more)
	}
}

// Gapless are the newest number and the one up to which some have left: between them all
// are there.
func (d Dense) Gapless(c Counters) (newest, left uint64) {
	return uint64(c.Counter(d.Count)), uint64(c.Counter(d.upto()))
}

// BackWithout is Back as if some records were not there, all of them among the gapless.
func (d Dense) BackWithout(tx store.Tx, without []uint64, skip int, visit func(n uint64) bool) error {
	newest, _ := d.Gapless(tx)
	without = slices.Clone(without)
	slices.Sort(without)
	for _, n := range slices.Backward(without) {
		if newest-n > uint64(skip) {
			break
		}
		skip++
	}
	return d.Back(tx, skip, func(n uint64) bool {
		_, out := slices.BinarySearch(without, n)
		return out || visit(n)
	})
}

// Back visits the numbers of the records from the newest on, without the first
// few, until visit returns false. Where none left this reads nothing.
func (d Dense) Back(tx store.Tx, skip int, visit func(n uint64) bool) error {
	n, upto := tx.Counter(d.Count), tx.Counter(d.upto())
	above := min(int64(skip), max(0, n-upto))
	rest := int64(skip) - above
	for n -= above; n > upto; n-- {
		if !visit(uint64(n)) {
			return nil
		}
	}
	if n <= 0 {
		return nil
	}
	return tx.Scan(d.Bucket, nil, Seq(uint64(n)+1), true, func(key, _ []byte) (bool, error) {
		if rest--; rest >= 0 {
			return true, nil
		}
		return visit(LastSeq(key)), nil
	})
}
