// Package schema checks JSON objects by a JSON Schema (2020-12) that anyone may
// have written: what it costs is bounded, nothing is loaded from elsewhere, and
// each mistake is told in plain words by the name of its field.
package schema

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"swarmdeck/engine/core"
)

// draft is the one dialect of schemas (requirement 3.1).
const draft = "https://json-schema.org/draft/2020-12/schema"

// here is what a schema's references resolve against.
const here = "urn:schema"

// Violation is one thing wrong with a JSON value: where, and what.
type Violation struct {
	Path    []string // tokens of a JSON pointer
	Message string
}

// Check lists what is wrong with a schema of parameters or results: it
// must be JSON Schema 2020-12 that is complete in itself and lets an object
// through, and its defaults must pass it.
func Check(raw core.Raw) []Violation {
	if _, err := core.Canonical(raw); err != nil {
		return []Violation{{Message: err.Error()}}
	}
	doc, err := plainValue(raw)
	if err != nil {
		return []Violation{{Message: err.Error()}}
	}
	top, _ := doc.(map[string]any)
	if d, given := top["$schema"]; given && d != draft && d != draft+"#" {
		return []Violation{{[]string{"$schema"}, fmt.Sprintf("%q is not allowed; allowed: %s", core.ClipTo(fmt.Sprint(d), 80), draft)}}
	}
	schema, err := compile(doc)
	if err != nil {
		return schemaViolations(doc, err)
	}
	if why := endless(schema); why != "" {
		return []Violation{{nil, why}}
	}
	if t := schema.Types; t != nil && !slices.Contains(t.ToStrings(), "object") {
		return []Violation{{[]string{"type"}, fmt.Sprintf("%q is not allowed; allowed: object, as parameters and results are JSON objects", strings.Join(t.ToStrings(), ", "))}}
	}
	return defaultViolations(schema, doc)
}

// compile makes a schema ready to validate with. It loads nothing from
// elsewhere.
func compile(doc any) (schema *jsonschema.Schema, err error) {
	defer func() { // the compiler is not ours: its panics are mistakes of the schema
		if p := recover(); p != nil {
			err = errors.New("not a valid JSON Schema")
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nowhere{})
	if err := c.AddResource(here, doc); err != nil {
		return nil, err
	}
	return c.Compile(here)
}

// nowhere is the loader of schemas that a reference names: there are none.
type nowhere struct{}

var errElsewhere = errors.New("a schema must be complete in itself")

func (nowhere) Load(string) (any, error) { return nil, errElsewhere }

// schemaViolations tells why a schema does not compile.
func schemaViolations(doc any, err error) []Violation {
	var invalid *jsonschema.SchemaValidationError
	var found *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &found) {
		return violationsOf(found)
	}
	if _, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		if at, ref := elsewhere(doc, nil); at != nil {
			return []Violation{{at, fmt.Sprintf("%q is not allowed; allowed: a reference within the schema, like #/$defs/name", core.ClipTo(ref, 80))}}
		}
	}
	if regex, ok := errors.AsType[*jsonschema.InvalidRegexError](err); ok {
		return []Violation{{pointer(regex.URL), fmt.Sprintf("%q is not a regular expression that is allowed here: %v", core.ClipTo(regex.Regex, 80), regex.Err)}}
	}
	if nothing, ok := errors.AsType[*jsonschema.JSONPointerNotFoundError](err); ok {
		return []Violation{{nil, "a $ref names " + fragment(nothing.URL) + ", which is not there"}}
	}
	return []Violation{{nil, "not a valid JSON Schema: " + core.ClipTo(strings.ReplaceAll(err.Error(), here, ""), 200)}}
}

// elsewhere finds the first reference that leaves the schema.
func elsewhere(v any, at []string) ([]string, string) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"$ref", "$dynamicRef", "$schema"} {
			if ref, ok := v[name].(string); ok && !strings.HasPrefix(ref, "#") && ref != draft {
				return append(at[:len(at):len(at)], name), ref
			}
		}
		for name, member := range v {
			if found, ref := elsewhere(member, append(at[:len(at):len(at)], name)); found != nil {
				return found, ref
			}
		}
	case []any:
		for i, item := range v {
			if found, ref := elsewhere(item, append(at[:len(at):len(at)], strconv.Itoa(i))); found != nil {
				return found, ref
			}
		}
	}
	return nil, ""
}

func fragment(location string) string {
	_, after, _ := strings.Cut(location, "#")
	if plain, err := url.PathUnescape(after); err == nil {
		after = plain
	}
	return "#" + core.ClipTo(after, 80)
}

// pointer is the place in the schema that a location names.
func pointer(location string) []string {
	path := strings.TrimPrefix(fragment(location), "#")
	if !strings.HasPrefix(path, "/") {
		return nil
	}
	var tokens []string
	for t := range jsontext.Pointer(path).Tokens() {
		tokens = append(tokens, t)
	}
	return tokens
}

// A validator applies schemas to one value as often as references and
// combinations ask for, and that multiplies from level to level: a few hundred
// bytes of schema can ask for more checks than there is time for. So both are
// bounded before: how many checks one value may take, and all of a document.
const (
	maxSpread = 1000
	maxChecks = 5_000_000 // a few seconds
)

// inPlace are the schemas that look at the same value as s does.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	if s.DynamicRef != nil {
		all = append(all, s.DynamicRef.Ref)
	}
	all = append(append(append(all, s.AllOf...), s.AnyOf...), s.OneOf...)
	return slices.AppendSeq(all, maps.Values(s.DependentSchemas))
}

// parts are the schemas that look at parts of the value.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema}
	all = slices.AppendSeq(all, maps.Values(s.Properties))
	all = slices.AppendSeq(all, maps.Values(s.PatternProperties))
	if more, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		all = append(all, more)
	}
	return append(all, s.PrefixItems...)
}

// weigh adds up what own says of a schema and of all that look at the same value,
// and gives the greatest sum of those that s leads to. loop says that a reference
// leads back to where it stands.
func weigh(s *jsonschema.Schema, own func(*jsonschema.Schema) float64) (most float64, loop bool) {
	known, open := map[*jsonschema.Schema]float64{}, map[*jsonschema.Schema]bool{}
	var sum func(*jsonschema.Schema) float64
	sum = func(s *jsonschema.Schema) float64 {
		n, done := known[s]
		if s == nil || done {
			return n
		}
		if open[s] {
			loop = true
			return 0
		}
		open[s] = true
		n = own(s)
		for _, part := range inPlace(s) {
			n += sum(part)
		}
		delete(open, s)
		known[s] = n
		return n
	}
	eachSchema(s, func(s *jsonschema.Schema) { most = max(most, sum(s)) })
	return most, loop
}

// fan is by how much the checks multiply at most from one level of a document
// to the next: those schemas of a place count that look at parts of the value.
func fan(s *jsonschema.Schema) float64 {
	most, _ := weigh(s, func(s *jsonschema.Schema) float64 {
		if slices.ContainsFunc(parts(s), func(part *jsonschema.Schema) bool { return part != nil }) {
			return 1
		}
		return 0
	})
	return max(1, most)
}

// eachSchema visits a schema and all that it leads to, each once.
func eachSchema(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	seen := map[*jsonschema.Schema]bool{nil: true}
	next := []*jsonschema.Schema{s}
	for len(next) > 0 {
		s, next = next[len(next)-1], next[:len(next)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		visit(s)
		next = append(append(next, inPlace(s)...), parts(s)...)
	}
}

// endless tells why checking by a schema might not end, "" if it will.
func endless(s *jsonschema.Schema) string {
	most, loop := weigh(s, func(*jsonschema.Schema) float64 { return 1 })
	switch {
	case loop:
		return "a reference leads back to where it stands"
	case most > maxSpread:
		return fmt.Sprintf("it asks for more than %d checks of one value", maxSpread)
	}
	return ""
}

// checks is how many a value takes at most by a schema of this fan.
func checks(v any, fan float64, depth int) float64 {
	n := math.Pow(fan, float64(depth))
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += checks(item, fan, depth+1)
		}
	case map[string]any:
		for _, member := range v {
			n += checks(member, fan, depth+1)
		}
	}
	return n
}

// The validator works on maps, slices, strings, bools, nil and json.Number.
// Here JSON becomes that, and JSON again.

// plainValue decodes JSON for the validator: numbers keep their digits, and
// none is of a size that arithmetic on it would take long.
func plainValue(raw core.Raw) (v any, err error) {
	numbers := json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
		if dec.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		tok, err := dec.ReadToken()
		if err == nil {
			*v, err = number(tok.String())
		}
		return err
	})
	err = json.Unmarshal(raw, &v, json.WithUnmarshalers(numbers))
	if large, ok := errors.AsType[*core.Error](err); ok {
		return nil, large
	}
	return v, err
}

// number is one of a size that exact arithmetic can afford: an exponent of a
// million would cost minutes.
func number(text string) (stdjson.Number, error) {
	const most = 400
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if e, err := strconv.Atoi(exponent); len(text) > most || exponent != "" && (err != nil || e > most || e < -most) {
		return "", core.Errorf(core.InvalidInput, "number %s is not allowed; allowed: at most %d digits, an exponent of -%d to %d", core.ClipTo(text, 40), most, most, most)
	}
	return stdjson.Number(text), nil
}

// encodePlain writes a value as compact JSON with sorted names.
func encodePlain(v any) ([]byte, error) {
	numbers := json.MarshalToFunc(func(enc *jsontext.Encoder, n stdjson.Number) error { return enc.WriteValue(core.Raw(n)) })
	return json.Marshal(v, json.Deterministic(true), json.WithMarshalers(numbers))
}

// clonePlain copies a value, so that a default is never shared.
func clonePlain(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = clonePlain(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = clonePlain(member)
		}
		return out
	}
	return v
}
