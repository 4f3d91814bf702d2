package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

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
