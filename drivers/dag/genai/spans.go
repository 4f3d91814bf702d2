// Package genai reads what agents of other programs did from OpenTelemetry spans
// with the semantic conventions for generative AI: OTLP/JSON as collectors write
// it to files, one export request after the other.
//
//	invoke_agent, or a trace with none    a run of the agent
//	chat, generate_content, …             model_request and model_response
//	execute_tool                          tool_call and tool_result
//
// Spans may come in any order; they are told by their times. Other spans count
// only for what is below what. Attributes that are not known are passed over.
package genai

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/safeopen"
)

// Bounds of what is read, since spans are held until all are there.
const (
	maxBytes = 256 << 20
	maxSpans = 200_000
)

// Source implements dag.Source.
type Source struct{}

var _ dag.Source = Source{}

// Read implements dag.Source; src is a file.
func (Source) Read(ctx context.Context, src string, each func(dag.Event) error) error {
	var nobody *safeopen.Own // who names a file to import has checked it
	f, err := nobody.File(src)
	if err != nil {
		return err
	}
	defer f.Close()
	return Read(ctx, f, each)
}

// Read calls each for the events that the spans of export requests tell of.
func Read(ctx context.Context, in io.Reader, each func(dag.Event) error) error {
	t := traces{spans: map[string]*span{}}
	limited := &io.LimitedReader{R: in, N: maxBytes + 1}
	dec := jsontext.NewDecoder(limited, jsontext.AllowDuplicateNames(true))
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := t.request(dec)
		switch {
		case err == nil:
		case limited.N == 0:
			return core.Errorf(core.InvalidInput, "file: more than %d bytes; allowed: parts of it, whole traces in each", maxBytes).With("field", "file")
		case errors.Is(err, io.EOF) && n > 1:
			return t.tell(each)
		case errors.Is(err, io.EOF):
			return core.Errorf(core.InvalidInput, "file: nothing there; want OTLP/JSON with resourceSpans").With("field", "file")
		case core.AsError(err).Code == core.InvalidInput:
			return fmt.Errorf("request %d: %w", n, err)
		default:
			return core.Errorf(core.InvalidInput, "request %d: %v", n, err).With("field", "file")
		}
	}
}

// request reads the next export request: {"resourceSpans": […]}.
func (t *traces) request(dec *jsontext.Decoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() != '{' {
		return core.Errorf(core.InvalidInput, "want an object with resourceSpans").With("field", "resourceSpans")
	}
	found := false
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return whole(err)
		}
		if name.String() != "resourceSpans" || dec.PeekKind() != '[' {
			if err := dec.SkipValue(); err != nil {
				return whole(err)
			}
			continue
		}
		found = true
		if _, err := dec.ReadToken(); err != nil {
			return whole(err)
		}
		for dec.PeekKind() != ']' {
			var r resourceSpans
			if err := json.UnmarshalDecode(dec, &r); err != nil {
				return whole(err)
			}
			if err := t.take(&r); err != nil {
				return err
			}
		}
		if _, err := dec.ReadToken(); err != nil {
			return whole(err)
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return whole(err)
	}
	if !found {
		return core.Errorf(core.InvalidInput, "resourceSpans: missing, or no list; want OTLP/JSON").With("field", "resourceSpans")
	}
	return nil
}

// whole is an error within a request: its end is none of the file's.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// The parts of a request that are read.
type (
	resourceSpans struct {
		Resource struct {
			Attributes attributes `json:"attributes"`
		} `json:"resource"`
		Scopes []struct {
			Spans []rawSpan `json:"spans"`
		} `json:"scopeSpans"`
	}
	rawSpan struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		Parent     string     `json:"parentSpanId"`
		Name       string     `json:"name"`
		Start      number     `json:"startTimeUnixNano"`
		End        number     `json:"endTimeUnixNano"`
		Attributes attributes `json:"attributes"`
		Events     []struct {
			Attributes attributes `json:"attributes"`
		} `json:"events"`
		Status struct {
			Code    statusCode `json:"code"`
			Message string     `json:"message"`
		} `json:"status"`
	}
	attributes []struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string  `json:"stringValue"`
		Bool   *bool    `json:"boolValue"`
		Int    *number  `json:"intValue"`
		Double *float64 `json:"doubleValue"`
		Array  *struct {
			Values []value `json:"values"`
		} `json:"arrayValue"`
		List *struct {
			Values attributes `json:"values"`
		} `json:"kvlistValue"`
	}
)

// number is an integer that JSON may have as text.
type number int64

func (n *number) UnmarshalJSON(data []byte) error {
	i, err := strconv.ParseInt(strings.Trim(string(data), `"`), 10, 64)
	if err != nil && string(data) != "null" && string(data) != `""` {
		return core.Invalid("number", string(data), "a whole number")
	}
	*n = number(i)
	return nil
}

// statusCode is an error or not: a number, or its name.
type statusCode bool

func (c *statusCode) UnmarshalJSON(data []byte) error {
	*c = string(data) == "2" || string(data) == `"STATUS_CODE_ERROR"`
	return nil
}

// json is a value as plain JSON.
func (v value) json() any {
	switch {
	case v.String != nil:
		return *v.String
	case v.Bool != nil:
		return *v.Bool
	case v.Int != nil:
		return int64(*v.Int)
	case v.Double != nil:
		return *v.Double
	case v.Array != nil:
		return core.Map(v.Array.Values, func(one value) any { return one.json() })
	case v.List != nil:
		all := map[string]any{}
		for _, one := range v.List.Values {
			all[one.Key] = one.Value.json()
		}
		return all
	}
	return nil
}

// text is a value as text; of a list, its first.
func (v value) text() string {
	switch {
	case v.String != nil:
		return *v.String
	case v.Array != nil && len(v.Array.Values) > 0:
		return v.Array.Values[0].text()
	case v.Int != nil:
		return strconv.FormatInt(int64(*v.Int), 10)
	}
	return ""
}

// raw is a value as JSON; text that is JSON stands for that.
func (v value) raw() core.Raw {
	if v.String != nil {
		if text := core.Raw(strings.TrimSpace(*v.String)); (text.Kind() == '{' || text.Kind() == '[') && text.IsValid() {
			return text
		}
	}
	plain := v.json()
	raw, err := core.Encode(plain)
	if err != nil || plain == nil { // nothing, NaN, or text that is none
		return nil
	}
	return raw
}

// span is what is kept of one.
type span struct {
	trace, id, parent string
	start, end        time.Time
	failed            bool
	message           string // of the status
	service           string
	attrs             map[string]value // nil of a span that is not about generative AI
}

// take keeps the spans of a resource.
func (t *traces) take(r *resourceSpans) error {
	service := ""
	for _, a := range r.Resource.Attributes {
		if a.Key == "service.name" {
			service = a.Value.text()
		}
	}
	for _, scope := range r.Scopes {
		for i := range scope.Spans {
			s, err := scope.Spans[i].read(service)
			if err != nil {
				return err
			}
			key := s.trace + s.id
			if _, twice := t.spans[key]; twice {
				continue // exporters try again
			}
			if len(t.order) == maxSpans {
				return core.Errorf(core.InvalidInput, "spans: more than %d; allowed: parts of the file, whole traces in each", maxSpans).With("field", "spans")
			}
			t.spans[key] = s
			t.order = append(t.order, s)
		}
	}
	return nil
}

func (r *rawSpan) read(service string) (*span, error) {
	s := &span{
		trace: strings.ToLower(r.TraceID), id: strings.ToLower(r.SpanID), parent: strings.ToLower(r.Parent),
		start: time.Unix(0, int64(r.Start)).UTC(), end: time.Unix(0, int64(r.End)).UTC(),
		failed: bool(r.Status.Code), message: r.Status.Message, service: service,
	}
	for _, id := range []struct {
		field, value string
		digits       int
	}{{"traceId", s.trace, 32}, {"spanId", s.id, 16}} {
		if _, err := hex.DecodeString(id.value); err != nil || len(id.value) != id.digits {
			return nil, core.Invalid(id.field, id.value, fmt.Sprintf("%d hex digits", id.digits))
		}
	}
	if r.Start <= 0 {
		return nil, core.Invalid("startTimeUnixNano", int64(r.Start), "nanoseconds since 1970")
	}
	if s.end.Before(s.start) {
		s.end = s.start
	}
	put := func(all attributes) {
		for _, a := range all {
			if strings.HasPrefix(a.Key, "gen_ai.") || s.attrs != nil && (a.Key == "error.type" || a.Key == "exception.message") {
				if s.attrs == nil {
					s.attrs = map[string]value{}
				}
				s.attrs[a.Key] = a.Value
			}
		}
	}
	put(r.Attributes)
	for _, e := range r.Events { // some have the content there
		put(e.Attributes)
	}
	put(r.Attributes) // error.type may come before the first of gen_ai
	return s, nil
}

func (s *span) text(keys ...string) string {
	for _, key := range keys {
		if text := s.attrs[key].text(); text != "" {
			return text
		}
	}
	return ""
}

// count is a number of tokens under the first key that has one.
func (s *span) count(keys ...string) int64 {
	for _, key := range keys {
		if v := s.attrs[key]; v.Int != nil {
			return max(0, int64(*v.Int))
		}
	}
	return 0
}
