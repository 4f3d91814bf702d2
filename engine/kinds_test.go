package engine_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/skill"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const kindTenant = "t_acme"

// heads are the members that a save fills in: they are no part of what is compared.
var heads = strings.Fields("tenant_id created_at updated_at audit_seq at started_at timestamp added_at")

// unstored are members that no record holds: they are kept beside it, and proven there.
var unstored = map[string]string{
	"message":  "status unanswered response_id dead resent_as deliveries",
	"subagent": "results",
}

// Each member of each noun that a service keeps as a kind is changed in turn. The kind must say that the record is
// another, so that `up` tells "changed"; the list must show it; and reconcile must see it where it was changed behind
// the log's back.
func TestEachMemberOfEachNounIsComparedProvenAndListed(t *testing.T) {
	db := expect.Of(store.Open(filepath.Join(t.TempDir(), "x.db"), store.Options{}))(t)
	t.Cleanup(func() { db.Close() })
	expect.No(t, db.CreateTenant(t.Context(), kindTenant))
	eng := expect.Of(engine.Open(t.Context(), engine.Options{Store: db}))(t)
	t.Cleanup(func() { _ = eng.Close() })
	kinds := kindsOf(eng.Audit)
	expect.Must(t, len(kinds) >= 35, "the services registered %d kinds", len(kinds))
	for _, k := range kinds {
		t.Run(k.noun(), func(t *testing.T) { k.try(t, db, eng.Audit) })
	}
}

// kind is a *record.Kind of any noun, which nobody follows.
type kind struct{ reflect.Value }

// kindsOf are the kinds that a ledger knows.
func kindsOf(l *audit.Ledger) (all []kind) {
	open := func(v reflect.Value) reflect.Value {
		return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	}
	for _, a := range open(reflect.ValueOf(l).Elem().FieldByName("kinds")).Seq2() {
		of := reflect.New(a.Elem().Type()).Elem()
		of.Set(a.Elem())
		if of.NumField() != 1 || of.Type().Field(0).Name != "k" {
			continue // it is no kind: a service proves it by hand
		}
		k := reflect.New(of.Field(0).Type().Elem())
		k.Elem().Set(open(of.Field(0)).Elem())
		k.Elem().FieldByName("Follow").SetZero()
		all = append(all, kind{k})
	}
	slices.SortFunc(all, func(a, b kind) int { return strings.Compare(a.noun(), b.noun()) })
	return all
}

func (k kind) noun() string { return k.Elem().FieldByName("Noun").String() }

func (k kind) call(of reflect.Value, args ...any) any {
	in := make([]reflect.Value, len(args))
	for i, a := range args {
		if v, is := a.(reflect.Value); is {
			in[i] = v
		} else {
			in[i] = reflect.ValueOf(a)
		}
	}
	return of.Call(in)[0].Interface()
}

func (k kind) same(a, b reflect.Value) bool { return k.call(k.MethodByName("Same"), a, b).(bool) }

// place is what a record is found by: its id, and where it lies if that is not its id.
func (k kind) place(v reflect.Value) string {
	at := k.call(k.Elem().FieldByName("ID"), v).(string)
	if place := k.Elem().FieldByName("Place"); !place.IsNil() {
		at += fmt.Sprint(k.call(place, v))
	}
	return at
}

// sample is a record all of whose members are something.
func (k kind) sample() reflect.Value {
	v := reflect.New(k.Elem().FieldByName("ID").Type().In(0).Elem())
	fill(v.Elem(), 1)
	if s, is := v.Interface().(*skill.Skill); is {
		s.Version = "1.0.0"
		return v
	}
	id := ""
	if name := k.Elem().FieldByName("Name"); !name.IsNil() {
		id = k.call(name, kindTenant, []byte(record.Seq(1))).(string)
	} else if !k.Elem().FieldByName("Number").IsNil() {
		id = core.NewUUID(kindTenant, 1, nil)
	}
	for i := range v.Elem().NumField() {
		if m := v.Elem().Field(i); m.Kind() == reflect.String && id != "" && k.place(v) != id {
			was := m.String()
			if m.SetString(id); !strings.Contains(k.place(v), id) {
				m.SetString(was)
			}
		}
	}
	return v
}

func (k kind) try(t *testing.T, db *store.DB, ledger *audit.Ledger) {
	by := core.Caller{Tenant: kindTenant, Name: "ann", Kind: core.Operator}
	save := func(old, v reflect.Value) {
		t.Helper()
		err := ledger.Update(t.Context(), by, func(tx *audit.Tx) error {
			err, _ := k.call(k.MethodByName("Save"), tx, record.Event{Type: "test.saved"}, old, v).(error)
			return err
		})
		expect.No(t, err)
	}
	bucket := store.Bucket(k.Elem().FieldByName("Bucket").String())
	row := func() (key, value []byte) {
		err := db.View(t.Context(), kindTenant, func(tx store.Tx) error {
			return tx.Scan(bucket, nil, nil, false, func(k, v []byte) (bool, error) {
				key, value = bytes.Clone(k), bytes.Clone(v)
				return true, nil
			})
		})
		expect.No(t, err)
		return key, value
	}
	wrong := func() []audit.Delta {
		return expect.Of(ledger.Reconcile(t.Context(), kindTenant))(t)
	}
	old := k.sample()
	save(reflect.Zero(old.Type()), old)
	found := wrong()
	expect.Must(t, len(found) == 0, "as it was made: %v", found)
	for _, f := range reflect.VisibleFields(old.Type().Elem()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue
		}
		v := reflect.New(old.Type().Elem())
		v.Elem().Set(old.Elem())
		if in := v.Elem().Field(f.Index[0]); len(f.Index) > 1 && in.Kind() == reflect.Pointer {
			own := reflect.New(in.Type().Elem())
			own.Elem().Set(in.Elem())
			in.Set(own)
		}
		fill(v.Elem().FieldByIndex(f.Index), 2)
		isHead := slices.Contains(heads, name)
		switch told := !k.same(old, v); {
		case isHead && !told, !told && slices.Contains(strings.Fields(unstored[k.noun()]), name), k.place(v) != k.place(old):
			continue
		case !told && !isHead:
			t.Errorf("%s changes, and the kind says that nothing did", name)
			continue
		}
		_, was := row()
		save(old, v)
		key, is := row()
		var listed reflect.Value
		each := k.MethodByName("Each")
		err := db.View(t.Context(), kindTenant, func(tx store.Tx) error {
			err, _ := k.call(each, tx, reflect.MakeFunc(each.Type().In(1), func(in []reflect.Value) []reflect.Value {
				listed = in[0]
				return []reflect.Value{reflect.Zero(each.Type().In(1).Out(0))}
			})).(error)
			return err
		})
		expect.True(t, err == nil && k.same(listed, v), "%s changed, and the list shows %v, %v", name, listed, err)
		forge := func(value []byte) {
			expect.No(t, db.Update(t.Context(), kindTenant, func(tx store.Tx) error { return tx.Put(bucket, key, value) }))
		}
		found := wrong()
		expect.True(t, len(found) == 0, "%s was changed by a save: %v", name, found)
		forge(was)
		expect.True(t, len(wrong()) != 0, "%s was changed behind the log's back, and reconcile sees nothing", name)
		forge(is)
		old = v
	}
	err := ledger.Update(t.Context(), by, func(tx *audit.Tx) error {
		err, _ := k.call(k.MethodByName("Remove"), tx, record.Event{Type: "test.removed"}, old).(error)
		return err
	})
	if err != nil || len(wrong()) > 0 {
		t.Errorf("as it was removed: %v, %v", wrong(), err)
	}
}

// fill makes a value something, and another for another n.
func fill(v reflect.Value, n int) {
	switch at := v.Addr().Interface().(type) {
	case *core.Raw:
		*at = core.MustEncode(map[string]int{"a": n})
		return
	case *time.Time:
		*at = time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("a", n))
	case reflect.Bool:
		v.SetBool(n == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(n))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	}
}
