package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Event is what happened to a record, for the audit log.
type Event struct {
	Type   string // "operator.created"
	Trace  string // "" takes a fresh trace id
	Detail any    // nil for nothing
}

// seqOf is the counter of the numbers that were given out.
func seqOf(b store.Bucket) string { return string(b) + ".seq" }

// Next takes the number of a record to be made; none is given twice.
func (k *Kind[P]) Next(tx *audit.Tx) uint64 { return uint64(tx.Add(seqOf(k.Bucket), 1)) }

// Newest is the number that Next gave last, 0 for none.
func (k *Kind[P]) Newest(c Counters) uint64 { return uint64(c.Counter(seqOf(k.Bucket))) }

// Save keeps v in place of old, which is the record as it was loaded in this
// transaction, or nil for a new one. It fills v's head in. More than Limit
// records are a core.Conflict.
func (k *Kind[P]) Save(tx *audit.Tx, e Event, old, v P) error {
	head := k.head(v)
	fill(head.Updated, tx.Now())
	fill(head.Seq, tx.Next())
	return k.write(tx, &e, old, v)
}

// Keep is Save in place of what is stored of v, which it reads.
func (k *Kind[P]) Keep(tx *audit.Tx, e Event, v P) error {
	old, err := k.At(tx, k.place(tx.Tenant(), v))
	if err != nil {
		return err
	}
	return k.Save(tx, e, old, v)
}

// Write is Save for what an event about something else tells of: the head's time
// and seq of the newest change stay.
func (k *Kind[P]) Write(tx *audit.Tx, old, v P) error {
	return k.write(tx, nil, old, v)
}

// usualSize is room for most records of kinds with a codec of their own, in
// bytes.
const usualSize = 512

// write is Save; e is nil where no event is to be recorded.
func (k *Kind[P]) write(tx *audit.Tx, e *Event, old, v P) error {
	if isNil(old) {
		if err := more(tx, k.Bucket, k.Limit, k.Noun, k.ID(v)); err != nil {
			return err
		}
	}
	was := k.head(old)
	k.head(v).made(tx, was)
	var room []byte
	if k.Encode != nil {
		room = tx.Alloc(usualSize)
	}
	data, err := k.encode(room, v)
	if err != nil {
		return err
	}
	if e != nil {
		if !isNil(old) && k.ID(old) != k.ID(v) && k.told() {
			tx.Gone(k.subject(), k.ID(old))
		}
		if err := k.record(tx, *e, k.ID(v), k.state(v), was.seq()); err != nil {
			return err
		}
	}
	if err := k.reindex(tx.Derived(), old, v); err != nil {
		return err
	}
	k.changed(tx, v, false)
	return tx.Put(k.Bucket, k.place(tx.Tenant(), v), data)
}

// What does not depend on the type of the records stands apart from here on, so that
// it is there once.

// more counts a record that comes, unless there are too many.
func more(tx *audit.Tx, b store.Bucket, limit int, noun, id string) error {
	if n := tx.Derived().Add(string(b), 1); limit > 0 && n > int64(limit) {
		return core.Errorf(core.Conflict, "%s %s: there are %d, the most there may be; remove one first", noun, id, limit).With("field", noun)
	}
	return nil
}

// made fills in whose a record is, and when it was made: as it was, or now.
func (h Head) made(tx *audit.Tx, was Head) {
	now := tx.Now()
	fill(h.Tenant, tx.Tenant())
	if was.Created != nil {
		now = *was.Created
	}
	fill(h.Created, now)
}

// Remove takes a record away that was loaded in this transaction.
func (k *Kind[P]) Remove(tx *audit.Tx, e Event, old P) error {
	var gone any
	if k.told() {
		gone = audit.Gone
	}
	if err := k.record(tx, e, k.ID(old), gone, k.head(old).seq()); err != nil {
		return err
	}
	return k.drop(tx, old)
}

// Leave is Remove for what an event about more than one record tells of; r
// takes the record in unless it is nil.
func (k *Kind[P]) Leave(tx *audit.Tx, r *Removal, old P) error {
	if r != nil {
		row, err := tx.Get(k.Bucket, k.place(tx.Tenant(), old))
		if err != nil {
			return err
		}
		r.Add(k.ID(old), row)
	}
	if k.told() {
		tx.Gone(k.subject(), k.ID(old))
	}
	return k.drop(tx, old)
}

func (k *Kind[P]) drop(tx *audit.Tx, old P) error {
	tx.Derived().Add(string(k.Bucket), -1)
	if err := k.reindex(tx.Derived(), old, *new(P)); err != nil {
		return err
	}
	k.changed(tx, old, true)
	return tx.Delete(k.Bucket, k.place(tx.Tenant(), old))
}

// leaving is the oldest record of a numbered kind if the limit lets it go, else nil.
func (k *Kind[P]) leaving(tx *audit.Tx, limit Limit) (v P, err error) {
	n := k.Count(tx)
	if n == 0 || limit.Excess(n) == 0 && limit.Before.IsZero() {
		return v, nil
	}
	oldest, err := k.Glance(tx, Seq(k.Newest(tx)+1-uint64(n)))
	if err != nil || isNil(oldest) {
		return v, err
	}
	at, err := k.Ended(tx, oldest)
	if err != nil || at.IsZero() || limit.Excess(n) == 0 && !limit.Old(at) {
		return v, err
	}
	return oldest, nil
}

// Prune removes a slice of the oldest records of a numbered kind that the limit
// lets go. One that stays holds back what came after it. It returns nil when it is
// through; called is what people call the records.
func (k *Kind[P]) Prune(ctx context.Context, by core.Caller, limit Limit, called string) (next []byte, err error) {
	due := false
	err = k.Ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		v, err := k.leaving(tx, limit)
		due = !isNil(v)
		return err
	})
	if err == nil && due {
		err = k.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
			r := Removal{Kind: called}
			for next = nil; r.Count < Slice; {
				v, err := k.leaving(tx, limit)
				if err != nil || isNil(v) {
					return errors.Join(err, r.Record(tx))
				}
				if k.Leaves != nil {
					err = k.Leaves(tx, v)
				}
				if err = errors.Join(err, k.Leave(tx, &r, v)); err != nil {
					return err
				}
			}
			next = []byte(r.Last)
			return r.Record(tx)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("prune %s: %w", called, err)
	}
	return next, nil
}

func (k *Kind[P]) record(tx *audit.Tx, e Event, id string, state any, prev uint64) error {
	_, err := tx.Record(audit.Entry{Type: e.Type, Trace: e.Trace, Subject: k.subject(), ID: id, State: state, Detail: e.Detail, Prev: prev})
	return err
}

// Tell records an event about a record that does not change it.
func (k *Kind[P]) Tell(tx *audit.Tx, e Event, v P) error {
	return k.record(tx, e, k.ID(v), nil, k.head(v).seq())
}

// changed tells watchers and the follower, after the commit, that v was saved or
// removed.
func (k *Kind[P]) changed(tx *audit.Tx, v P, gone bool) {
	id := k.ID(v)
	if !k.Quiet {
		tx.Changed(k.subject(), id)
	}
	if k.Follow == nil {
		return
	}
	tenant := tx.Tenant()
	var now P
	if !gone {
		now = fresh[P]()
		assign(now, v)
	}
	tx.OnCommit(func() { k.Follow(tenant, id, now) })
}

// indexRow is one row of an index.
type indexRow struct {
	key   Key
	value []byte
}

// reindex brings the indexes from old to v; either may be nil.
func (k *Kind[P]) reindex(tx store.Tx, old, v P) error {
	for i := range k.Indexes {
		x := &k.Indexes[i]
		if x.Count != "" {
			recount(tx, x.Count, x.word(old), x.word(v))
		}
		if err := exchange(tx, x.Bucket, k.rows(tx.Tenant(), x, old), k.rows(tx.Tenant(), x, v)); err != nil {
			return err
		}
	}
	return nil
}

// exchange puts rows of an index in the place of others.
func exchange(tx store.Tx, b store.Bucket, gone, fresh []indexRow) error {
	for _, r := range gone {
		if at(fresh, r.key) == nil {
			if err := tx.Delete(b, r.key); err != nil {
				return err
			}
		}
	}
	for _, r := range fresh {
		if was := at(gone, r.key); was == nil || !bytes.Equal(was.value, r.value) {
			if err := tx.Put(b, r.key, r.value); err != nil {
				return err
			}
		}
	}
	return nil
}

func recount(tx store.Tx, name, was, word string) {
	if was != word {
		count(tx, name, was, -1)
		count(tx, name, word, 1)
	}
}

func count(tx store.Tx, name, word string, by int64) {
	if word != "" {
		tx.Add(name+"."+word, by)
	}
}

// rows are what an index has of a record.
func (k *Kind[P]) rows(tenant string, x *Index[P], v P) (rows []indexRow) {
	if isNil(v) || x.Bucket == "" {
		return nil
	}
	if word := x.word(v); word != "" {
		r := indexRow{key: append(Text(word), k.place(tenant, v)...)}
		if x.Value != nil {
			r.value = x.Value(v)
		}
		return []indexRow{r}
	}
	if x.Keys != nil {
		for _, key := range x.Keys(v) {
			rows = append(rows, indexRow{key, []byte(k.ID(v))})
		}
	}
	return rows
}

func (x *Index[P]) word(v P) string {
	if isNil(v) || x.Word == nil {
		return ""
	}
	return x.Word(v)
}

func at(rows []indexRow, key Key) *indexRow {
	for i := range rows {
		if bytes.Equal(rows[i].key, key) {
			return &rows[i]
		}
	}
	return nil
}

func fill[V any](member *V, v V) {
	if member != nil {
		*member = v
	}
}

func (h Head) seq() uint64 {
	if h.Seq == nil {
		return 0
	}
	return *h.Seq
}
