package record

import (
	"bytes"
	"slices"

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

// Next takes the number of a record to be made; none is given twice.
func (k *Kind[T]) Next(tx *audit.Tx) uint64 { return uint64(tx.Add(string(k.Bucket)+".seq", 1)) }

// Save keeps v in place of old, which is the record as it was loaded in this
// transaction, or nil for a new one. It fills v's head in. More than Limit
// records are a core.Conflict.
func (k *Kind[T]) Save(tx *audit.Tx, e Event, old, v *T) error {
	head, was := k.Head(v), Head{}
	if old != nil {
		was = k.Head(old)
	} else if n := tx.Derived().Add(string(k.Bucket), 1); k.Limit > 0 && n > int64(k.Limit) {
		return core.Errorf(core.Conflict, "%s %s: there are %d, the most there may be; remove one first", k.Noun, k.ID(v), k.Limit).With("field", k.Noun)
	}
	now, prev := tx.Now(), was.seq()
	fill(head.Tenant, tx.Tenant())
	fill(head.Updated, now)
	fill(head.Seq, tx.Next())
	if was.Created != nil {
		now = *was.Created
	}
	fill(head.Created, now)
	data, err := k.encode(v)
	if err != nil {
		return err
	}
	if err := k.record(tx, e, k.ID(v), k.state(v), prev); err != nil {
		return err
	}
	if err := k.reindex(tx.Derived(), old, v); err != nil {
		return err
	}
	kept := *v
	k.changed(tx, k.ID(v), &kept)
	return tx.Put(k.Bucket, k.key(tx.Tenant(), k.ID(v)), data)
}

// Remove takes a record away that was loaded in this transaction.
func (k *Kind[T]) Remove(tx *audit.Tx, e Event, old *T) error {
	id := k.ID(old)
	tx.Derived().Add(string(k.Bucket), -1)
	var gone any
	if k.State != nil {
		gone = audit.Gone
	}
	if err := k.record(tx, e, id, gone, k.Head(old).seq()); err != nil {
		return err
	}
	if err := k.reindex(tx.Derived(), old, nil); err != nil {
		return err
	}
	k.changed(tx, id, nil)
	return tx.Delete(k.Bucket, k.key(tx.Tenant(), id))
}

func (k *Kind[T]) record(tx *audit.Tx, e Event, id string, state any, prev uint64) error {
	_, err := tx.Record(audit.Entry{Type: e.Type, Trace: e.Trace, Subject: k.subject(), ID: id, State: state, Detail: e.Detail, Prev: prev})
	return err
}

// changed tells watchers and the follower after the commit; nil is a removal.
func (k *Kind[T]) changed(tx *audit.Tx, id string, v *T) {
	if v == nil {
		tx.Changed(k.subject(), id, nil)
	} else {
		tx.Changed(k.subject(), id, v)
	}
	if k.Follow != nil {
		tenant := tx.Tenant()
		tx.OnCommit(func() { k.Follow(tenant, id, v) })
	}
}

// reindex brings the indexes from old to v; either may be nil.
func (k *Kind[T]) reindex(tx store.Tx, old, v *T) error {
	for _, x := range k.Indexes {
		gone, fresh := x.of(old), x.of(v)
		for _, key := range gone {
			if holds(fresh, key) {
				continue
			}
			if err := tx.Delete(x.Bucket, key); err != nil {
				return err
			}
		}
		for _, key := range fresh {
			if holds(gone, key) {
				continue
			}
			if err := tx.Put(x.Bucket, key, []byte(k.ID(v))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *Index[T]) of(v *T) []Key {
	if v == nil {
		return nil
	}
	return x.Keys(v)
}

func holds(keys []Key, key []byte) bool {
	return slices.ContainsFunc(keys, func(k Key) bool { return bytes.Equal(k, key) })
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
