package skill

import (
	"fmt"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

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

// defaultFlaws lists the defaults of top-level properties that their own
// schema does not allow.
func defaultFlaws(s *jsonschema.Schema, doc any) []flaw {
	var found []flaw
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		if property.Default == nil {
			continue
		}
		for _, f := range validate(property, *property.Default) {
			at := append([]string{"properties", name, "default"}, f.path...)
			found = append(found, flaw{at, fmt.Sprintf("the default does not fit: %s", f.message)})
		}
	}
	return found
}
