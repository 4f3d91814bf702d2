package otlp

import (
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// What was said is told only where Settings.Content asks for it.

// Bounds of one attribute with content, in bytes.
const (
	maxContent = 16 << 10
	maxPart    = 4 << 10
)

// message is one of gen_ai.input.messages and gen_ai.output.messages.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string   `json:"type"`
	Content   string   `json:"content,omitempty"`
	URI       string   `json:"uri,omitempty"`
	ID        string   `json:"id,omitempty"`
	Name      string   `json:"name,omitempty"`
	Arguments core.Raw `json:"arguments,omitzero"`
	Response  core.Raw `json:"response,omitzero"`
}

// messages is an attribute of what the messages say that an event states, as much as
// there is room for; nil where content is not told, or there is none.
func (d *deriver) messages(name string, e *dag.Event, finish string) *commonpb.KeyValue {
	if !d.content {
		return nil
	}
	var all []message
	room := maxContent
	for _, n := range e.Nodes {
		m, is := n.Body.(*dag.Message)
		if !is || room <= 0 {
			continue
		}
		out := message{Role: string(m.Role), Parts: []part{}, Finish: finish}
		for i := range m.Content {
			p := partOf(&m.Content[i])
			if room -= len(p.Content) + len(p.URI) + len(p.Arguments) + len(p.Response); room > 0 {
				out.Parts = append(out.Parts, p)
			}
		}
		all = append(all, out)
	}
	if len(all) == 0 {
		return nil
	}
	return d.json(name, all)
}

func partOf(p *dag.ContentPart) part {
	switch p.Type {
	case "tool_use":
		return part{Type: "tool_call", ID: p.ID, Name: p.Name, Arguments: within(p.Input)}
	case "tool_result":
		return part{Type: "tool_call_response", ID: p.ToolCallID, Response: within(p.Output)}
	case "image_url":
		return part{Type: "uri", URI: core.Cut(p.URL, maxPart)}
	}
	return part{Type: p.Type, Content: core.Cut(p.Text, maxPart)}
}

// within is a value, or the beginning of its JSON as text.
func within(v core.Raw) core.Raw {
	if len(v) <= maxPart {
		return v
	}
	return core.MustEncode(core.Cut(string(v), maxPart))
}

// json is an attribute with the JSON of a value; nil where content is not told.
func (d *deriver) json(name string, value any) *commonpb.KeyValue {
	if !d.content {
		return nil
	}
	data, err := core.Encode(value)
	if err != nil {
		return nil
	}
	return &commonpb.KeyValue{Key: name, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: string(data)}}}
}
