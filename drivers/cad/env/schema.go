package env

import (
	"cmp"
	"errors"
	"reflect"
	"strings"

	"swarmdeck/engine/core"
)

// Parameters knows what the methods of the environment take, without one that
// runs.
type Parameters struct{ methods map[string]method }

// NewParameters makes it.
func NewParameters() *Parameters { return &Parameters{methods()} }

// Check lists what is wrong with the parameters of an operation that is to be
// carried out later, as far as they tell by themselves: what is missing, unknown,
// of another type, out of range or does not fit together. Each error is a
// core.Error that names the parameter and what is allowed. ${references} to what
// is known only then may stand for a value.
func (p *Parameters) Check(name string, params core.Raw) []error {
	m, known := p.methods[name]
	if !known {
		return []error{core.Invalid("method", name, "a method")}
	}
	if m.fixed != "" {
		params = fix(params, m.fixed)
	}
	wrong := m.check(params)
	for i, err := range wrong {
		if e, ok := errors.AsType[*Error](err); ok {
			wrong[i] = core.Errorf(core.InvalidInput, "%s; %s", e.Message, e.Data.Suggestion).With("field", e.Data.Field).With("value", e.Data.Value)
		}
	}
	return wrong
}

// Takes is what a method takes, in one line: each parameter with its type and what
// it is, * for one that is needed. What every method takes is left out.
func (p *Parameters) Takes(name string) string {
	m := p.methods[name]
	of := reflect.TypeOf(m.params)
	if of == nil {
		return ""
	}
	var all []string
	for _, f := range m.fields {
		if strings.Contains(m.fixed, `"`+f.name+`"`) {
			continue
		}
		text := f.name
		if f.required {
			text += "*"
		}
		text += " " + short(of.FieldByIndex(f.index).Type)
		if f.is != "" {
			text += " (" + f.is + ")"
		}
		all = append(all, text)
	}
	return cmp.Or(strings.Join(all, ", "), "nothing")
}

// short is a type in a few words.
func short(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Vec](), reflect.TypeFor[[3]float64]():
		return "[x,y,z]"
	case reflect.TypeFor[Place]():
		return "[x,y,z] or the name of a point"
	case reflect.TypeFor[core.Raw]():
		return "JSON"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return short(t.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "list of " + short(t.Elem())
	}
	names := core.Map(fields(t), func(f field) string { return f.name })
	return "{" + strings.Join(names, ", ") + "}"
}
