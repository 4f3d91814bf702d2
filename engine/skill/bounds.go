package skill

import (
	"fmt"
	"math"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A validator applies schemas to one value as often as references and
// combinations ask for, and that multiplies from level to level: a few hundred
// bytes of schema can ask for more checks than there is time for. So both are
// bounded before: how many checks one value may take, and all of a document.
const (
	maxSpread = 1000
	maxChecks = 5_000_000 // a few seconds
)

// spread counts the schemas that are applied to one value at the same place.
type spread struct {
	known map[*jsonschema.Schema]float64
	open  map[*jsonschema.Schema]bool
	loop  bool
}

// inPlace are the schemas that look at the same value as s does.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	if s.DynamicRef != nil {
		all = append(all, s.DynamicRef.Ref)
	}
	all = append(append(append(all, s.AllOf...), s.AnyOf...), s.OneOf...)
	for _, d := range s.DependentSchemas {
		all = append(all, d)
	}
	return all
}

// parts are the schemas that look at parts of the value.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema}
	for _, p := range s.Properties {
		all = append(all, p)
	}
	for _, p := range s.PatternProperties {
		all = append(all, p)
	}
	if more, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		all = append(all, more)
	}
	return append(all, s.PrefixItems...)
}

func (c *spread) of(s *jsonschema.Schema) float64 {
	if s == nil {
		return 0
	}
	if n, ok := c.known[s]; ok {
		return n
	}
	if c.open[s] {
		c.loop = true
		return 0
	}
	c.open[s] = true
	n := 1.0
	for _, part := range inPlace(s) {
		n += c.of(part)
	}
	delete(c.open, s)
	c.known[s] = n
	return n
}

// fan is by how much the checks multiply at most from one level of a document
// to the next: those schemas of a place count that look at parts of the value.
func fan(s *jsonschema.Schema) float64 {
	known := map[*jsonschema.Schema]float64{}
	var at func(s *jsonschema.Schema) float64
	at = func(s *jsonschema.Schema) float64 {
		if s == nil {
			return 0
		}
		if n, ok := known[s]; ok {
			return n
		}
		known[s] = 0
		n := 0.0
		for _, part := range parts(s) {
			if part != nil {
				n = 1
			}
		}
		for _, part := range inPlace(s) {
			n += at(part)
		}
		known[s] = n
		return n
	}
	most := 1.0
	eachSchema(s, func(s *jsonschema.Schema) { most = max(most, at(s)) })
	return most
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
	c := spread{known: map[*jsonschema.Schema]float64{}, open: map[*jsonschema.Schema]bool{}}
	most := 0.0
	eachSchema(s, func(s *jsonschema.Schema) { most = max(most, c.of(s)) })
	switch {
	case c.loop:
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
