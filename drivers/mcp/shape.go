package mcp

import (
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

// shape is how the result of operations stands in an answer.
type shape struct {
	of     reflect.Type
	schema func(o *op.Op) *jsonschema.Schema
	show   func(o *op.Op, out any) any
}

// shapeOf is the shape of an operation's result.
func shapeOf(o *op.Op) shape {
	for _, s := range shapes() {
		if s.of == o.Out {
			return s
		}
	}
	panic(fmt.Sprintf("operation %s: no shape shows a %s to clients", o.Name, o.Out))
}

// whole shows a result's own members.
func whole[T, V any](view func(*op.Op, T) V) shape {
	return shape{
		of: reflect.TypeFor[T](), schema: func(*op.Op) *jsonschema.Schema { return schemaOf[V]() },
		show: func(o *op.Op, out any) any { return view(o, out.(T)) },
	}
}

// records show one record by its noun, with what it came to unless it is a message
// itself, and many as a list or a page, with what that is of.
func records[T, V any](one, many string, view func(*op.Op, T) V) []shape {
	list := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "array", Items: schemaOf[V]()} }
	all := func(o *op.Op, items []T) []V { return views(items, func(v T) V { return view(o, v) }) }
	return []shape{{
		of: reflect.TypeFor[T](),
		schema: func(*op.Op) *jsonschema.Schema {
			s := objectOf("message", &jsonschema.Schema{Type: "string"})
			s.Properties[one] = schemaOf[V]()
			return s
		},
		show: func(o *op.Op, out any) any {
			shown := map[string]any{}
			if o.Effect != op.Reads {
				shown["message"] = line(o.Sentence(out), 1024)
			}
			shown[one] = view(o, out.(T))
			return shown
		},
	}, {
		of:     reflect.TypeFor[[]T](),
		schema: func(*op.Op) *jsonschema.Schema { return objectOf(many, list()) },
		show:   func(o *op.Op, out any) any { return map[string]any{many: all(o, out.([]T))} },
	}, {
		of: reflect.TypeFor[core.Page[T]](),
		schema: func(o *op.Op) *jsonschema.Schema {
			s := schemaOf[core.PageInfo]()
			s.Properties[many] = list()
			for name := range subjects(o) {
				s.Properties[name] = &jsonschema.Schema{Type: "string"}
			}
			return s
		},
		show: func(o *op.Op, out any) any {
			page := out.(core.Page[T])
			shown := map[string]any{
				many: all(o, page.Items), "total_count": page.Info.Total, "page": page.Info.Page,
				"page_size": page.Info.PageSize, "has_next_page": page.Info.Next, "has_previous_page": page.Info.Previous,
			}
			for name, value := range subjects(o) {
				shown[name] = value
			}
			return shown
		},
	}}
}

// objectOf is the schema of an object with one member.
func objectOf(name string, member *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", AdditionalProperties: nothing(), Properties: map[string]*jsonschema.Schema{name: member},
	}
}

// subjects are whose list it is: its arguments as they were called.
func subjects(o *op.Op) map[string]string {
	named := map[string]string{}
	for i, of := range o.Params {
		if of.Arg {
			named[parameter(o, of, i).name] = *of.Into.(*string)
		}
	}
	return named
}
