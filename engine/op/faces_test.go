package op

import (
	"reflect"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
)

func TestEveryWordOfAFaceCanBeRead(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, f := range append(face.All(), faces()...) {
		if seen[f.Type] {
			t.Errorf("%s has two faces", f.Type)
		}
		seen[f.Type] = true
		func() {
			defer func() {
				if why := recover(); why != nil {
					t.Errorf("%v", why)
				}
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

func TestEveryListHasColumnsAndEveryChangeASentence(t *testing.T) {
	for _, n := range Nouns() {
		for _, o := range n.Ops() {
			if o.Out == reflect.TypeFor[any]() || o.Streams && o.Filter == nil {
				continue
			}
			out := reflect.New(o.Out).Elem().Interface()
			_, page := out.(interface{ Rows() (any, core.PageInfo) })
			_, of := face.Rows(out)
			f := FaceOf(of)
			if page && (f == nil || len(f.Columns(false)) == 0) {
				t.Errorf("%s lists %s, which has no columns", o.Name, of)
			}
		}
	}
}
