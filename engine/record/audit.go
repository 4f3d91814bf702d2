package record

import (
	"errors"

	"swarmdeck/engine/audit"
	"swarmdeck/store"
)

// Auditable is the kind for reconcile.
func (k *Kind[T]) Auditable() audit.Auditable { return auditable[T]{k} }

type auditable[T any] struct{ k *Kind[T] }

func (a auditable[T]) Subject() string { return a.k.subject() }

// States visits what the log should say of each record that can be read; of any
// other it says enough that its digest differs.
func (a auditable[T]) States(tx store.Tx, visit func(id string, state any) error) error {
	if a.k.State == nil {
		return nil
	}
	return a.readable(tx, func(v *T) error { return visit(a.k.ID(v), a.k.State(v)) })
}

// Derives implements audit.Deriver.
func (a auditable[T]) Derives() []string {
	names := []string{"#" + string(a.k.Bucket)}
	for _, x := range a.k.Indexes {
		names = append(names, string(x.Bucket))
	}
	return names
}

// Derive implements audit.Deriver: the count and the indexes.
func (a auditable[T]) Derive(tx store.Tx, d *audit.Derivation) error {
	count := int64(0)
	err := tx.Scan(a.k.Bucket, nil, nil, false, func(_, _ []byte) bool { count++; return true })
	d.Count(string(a.k.Bucket), count)
	return errors.Join(err, a.readable(tx, func(v *T) error {
		for _, x := range a.k.Indexes {
			for _, key := range x.Keys(v) {
				d.Row(x.Bucket, key, []byte(a.k.ID(v)))
			}
		}
		return nil
	}))
}

// readable visits the records that can be decoded.
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
