package record

import (
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/store"
)

// Auditable is the kind for reconcile.
func (k *Kind[T]) Auditable() audit.Auditable { return auditable[T]{k} }

type auditable[T any] struct{ k *Kind[T] }

func (a auditable[T]) Subject() string { return a.k.subject() }

// States visits what the log should say of each record, damaged ones too:
// these have nothing but their digest.
func (a auditable[T]) States(tx store.Tx, visit func(id string, state any) error) error {
	var bad error
	err := tx.Scan(a.k.Bucket, nil, nil, false, func(key, data []byte) bool {
		id, state := string(key), State(data, nil)
		if v, err := a.k.decode(tx.Tenant(), key, data); err == nil {
			id = a.k.ID(v)
			if state, bad = a.k.state(v, data); bad != nil {
				return false
			}
		}
		bad = visit(id, state)
		return bad == nil
	})
	return errors.Join(err, bad)
}

// Derived compares the count and the indexes with what the records say. What
// the records say stands for the log: their digests are compared by themselves.
func (a auditable[T]) Derived(tx store.Tx, differs func(audit.Delta)) error {
	count := int64(0)
	err := tx.Scan(a.k.Bucket, nil, nil, false, func(_, _ []byte) bool { count++; return true })
	if err != nil {
		return err
	}
	if kept := a.k.Count(tx); kept != count {
		differs(audit.Delta{Subject: a.Subject(), Field: "count", Log: fmt.Sprint(count), Store: fmt.Sprint(kept)})
	}
	for _, x := range a.k.Indexes {
		if err := errors.Join(a.missing(tx, x, differs), a.additional(tx, x, differs)); err != nil {
			return err
		}
	}
	return nil
}

// missing looks for each key that an index should have.
func (a auditable[T]) missing(tx store.Tx, x Index[T], differs func(audit.Delta)) error {
	return a.readable(tx, func(v *T) error {
		id := a.k.ID(v)
		for _, key := range x.Keys(v) {
			at, err := tx.Get(x.Bucket, key)
			if err != nil {
				return err
			}
			if string(at) != id {
				differs(audit.Delta{Subject: a.Subject(), ID: id, Field: fmt.Sprintf("%s %q", x.Bucket, key), Log: id, Store: string(at)})
			}
		}
		return nil
	})
}

// additional looks for keys of an index that no record has.
func (a auditable[T]) additional(tx store.Tx, x Index[T], differs func(audit.Delta)) error {
	var bad error
	err := tx.Scan(x.Bucket, nil, nil, false, func(key, at []byte) bool {
		v, err := a.k.Load(tx, string(at))
		if errors.Is(err, store.ErrCorrupt) {
			bad = err
			return false
		}
		if v == nil || !holds(x.Keys(v), key) {
			differs(audit.Delta{Subject: a.Subject(), ID: string(at), Field: fmt.Sprintf("%s %q", x.Bucket, key), Store: string(at)})
		}
		return true
	})
	return errors.Join(err, bad)
}

// readable visits the records that can be decoded; States tells of the others.
func (a auditable[T]) readable(tx store.Tx, visit func(*T) error) error {
	var bad error
	err := tx.Scan(a.k.Bucket, nil, nil, false, func(key, data []byte) bool {
		if v, err := a.k.decode(tx.Tenant(), key, data); err == nil {
			bad = visit(v)
		}
		return bad == nil
	})
	return errors.Join(err, bad)
}
