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
		if x.Bucket != "" {
			names = append(names, string(x.Bucket))
		}
		if x.Count != "" {
			names = append(names, "#"+x.Count+".*")
		}
	}
	return names
}

// Derive implements audit.Deriver: the counts and the indexes.
func (a auditable[T]) Derive(tx store.Tx, d *audit.Derivation) error {
	counts := map[string]int64{}
	err := tx.Scan(a.k.Bucket, nil, nil, false, func(_, _ []byte) bool { counts[string(a.k.Bucket)]++; return true })
	err = errors.Join(err, a.readable(tx, func(v *T) error {
		for i := range a.k.Indexes {
			x := &a.k.Indexes[i]
			for _, r := range a.k.rows(tx.Tenant(), x, v) {
				d.Row(x.Bucket, r.key, r.value)
			}
			if word := x.word(v); x.Count != "" && word != "" {
				counts[x.Count+"."+word]++
			}
		}
		return nil
	}))
	for name, n := range counts {
		d.Count(name, n)
	}
	return err
}

// readable visits the records that can be decoded.
func (a auditable[T]) readable(tx store.Tx, visit func(*T) error) error {
	return Scan(tx, a.k.Bucket, nil, nil, false, func(key, data []byte) (bool, error) {
		if v, err := a.k.decode(tx.Tenant(), key, data); err == nil {
			return true, visit(v)
		}
		return true, nil
	})
}
