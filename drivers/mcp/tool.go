package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

// The types of parameters. An object is a JSON object whose members the tool
// itself checks.
const (
	text    = "string"
	integer = "integer"
	yesNo   = "boolean"
	object  = "object"
)

// param is one parameter of a tool. Its schema and its check come from the
// same fields.
type param struct {
	name     string
	kind     string
	about    string
	required bool
	def      any                   // what it is when it is left out; nil leaves it out
	pattern  func() *regexp.Regexp // of a text
	enum     []string              // of a text
	min, max int                   // of an integer its range, of a text its characters; no bounds when max is 0
	// into is where an operation has it: a *op.Param or a field of its filter.
	into func(o *op.Op, w *wait) any
}

func (p param) schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: p.kind, Description: p.about}
	if p.def != nil {
		s.Default = json.RawMessage(core.MustEncode(p.def))
	}
	for _, e := range p.enum {
		s.Enum = append(s.Enum, e)
	}
	if p.pattern != nil {
		s.Pattern = p.pattern().String()
	}
	switch {
	case p.kind == integer && p.max > 0:
		low, high := float64(p.min), float64(p.max)
		s.Minimum, s.Maximum = &low, &high
	case p.kind == text && p.enum == nil && p.max > 0:
		s.MinLength, s.MaxLength = &p.min, &p.max
	}
	return s
}

// inputSchema is the schema of a tool's arguments.
func inputSchema(params []param) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: nothing(),
	}
	for _, p := range params {
		s.Properties[p.name] = p.schema()
		s.PropertyOrder = append(s.PropertyOrder, p.name)
		if p.required {
			s.Required = append(s.Required, p.name)
		}
	}
	return s
}

// checkArgs returns the arguments as the tool will see them: valid, with
// defaults, their members sorted. The error names the field.
func checkArgs(params []param, raw core.Raw) (core.Raw, error) {
	if len(raw) == 0 || string(raw) == "null" {
		raw = core.Raw("{}")
	}
	if err := core.CheckObject("arguments", raw, core.MaxInput); err != nil {
		return nil, err
	}
	given := map[string]core.Raw{}
	if err := core.Decode(raw, &given); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	out := make(map[string]any, len(params))
	for _, p := range params {
		value, there := given[p.name]
		delete(given, p.name)
		if there && value.Kind() != 'n' {
			if err := p.check(value); err != nil {
				return nil, err
			}
			out[p.name] = value
			continue
		}
		if p.required {
			return nil, core.Errorf(core.InvalidInput, "%s: missing", p.name).With("field", p.name)
		}
		if p.def != nil {
			out[p.name] = p.def
		}
	}
	for name := range given {
		known := core.Map(params, func(p param) string { return p.name })
		name = clean(clip(name))
		return nil, core.Errorf(core.InvalidInput, "%s: unknown field; allowed: %s", name, strings.Join(known, ", ")).With("field", name)
	}
	canonical, err := core.Canonical(core.MustEncode(out))
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	return canonical, nil
}

// kinds names what a JSON value is by its first character.
var kinds = map[byte]string{'"': text, '0': "number", 't': yesNo, 'f': yesNo, '{': object, '[': "array", 'n': "null"}

func (p param) check(value core.Raw) error {
	kind := kinds[byte(value.Kind())]
	if p.kind == integer && kind == "number" {
		return p.checkInteger(value)
	}
	if kind != p.kind {
		return core.Errorf(core.InvalidInput, "%s: want %s, got %s", p.name, p.kind, kind).With("field", p.name)
	}
	if p.kind != text {
		return nil
	}
	var s string
	if err := core.Decode(value, &s); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	shown := clean(s)
	switch n := utf8.RuneCountInString(s); {
	case p.enum != nil && !slices.Contains(p.enum, s):
		return core.Invalid(p.name, shown, strings.Join(p.enum, ", "))
	case p.pattern != nil && !p.pattern().MatchString(s):
		return core.Invalid(p.name, shown, p.pattern().String())
	case p.max > 0 && (n < p.min || n > p.max):
		return core.Invalid(p.name, shown, fmt.Sprintf("%d-%d characters", p.min, p.max))
	}
	return nil
}

func (p param) checkInteger(value core.Raw) error {
	var n float64
	if err := json.Unmarshal(value, &n); err != nil || n != math.Trunc(n) || p.max > 0 && (n < float64(p.min) || n > float64(p.max)) {
		return core.Invalid(p.name, string(value), fmt.Sprintf("a whole number, %d-%d", p.min, p.max))
	}
	return nil
}

// clip bounds what an error repeats of a name from outside.
func clip(s string) string { return core.ClipTo(s, 80) }

// tool is something that clients may call.
type tool struct {
	name, title, about string
	effect             op.Effect
	role               op.Role // the least of an operator that may; each call of an agent is judged
	params             []param
	out                *jsonschema.Schema
	// fill refuses mistaken arguments, and completes them, before they are judged.
	fill func(c *call, args core.Raw) (core.Raw, error)
	run  func(ctx context.Context, c *call, args core.Raw) (any, error)
}

// schemaOf is the schema of a type. Lists are never null.
func schemaOf(t reflect.Type) *jsonschema.Schema {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		// What a record holds as JSON is always an object.
		reflect.TypeFor[core.Raw](): {Type: "object", AdditionalProperties: &jsonschema.Schema{}},
	}})
	if err != nil {
		panic(fmt.Sprintf("mcp: the schema of %s: %v", t, err)) // every test of this package would find it first
	}
	neverNull(s)
	return s
}

// orError is the schema of a result, or of the error in its place: some clients
// check errors by it too.
func orError(s *jsonschema.Schema) *jsonschema.Schema {
	s.Required = nil
	s.Properties["error"] = &jsonschema.Schema{
		Type: "object", Description: "instead of a result: why there is none", Required: []string{"code", "message"},
		Properties: map[string]*jsonschema.Schema{
			"code": {Type: "string"}, "message": {Type: "string"}, "details": {Type: "object", AdditionalProperties: &jsonschema.Schema{}},
		},
	}
	return s
}

// nothing is the schema that no value fits.
func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

func neverNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		neverNull(p)
	}
	neverNull(s.Items)
	neverNull(s.AdditionalProperties)
}

// declare is the tool as clients see it.
func (t tool) declare() *mcp.Tool {
	destroys, open := t.effect == op.Destroys, false
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.about,
		InputSchema: inputSchema(t.params), OutputSchema: t.out,
		Annotations: &mcp.ToolAnnotations{
			Title: t.title, ReadOnlyHint: t.effect == op.Reads, IdempotentHint: t.effect == op.Reads,
			DestructiveHint: &destroys, OpenWorldHint: &open,
		},
	}
}

// maxAnswer bounds a result in bytes of JSON.
const maxAnswer = 4 << 20

// answer is the result of a call as clients get it.
func answer(v any) (*mcp.CallToolResult, error) {
	data, err := core.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	if len(data) > maxAnswer {
		return nil, core.Errorf(core.Unavailable, "the result has %d bytes, at most %d can be sent; ask for a smaller page", len(data), maxAnswer).With("field", "page_size")
	}
	plain, err := cleanJSON(data)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(plain)}},
		StructuredContent: json.RawMessage(plain),
	}, nil
}

// failure is an error as clients get it: content that a model can read.
func failure(err error) *mcp.CallToolResult {
	data, encErr := core.Encode(map[string]any{"error": core.AsError(err)})
	if encErr == nil {
		data, encErr = cleanJSON(data)
	}
	if encErr != nil {
		data = []byte(`{"error":{"code":"INTERNAL_ERROR","message":"the error can't be encoded"}}`)
	}
	return &mcp.CallToolResult{
		IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: string(data)}}, StructuredContent: json.RawMessage(data),
	}
}
