package record

import (
	"reflect"
	"strings"
	"sync"
	"time"
)

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
