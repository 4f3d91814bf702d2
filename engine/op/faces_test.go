package op

import (
	"cmp"
	stdflag "flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/expect"
)

func TestEveryWordOfAFaceCanBeRead(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, f := range append(face.All(), faces()...) {
		expect.True(t, !seen[f.Type], "%s has two faces", f.Type)
		seen[f.Type] = true
		func() {
			defer func() {
				why := recover()
				expect.True(t, why == nil, "%v", why)
			}()
			v := reflect.New(f.Type).Interface()
			titles := map[string]bool{}
			for _, col := range f.Columns(true) {
				if col.Text(v, face.At{}); titles[col.Title] {
					t.Errorf("face of %s: two columns are called %s", f.Type, col.Title)
				}
				titles[col.Title] = true
			}
			for _, m := range f.Members() {
				m.Value(v)
			}
			for _, col := range f.List() {
				if col.Text != nil {
					col.Text(v, face.At{})
				}
			}
			f.ID(v)
			f.Head(v)
		}()
	}
}

var update = stdflag.Bool("update", false, "write what is shown anew")

// TestWhatFacesShow has each column, member and sentence of a record of which every
// member says its own name.
func TestWhatFacesShow(t *testing.T) {
	at := face.At{Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Dir: "/"}
	var b strings.Builder
	for _, f := range append(face.All(), faces()...) {
		v := reflect.New(f.Type)
		fill(v.Elem(), f.Type.Name(), at.Now, 6)
		row := v.Interface()
		fmt.Fprintf(&b, "%s: %s\n", f.Type, f.Says(row, "made", "noun make"))
		for i, col := range f.Columns(true) {
			wide := ""
			if all := f.Columns(false); !slices.ContainsFunc(all, func(c face.Column) bool { return c.Title == col.Title }) {
				wide = " (wide)"
			}
			fmt.Fprintf(&b, "  %d %s%s: %s\n", i, col.Title, wide, col.Text(row, at))
		}
		for i, m := range f.Members() {
			fmt.Fprintf(&b, "%s%s %s", map[bool]string{true: "  tool: ", false: ", "}[i == 0], m.Name, m.Type)
		}
		if len(f.Members()) > 0 {
			b.WriteString("\n")
		}
	}
	const path = "testdata/faces.txt"
	if *update {
		expect.No(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want := expect.Of(os.ReadFile(path))(t)
	expect.Is(t, b.String(), string(want), "what faces show has changed; look at the difference after go test ./engine/op -run WhatFacesShow -update")
}

// fill gives every member a value that says its name.
func fill(v reflect.Value, name string, now time.Time, deep int) {
	if deep == 0 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(len(name)))
	case reflect.Uint64, reflect.Uint32, reflect.Uint8:
		v.SetUint(uint64(len(name)))
	case reflect.Float64:
		v.SetFloat(float64(len(name)) / 4)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name, now, deep-1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`{"of":"` + name + `"}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), name+"_1", now, deep-1)
		fill(v.Index(1), name+"_2", now, deep-1)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(now.Add(-time.Duration(len(name)) * time.Hour)))
			return
		}
		for i := range v.NumField() {
			member, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			fill(v.Field(i), cmp.Or(member, v.Type().Field(i).Name), now, deep-1)
		}
	}
}

func TestEveryListHasColumns(t *testing.T) {
	for _, n := range Nouns() {
		for _, o := range n.Ops() {
			out := reflect.New(o.Out).Elem().Interface()
			_, of := face.Rows(out)
			f := FaceOf(of)
			if _, page := out.(interface{ Rows() (any, core.PageInfo) }); page && (f == nil || len(f.Columns(false)) == 0) {
				t.Errorf("%s lists %s, which has no columns", o.Name, of)
			}
		}
	}
}
