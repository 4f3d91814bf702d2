package otlp

import (
	"encoding/hex"
	"slices"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"swarmdeck/engine/core"
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
