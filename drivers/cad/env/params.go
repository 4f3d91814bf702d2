package env

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Common are the params that every method takes.
type Common struct {
	WorkspaceID string `json:"workspace_id"` // the one switched to, main at first
	AgentID     string `json:"agent_id"`
	DeadlineMS  int    `json:"deadline_ms"` // 1 to 600000; 60000 where nothing is given
}

// Vec is a place or a direction of 2 or 3 numbers; z is 0 where it is left out.
type Vec [3]float64

// UnmarshalJSON takes 2 or 3 numbers.
func (v *Vec) UnmarshalJSON(data []byte) error {
	var list []float64
	if err := core.Decode(data, &list); err != nil {
		return err
	}
	if len(list) != 2 && len(list) != 3 {
		return fmt.Errorf("%d numbers", len(list))
	}
	*v = Vec{}
	copy(v[:], list)
	return nil
}

// Place is a place in space: a Vec, or the name of a point or of a curve's
// .start, .end or .center, whose place now is taken.
type Place struct {
	At  Vec
	Ref string
}

// UnmarshalJSON takes a name or 2 or 3 numbers.
func (p *Place) UnmarshalJSON(data []byte) error {
	if strings.HasPrefix(string(data), `"`) {
		return core.Decode(data, &p.Ref)
	}
	return core.Decode(data, &p.At)
}

// field is one param of a method.
type field struct {
	name     string
	index    []int
	required bool
	is       string // what it is, for who has not used it yet
}

// fields reads the params of a method off the struct that holds them: the json
// tag names a param, the tag need:"" marks one that must be given, and the tag is
// says more of it than its type. Those of a member without a name are its own.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			for _, inner := range fields(f.Type) {
				inner.index = append(slices.Clone(f.Index), inner.index...)
				out = append(out, inner)
			}
			continue
		}
		_, required := f.Tag.Lookup("need")
		out = append(out, field{name: name, index: f.Index, required: required, is: f.Tag.Get("is")})
	}
	return out
}

var commonFields = fields(reflect.TypeFor[Common]())

// decodeParams fills structs from a JSON object and lists what is wrong with it.
// Each param must be known and of its type, numbers must be finite and within
// MaxLength, and what is needed must be there. With later, ${references} to what
// is known later may stand for values: open tells that one stands for more than a
// text.
func decodeParams(params core.Raw, known []field, into, common reflect.Value, later bool) (wrong []error, open bool) {
	all := map[string]core.Raw{}
	if len(params) > 0 {
		if params.Kind() != '{' {
			return []error{Invalid("params", params, "an object of named parameters")}, false
		}
		if err := core.Decode(params, &all); err != nil {
			return []error{Refuse(InvalidParameter, "params", params, err.Error(), "give each parameter once")}, false
		}
	}
	for _, set := range []struct {
		known []field
		into  reflect.Value
	}{{known, into}, {commonFields, common}} {
		for _, f := range set.known {
			value, ok := all[f.name]
			delete(all, f.name)
			at := set.into.FieldByIndex(f.index)
			_, whole := takes(at.Type())
			switch {
			case !ok || value.Kind() == 'n':
				if f.required {
					wrong = append(wrong, Refuse(InvalidParameter, f.name, nil, f.name+" is missing", "give "+whole))
				}
			case core.Decode(value, at.Addr().Interface()) == nil && bounded(at):
			case later && strings.Contains(string(value), "${"):
				open = true
			default:
				wrong = append(wrong, Invalid(f.name, value, whole))
			}
		}
	}
	allowed := core.Map(slices.Concat(known, commonFields), func(f field) string { return f.name })
	for _, name := range slices.Sorted(maps.Keys(all)) {
		suggestion := "allowed: " + strings.Join(allowed, ", ")
		if near := nearest(name, allowed); near != "" {
			suggestion = "did you mean " + near + "? " + suggestion
		}
		wrong = append(wrong, Refuse(InvalidParameter, shown(name).(string), all[name], fmt.Sprintf("%s: unknown parameter", shown(name)), suggestion))
	}
	return wrong, open
}

// takes says what a param of a type takes: in a few words, and with its bounds.
func takes(t reflect.Type) (short, whole string) {
	switch t {
	case reflect.TypeFor[Vec]():
		return "[x,y,z]", fmt.Sprintf("2 or 3 numbers from -%g to %g", MaxLength, MaxLength)
	case reflect.TypeFor[Place]():
		return "[x,y,z] or the name of a point", fmt.Sprintf("2 or 3 numbers from -%g to %g, or the name of a point", MaxLength, MaxLength)
	case reflect.TypeFor[[3]float64]():
		_, whole = takes(t.Elem())
		return "[x,y,z]", "a list, each of it " + whole
	case reflect.TypeFor[core.Raw]():
		return "JSON", "a JSON value"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return takes(t.Elem())
	case reflect.String:
		return "text", "a text of at most 1000 bytes"
	case reflect.Bool:
		return "true or false", "true or false"
	case reflect.Int:
		return "whole number", "a whole number"
	case reflect.Float64:
		return "number", fmt.Sprintf("a number from -%g to %g", MaxLength, MaxLength)
	case reflect.Slice, reflect.Array:
		short, whole = takes(t.Elem())
		return "list of " + short, "a list, each of it " + whole
	}
	names := strings.Join(core.Map(fields(t), func(f field) string { return f.name }), ", ")
	return "{" + names + "}", "an object of " + names
}

// given is what a param was given, or what is usual.
func given[T any](param *T, usual T) T {
	if param == nil {
		return usual
	}
	return *param
}

// bounded refuses numbers and texts out of range, wherever they stand.
func bounded(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Float64:
		return math.Abs(v.Float()) <= MaxLength
	case reflect.Int:
		return v.Int() >= math.MinInt32 && v.Int() <= math.MaxInt32
	case reflect.String:
		return v.Len() <= 1000
	case reflect.Pointer:
		return v.IsNil() || bounded(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if !bounded(v.Field(i)) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type() == reflect.TypeFor[core.Raw]() {
			return true
		}
		for i := range v.Len() {
			if !bounded(v.Index(i)) {
				return false
			}
		}
	}
	return true
}

// nearest is the name that a mistyped one most likely meant, "" when none is
// near.
func nearest(name string, names []string) string {
	if len(name) > 64 || len(names) == 0 {
		return ""
	}
	best := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(edits(name, a), edits(name, b)) })
	if edits(name, best) > max(2, len(name)/3) {
		return ""
	}
	return best
}

// edits is the number of letters to insert, remove or replace between two words
// (Levenshtein).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
