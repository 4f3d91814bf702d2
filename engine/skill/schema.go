package skill

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"swarmdeck/engine/core"
)

// draft is the one dialect of schemas (contract 3.1).
const draft = "https://json-schema.org/draft/2020-12/schema"

// here is what a schema's references resolve against.
const here = "urn:skill"

// flaw is one thing wrong with a JSON value: where, and what.
type flaw struct {
	path    []string // tokens of a JSON pointer
	message string
}

// checkSchema lists what is wrong with a schema of parameters or results: it
// must be JSON Schema 2020-12 that is complete in itself and lets an object
// through, and its defaults must pass it.
func checkSchema(raw core.Raw) []flaw {
	if _, err := core.Canonical(raw); err != nil {
		return []flaw{{message: err.Error()}}
	}
	doc, err := plainValue(raw)
	if err != nil {
		return []flaw{{message: err.Error()}}
	}
	top, _ := doc.(map[string]any)
	if d, given := top["$schema"]; given && d != draft && d != draft+"#" {
		return []flaw{{[]string{"$schema"}, fmt.Sprintf("%q is not allowed; allowed: %s", shorten(fmt.Sprint(d), 80), draft)}}
	}
	schema, err := compile(doc)
	if err != nil {
		return schemaFlaws(doc, err)
	}
	if why := endless(schema); why != "" {
		return []flaw{{nil, why}}
	}
	if t := schema.Types; t != nil && !slices.Contains(t.ToStrings(), "object") {
		return []flaw{{[]string{"type"}, fmt.Sprintf("%q is not allowed; allowed: object, as parameters and results are JSON objects", strings.Join(t.ToStrings(), ", "))}}
	}
	return defaultFlaws(schema, doc)
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

// schemaFlaws tells why a schema does not compile.
func schemaFlaws(doc any, err error) []flaw {
	var invalid *jsonschema.SchemaValidationError
	var found *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &found) {
		return flawsOf(found)
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		if at, ref := elsewhere(doc, nil); at != nil {
			return []flaw{{at, fmt.Sprintf("%q is not allowed; allowed: a reference within the schema, like #/$defs/name", shorten(ref, 80))}}
		}
	}
	var regex *jsonschema.InvalidRegexError
	if errors.As(err, &regex) {
		return []flaw{{pointer(regex.URL), fmt.Sprintf("%q is not a regular expression that is allowed here: %v", shorten(regex.Regex, 80), regex.Err)}}
	}
	var nothing *jsonschema.JSONPointerNotFoundError
	if errors.As(err, &nothing) {
		return []flaw{{nil, "a $ref names " + fragment(nothing.URL) + ", which is not there"}}
	}
	return []flaw{{nil, "not a valid JSON Schema: " + shorten(strings.ReplaceAll(err.Error(), here, ""), 200)}}
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
	return "#" + shorten(after, 80)
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
