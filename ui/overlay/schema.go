package overlay

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
)

// SchemaFields are the fields of a form for a JSON Schema of an object, one
// for each property, in the schema's order. What one field can't ask for (an
// object, an array, one of several types, a reference) is entered as JSON.
// Rules beyond the type are told in the description; whoever takes the object
// has to check them.
func SchemaFields(schema core.Raw) []Field {
	var object struct {
		Properties core.Raw `json:"properties"`
		Required   []string `json:"required"`
	}
	if core.DecodeStored(schema, &object) != nil || object.Properties.Kind() != '{' {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(object.Properties))
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	var fields []Field
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		f := Field{Name: name.String()}
		property, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		f.Required = slices.Contains(object.Required, f.Name)
		f.describe(property)
		fields = append(fields, f)
	}
	return fields
}

// describe takes what the schema of a property says.
func (f *Field) describe(schema core.Raw) {
	f.Type = JSONField
	var p map[string]core.Raw
	if core.DecodeStored(schema, &p) != nil { // true and false are schemas too
		return
	}
	var types []string
	if core.DecodeStored(p["type"], &types) != nil {
		types = []string{textOf(p["type"])}
	}
	types = slices.DeleteFunc(types, func(t string) bool { return t == "null" })
	if len(types) == 1 {
		switch t := FieldType(types[0]); t {
		case StringField, NumberField, IntegerField, BooleanField:
			f.Type = t
		}
	}
	if core.DecodeStored(p["enum"], &f.Enum) == nil && len(f.Enum) > 0 {
		f.Type = EnumField
	} else if v := p["const"]; len(v) > 0 {
		f.Type, f.Enum = EnumField, []core.Raw{v}
	}
	titles := f.titled(p["oneOf"])
	f.Default = p["default"]
	f.Description = cmp.Or(textOf(p["description"]), textOf(p["title"]))
	for _, more := range []string{titles, rulesOf(p)} {
		if more != "" {
			f.Description = strings.TrimSpace(f.Description + " (" + more + ")")
		}
	}
}

// titled takes the values of an enum that gives each a title, and returns the titles.
func (f *Field) titled(oneOf core.Raw) string {
	var each []struct {
		Const core.Raw `json:"const"`
		Title string   `json:"title"`
	}
	if f.Type == JSONField || core.DecodeStored(oneOf, &each) != nil {
		return ""
	}
	var values []core.Raw
	var titles []string
	for _, e := range each {
		if len(e.Const) == 0 {
			return "" // alternatives of another kind
		}
		values = append(values, e.Const)
		if e.Title != "" {
			titles = append(titles, strings.Trim(string(e.Const), `"`)+": "+e.Title)
		}
	}
	if len(values) > 0 {
		f.Type, f.Enum = EnumField, values
	}
	return strings.Join(titles, ", ")
}

// rulesOf are the rules of a property in words.
func rulesOf(p map[string]core.Raw) string {
	var rules []string
	for _, r := range [][2]string{
		{"minimum", "at least %"},
		{"exclusiveMinimum", "more than %"},
		{"maximum", "at most %"},
		{"exclusiveMaximum", "less than %"},
		{"multipleOf", "a multiple of %"},
		{"minLength", "at least % characters"},
		{"maxLength", "at most % characters"},
		{"minItems", "at least % items"},
		{"maxItems", "at most % items"},
		{"pattern", "like %"},
		{"format", "a %"},
	} {
		if v := p[r[0]]; len(v) > 0 {
			rules = append(rules, strings.Replace(r[1], "%", cmp.Or(textOf(v), string(v)), 1))
		}
	}
	return strings.Join(rules, ", ")
}

// textOf is the string that a JSON value is, or "".
func textOf(v core.Raw) string {
	var s string
	_ = core.DecodeStored(v, &s)
	return s
}
