package otlp

import (
	"encoding/hex"
	"slices"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// maxText bounds a name or an attribute, in bytes: agents make some of them up.
const maxText = 256

// span makes a span; nil for one that belongs to no trace or has no time.
func span(trace, id, parent, name string, start, end time.Time, attrs ...*commonpb.KeyValue) *tracepb.Span {
	t, badTrace := hex.DecodeString(trace)
	i, badID := hex.DecodeString(id)
	p, badParent := hex.DecodeString(parent)
	if badTrace != nil || badID != nil || badParent != nil || len(t) != 16 || len(i) != 8 || start.IsZero() {
		return nil
	}
	if end.Before(start) {
		end = start
	}
	s := &tracepb.Span{
		TraceId: t, SpanId: i, Name: core.Cut(name, maxText), Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: uint64(start.UnixNano()), EndTimeUnixNano: uint64(end.UnixNano()), //nolint:gosec // times of this age
	}
	if len(p) == 8 {
		s.ParentSpanId = p
	}
	s.Attributes = kept(attrs...)
	return s
}

// kept leaves out what has no value.
func kept(attrs ...*commonpb.KeyValue) []*commonpb.KeyValue {
	return slices.DeleteFunc(attrs, func(a *commonpb.KeyValue) bool { return a == nil })
}

// failed marks a span as an error of a kind: a code, never a message.
func failed(s *tracepb.Span, code string) {
	if s == nil || code == "" {
		return
	}
	s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
	s.Attributes = append(s.Attributes, text("error.type", code))
}

// text is an attribute; nil for "".
func text(name, value string) *commonpb.KeyValue {
	if value == "" {
		return nil
	}
	return &commonpb.KeyValue{Key: name, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: core.Cut(value, maxText)}}}
}

// texts is an attribute of a list with one text; nil for "".
func texts(name, value string) *commonpb.KeyValue {
	a := text(name, value)
	if a != nil {
		a.Value = &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{a.Value}}}}
	}
	return a
}

func integer(name string, value int64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: name, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value}}}
}

// count is an attribute; nil for 0.
func count(name string, value int64) *commonpb.KeyValue {
	if value == 0 {
		return nil
	}
	return integer(name, value)
}

func real(name string, value *float64) *commonpb.KeyValue {
	if value == nil {
		return nil
	}
	return &commonpb.KeyValue{Key: name, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: *value}}}
}

func flag(name string, value bool) *commonpb.KeyValue {
	if !value {
		return nil
	}
	return &commonpb.KeyValue{Key: name, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}}
}

// happened is something at one moment of a span.
func happened(at time.Time, name string, attrs ...*commonpb.KeyValue) *tracepb.Span_Event {
	return &tracepb.Span_Event{TimeUnixNano: uint64(at.UnixNano()), Name: name, Attributes: kept(attrs...)} //nolint:gosec // times of this age
}

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
