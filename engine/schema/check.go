package schema

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"swarmdeck/engine/core"
)

// Checker is a schema ready to check with. It may be used from any goroutine.
type Checker struct {
	schema *jsonschema.Schema
	fan    float64
}

// New makes a schema ready; change, which may be nil, may leave parts of it out
// before.
func New(raw core.Raw, change func(doc any)) (*Checker, error) {
	doc, err := plainValue(raw)
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(doc)
	}
	schema, err := compile(doc)
	if err != nil {
		return nil, err
	}
	return &Checker{schema, fan(schema)}, nil
}

// Check checks a JSON object and returns it, with fill the schema's defaults
// filled in. The error names every mistake by its field below root,
// "params.speed". A nil Checker takes any object.
func (by *Checker) Check(root string, raw core.Raw, fill bool) (core.Raw, error) {
	if err := core.CheckObject(root, raw, core.MaxInput); err != nil {
		return nil, err
	}
	if by == nil {
		return raw, nil
	}
	v, err := plainValue(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", root, err)
	}
	if by.fan > 1 && checks(v, by.fan, 0) > maxChecks {
		return nil, core.Errorf(core.InvalidInput, "%s: nested too deeply for what its schema asks to be checked", root).With("field", root)
	}
	added := fill && fillDefaults(by.schema, v, 0)
	if err := mistakes(root, validate(by.schema, v)); err != nil || !added {
		return raw, err
	}
	return encodePlain(v)
}

// validate lists what a schema finds wrong with a value.
func validate(schema *jsonschema.Schema, v any) (violations []Violation) {
	defer func() { // the validator is not ours: its panics are mistakes of the schema
		if p := recover(); p != nil {
			violations = []Violation{{Message: "can't be checked against the schema"}}
		}
	}()
	err := schema.Validate(v)
	if err == nil {
		return nil
	}
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return violationsOf(invalid)
	}
	return []Violation{{Message: err.Error()}}
}

// maxDefaults bounds how far defaults are looked for: through references and
// into values that are themselves defaults.
const maxDefaults = 64

// fillDefaults adds the members of objects that are absent and have a
// default, through $ref and allOf, in nested objects and lists too. It tells
// whether it added any.
func fillDefaults(s *jsonschema.Schema, v any, depth int) (added bool) {
	if s == nil || depth > maxDefaults {
		return false
	}
	for _, part := range append([]*jsonschema.Schema{s.Ref}, s.AllOf...) {
		added = fillDefaults(part, v, depth+1) || added
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			property := s.Properties[name]
			if _, given := v[name]; !given {
				d := defaultOf(property, 0)
				if d == nil {
					continue
				}
				v[name] = clonePlain(*d)
				added = true
			}
			added = fillDefaults(property, v[name], depth+1) || added
		}
	case []any:
		for i, item := range v {
			of := s.Items2020
			if i < len(s.PrefixItems) {
				of = s.PrefixItems[i]
			}
			added = fillDefaults(of, item, depth+1) || added
		}
	}
	return added
}

// defaultOf is a property's default, its own or that of what it refers to.
func defaultOf(s *jsonschema.Schema, depth int) *any {
	if s == nil || depth > maxDefaults {
		return nil
	}
	if s.Default != nil {
		return s.Default
	}
	return defaultOf(s.Ref, depth+1)
}

// defaultViolations lists the defaults of top-level properties that their own
// schema does not allow.
func defaultViolations(s *jsonschema.Schema, doc any) []Violation {
	var found []Violation
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		if property.Default == nil {
			continue
		}
		for _, f := range validate(property, *property.Default) {
			at := append([]string{"properties", name, "default"}, f.Path...)
			found = append(found, Violation{at, fmt.Sprintf("the default does not fit: %s", f.Message)})
		}
	}
	return found
}

// maxViolations bounds what one report says.
const maxViolations = 20

// violationsOf tells in plain words what a validator found: each mistake at its
// place, once.
func violationsOf(err *jsonschema.ValidationError) []Violation {
	var found []Violation
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		switch e.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf:
			found = append(found, Violation{e.InstanceLocation, alternatives(e)})
			return
		}
		if len(e.Causes) == 0 {
			found = append(found, leaf(e)...)
			return
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(err)
	core.Sort(found, func(a, b Violation) int { return slices.Compare(a.Path, b.Path) })
	found = slices.CompactFunc(found, func(a, b Violation) bool { return slices.Equal(a.Path, b.Path) && a.Message == b.Message })
	if len(found) > maxViolations {
		found = append(found[:maxViolations], Violation{Message: fmt.Sprintf("%d more mistakes", len(found)-maxViolations)})
	}
	return found
}

// alternatives tells why none of several schemas fits, or too many do.
func alternatives(e *jsonschema.ValidationError) string {
	if k, ok := e.ErrorKind.(*kind.OneOf); ok && len(k.Subschemas) > 0 {
		return "fits more than one of the alternatives of which one is allowed"
	}
	var reasons []string
	for _, c := range e.Causes {
		for _, f := range violationsOf(c) {
			text := f.Message
			if below := f.Path[min(len(e.InstanceLocation), len(f.Path)):]; len(below) > 0 {
				text = fieldPath("", below) + ": " + text
			}
			if !slices.Contains(reasons, text) {
				reasons = append(reasons, text)
			}
		}
	}
	return "fits none of the alternatives: " + core.ClipTo(strings.Join(reasons, "; or "), 400)
}

func leaf(e *jsonschema.ValidationError) []Violation {
	below := func(names []string, message string) (all []Violation) {
		for _, name := range names {
			all = append(all, Violation{append(slices.Clone(e.InstanceLocation), name), message})
		}
		return all
	}
	bad := func(given, allowed string) []Violation {
		return []Violation{{e.InstanceLocation, fmt.Sprintf("%s is not allowed; allowed: %s", core.ClipTo(given, 80), allowed)}}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return below(k.Missing, "missing")
	case *kind.DependentRequired:
		return below(k.Missing, "missing; "+k.Prop+" needs it")
	case *kind.Dependency:
		return below(k.Missing, "missing; "+k.Prop+" needs it")
	case *kind.AdditionalProperties:
		return below(k.Properties, "unknown field")
	case *kind.Type:
		return []Violation{{e.InstanceLocation, "want " + strings.Join(k.Want, " or ") + ", got " + k.Got}}
	case *kind.Enum:
		allowed := core.Map(k.Want, shown)
		return bad(shown(k.Got), core.ClipTo(strings.Join(allowed, ", "), 400))
	case *kind.Const:
		return bad(shown(k.Got), shown(k.Want))
	case *kind.Minimum:
		return bad(ratio(k.Got), ratio(k.Want)+" or more")
	case *kind.Maximum:
		return bad(ratio(k.Got), ratio(k.Want)+" or less")
	case *kind.ExclusiveMinimum:
		return bad(ratio(k.Got), "more than "+ratio(k.Want))
	case *kind.ExclusiveMaximum:
		return bad(ratio(k.Got), "less than "+ratio(k.Want))
	case *kind.MultipleOf:
		return bad(ratio(k.Got), "a multiple of "+ratio(k.Want))
	case *kind.MinLength:
		return bad(fmt.Sprintf("%d characters", k.Got), fmt.Sprintf("%d or more", k.Want))
	case *kind.MaxLength:
		return bad(fmt.Sprintf("%d characters", k.Got), fmt.Sprintf("%d or less", k.Want))
	case *kind.Pattern:
		return bad(strconv.Quote(core.ClipTo(k.Got, 80)), "text that matches "+core.ClipTo(k.Want, 120))
	case *kind.FalseSchema:
		return []Violation{{e.InstanceLocation, "not allowed here"}}
	}
	text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	return []Violation{{e.InstanceLocation, core.ClipTo(text, 200)}}
}

func shown(v any) string {
	b, err := encodePlain(v)
	if err != nil {
		return core.ClipTo(fmt.Sprint(v), 80)
	}
	return core.ClipTo(string(b), 80)
}

func ratio(r *big.Rat) string {
	if r == nil {
		return "?"
	}
	if r.IsInt() {
		return core.ClipTo(r.Num().String(), 80)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// fieldPath writes the tokens of a JSON pointer the way fields are named:
// params.items[0].name.
func fieldPath(root string, tokens []string) string {
	path := root
	for _, t := range tokens {
		switch _, err := strconv.ParseUint(t, 10, 31); {
		case err == nil:
			path += "[" + t + "]"
		case path == "":
			path = core.ClipTo(t, 80)
		default:
			path += "." + core.ClipTo(t, 80)
		}
	}
	return path
}

// mistakes is the error that names every violation of a value, nil for none.
func mistakes(root string, violations []Violation) error {
	if len(violations) == 0 {
		return nil
	}
	type mistake struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	}
	all := make([]mistake, len(violations))
	lines := make([]string, len(violations))
	for i, f := range violations {
		all[i] = mistake{fieldPath(root, f.Path), f.Message}
		lines[i] = all[i].Field + ": " + all[i].Message
	}
	return core.Errorf(core.InvalidInput, "%s", strings.Join(lines, "\n")).
		With("field", all[0].Field).With("problems", all)
}
