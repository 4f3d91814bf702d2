package document

import (
	"fmt"
	"reflect"
	"strings"
)

// Fill reads a mapping into the members of a struct that have the tag file, by the names
// that they have in JSON. The tag says how one is read where its type does not: "word" of
// one line or "prose" without the space around it, "1-10" for a whole number of these, and
// "object" for a mapping as JSON. A tag that ends in "needed" is of a member that must be
// there. Of a list it is that of the items; structs are filled by their own tags.
func (r *Reader) Fill(v Value, into any) Lines {
	fields, needed := map[string]func(Value){}, []string(nil)
	at := reflect.ValueOf(into).Elem()
	for _, f := range reflect.VisibleFields(at.Type()) {
		tag, filled := f.Tag.Lookup("file")
		if !filled {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		how, must := strings.CutSuffix(tag, "needed")
		if must {
			needed = append(needed, name)
		}
		fields[name] = func(v Value) { r.fill(v, at.FieldByIndex(f.Index), strings.TrimSpace(how)) }
	}
	return r.Object(v, fields, needed...)
}

// fill reads one member.
func (r *Reader) fill(v Value, to reflect.Value, how string) {
	switch {
	case to.Kind() == reflect.Slice && how != "object":
		items := Each(r, v, func(item Value) Value { return item })
		if items == nil {
			return
		}
		to.Set(reflect.MakeSlice(to.Type(), len(items), len(items)))
		for i, item := range items {
			r.fill(item, to.Index(i), how)
		}
	case how == "object" && v.Kind() != Mapping:
		r.Want(v, Mapping)
	case how == "object":
		to.SetBytes(r.Raw(v))
	case how == "word":
		to.SetString(r.Word(v))
	case how == "prose":
		to.SetString(strings.TrimSpace(r.Text(v)))
	case to.Kind() == reflect.String:
		to.SetString(r.Text(v))
	case to.Kind() == reflect.Float64:
		to.SetFloat(r.Number(v))
	case to.Kind() == reflect.Struct:
		r.Fill(v, to.Addr().Interface())
	default:
		var low, high int
		_, _ = fmt.Sscanf(how, "%d-%d", &low, &high)
		to.SetInt(int64(r.Range(v, low, high)))
	}
}
