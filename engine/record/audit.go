package record

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/store"
)

// Auditable is the kind for reconcile.
func (k *Kind[P]) Auditable() audit.Auditable { return auditable[P]{k} }

// auditable only hands on: the compiler makes what stands here anew for each kind.
type auditable[P any] struct{ k *Kind[P] }

func (a auditable[P]) Subject() string { return a.k.subject() }

// States visits what the log should say of each record that can be read; of any
// other it says enough that its digest differs.
func (a auditable[P]) States(tx store.Tx, visit func(id string, state any) error) error {
	return a.k.states(tx, visit)
}

func (a auditable[P]) Derives() []string { return a.k.derives() }

// Derive implements audit.Deriver: the counts and the indexes.
func (a auditable[P]) Derive(tx store.Tx, d *audit.Derivation) error { return a.k.derive(tx, d) }

func (k *Kind[P]) states(tx store.Tx, visit func(id string, state any) error) error {
	if !k.told() {
		return nil
	}
	return k.readable(tx, func(v P) error { return visit(k.ID(v), k.state(v)) })
}

// derives is not inlined, or it would be there for each kind.
//
//go:noinline
func (k *Kind[P]) derives() []string {
	names := []string{"#" + string(k.Bucket)}
	for _, x := range k.Indexes {
		if x.Bucket != "" {
			names = append(names, string(x.Bucket))
		}
		if x.Count != "" {
			names = append(names, "#"+x.Count+".*")
		}
	}
	return names
}

func (k *Kind[P]) derive(tx store.Tx, d *audit.Derivation) error {
	counts := map[string]int64{}
	err := tx.Scan(k.Bucket, nil, nil, false, func(_, _ []byte) (bool, error) { counts[string(k.Bucket)]++; return true, nil })
	err = errors.Join(err, k.readable(tx, func(v P) error {
		for i := range k.Indexes {
			x := &k.Indexes[i]
			for _, r := range k.rows(tx.Tenant(), x, v) {
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
func (k *Kind[P]) readable(tx store.Tx, visit func(P) error) error {
	return tx.Scan(k.Bucket, nil, nil, false, func(key, data []byte) (bool, error) {
		if v, err := k.decode(tx.Tenant(), key, data); err == nil {
			return true, visit(v)
		}
		return true, nil
	})
}

// members are where the members of a kind's records are, by their names in JSON.
type members struct {
	once sync.Once
	at   map[string][]int
}

// of points to the member of a record that is called so; nil is none.
func (m *members) of(v any, name string) any {
	record := reflect.ValueOf(v).Elem()
	m.once.Do(func() {
		m.at = map[string][]int{}
		for _, f := range reflect.VisibleFields(record.Type()) {
			called, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if was := m.at[called]; f.IsExported() && (was == nil || len(f.Index) < len(was)) {
				m.at[called] = f.Index
			}
		}
	})
	if m.at[name] == nil {
		return nil
	}
	return record.FieldByIndex(m.at[name]).Addr().Interface()
}

func (m *members) head(v any) (h Head) {
	h.Tenant, _ = m.of(v, "tenant_id").(*string)
	h.Created, _ = m.of(v, "created_at").(*time.Time)
	h.Updated, _ = m.of(v, "updated_at").(*time.Time)
	h.Seq, _ = m.of(v, "audit_seq").(*uint64)
	return h
}

// said are those members of a record that are something, of which names has the names.
func (m *members) said(v any, names string) any {
	all := map[string]any{}
	for name := range strings.FieldsSeq(names) {
		if member := reflect.ValueOf(m.of(v, name)).Elem(); !member.IsZero() {
			all[name] = member.Interface()
		}
	}
	return all
}
