package exec

import (
	"bytes"
	"cmp"
	"fmt"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// Bounds of what an agent may say in one line.
const (
	maxAgentLine = 1 << 20
	maxCallID    = 128
)

// What goes to an agent's stdin, one JSON object on each line.
type taskLine struct {
	Type    string `json:"type"` // "task"
	TaskID  string `json:"task_id"`
	Message string `json:"message"`
	URI     string `json:"uri,omitempty"`
	// Traceparent is the W3C header for what the agent causes elsewhere.
	Traceparent string `json:"traceparent,omitempty"`
	Past        string `json:"past,omitempty"` // of a fork, once to each process: what it goes on from
}

type decisionLine struct {
	Type     string   `json:"type"` // "decision"
	CallID   string   `json:"call_id"`
	Decision string   `json:"decision"` // approve, deny or abort
	Args     core.Raw `json:"args"`
	Reason   string   `json:"reason,omitempty"`
}

type questionLine struct {
	Type   string `json:"type"` // "question"
	CallID string `json:"call_id"`
	Text   string `json:"text"`
}

// saidLine is what a person says to an agent that works.
type saidLine struct {
	Type string `json:"type"` // "message"
	Text string `json:"text"`
	URI  string `json:"uri,omitempty"`
}

var cancelLine = []byte(`{"type":"cancel"}`)

// What comes from its stdout. Each kind has its own shape and no other members.
type (
	messageLine struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	logLine struct {
		Type    string `json:"type"`
		Level   string `json:"level" allow:"DEBUG, INFO, WARN, ERROR"`
		Message string `json:"message"`
	}
	// What it says about a call that waits for an answer: to a question, or that it no
	// longer wants it.
	aboutCallLine struct {
		Type   string `json:"type"`
		CallID string `json:"call_id" allow:"1-128 bytes"`
		Text   string `json:"text"`
	}
	toolRequestLine struct {
		Type   string   `json:"type"`
		CallID string   `json:"call_id" allow:"1-128 bytes"`
		Tool   string   `json:"tool" allow:"1-128 bytes"`
		Args   core.Raw `json:"args"`
		Intent string   `json:"intent"`
		Risk   string   `json:"risk" allow:"none or low, medium, high, critical"`
	}
	toolResultLine struct {
		Type   string   `json:"type"`
		CallID string   `json:"call_id" allow:"1-128 bytes"`
		Status string   `json:"status" allow:"ok, error"`
		Result core.Raw `json:"result"`
	}
	usageLine struct {
		Type        string  `json:"type"`
		Tokens      int64   `json:"tokens" allow:"0 or more"`
		CostUSD     float64 `json:"cost_usd" allow:"0 or more"`
		fleet.Split `json:",embed"`
		Context     fleet.Context `json:"context"`
	}
	attentionLine struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	resultLine struct {
		Type       string   `json:"type"`
		Status     string   `json:"status" allow:"succeeded, failed"`
		Output     core.Raw `json:"output"`
		Error      string   `json:"error"`
		Confidence *float64 `json:"confidence" allow:"0-1"`
	}
)

// malformed is a line of a known kind that breaks its shape. CallID is set
// when an agent waits for an answer to it.
type malformed struct {
	kind   string
	callID string
	err    error
}

func (m *malformed) Error() string { return fmt.Sprintf("malformed %s line: %v", m.kind, m.err) }
func (m *malformed) Unwrap() error { return m.err }

// parse reads one line of an agent's stdout. A line that is no JSON object
// of a known type is plain output: an event without a type. One of a known
// type that breaks its shape is an error (*malformed).
func parse(line []byte) (fleet.Event, error) {
	plain := fleet.Event{Level: "INFO", Text: pipe.Text(line)}
	data := bytes.TrimSpace(line)
	if len(data) == 0 || data[0] != '{' {
		return plain, nil
	}
	var head struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
	}
	if core.DecodeStored(data, &head) != nil || core.CheckObject("line", data, maxAgentLine) != nil {
		return plain, nil
	}
	read, known := readers[head.Type]
	if !known {
		return plain, nil
	}
	e, err := read(data)
	if err != nil {
		return plain, &malformed{kind: head.Type, callID: core.ClipTo(head.CallID, maxCallID), err: err}
	}
	e.Type = head.Type
	return e, nil
}

func aboutCall(data []byte) (fleet.Event, error) {
	l, err := decode[aboutCallLine](data)
	return fleet.Event{CallID: l.CallID, Text: l.Text}, err
}

// readers is constant: how each kind of line becomes an event.
var readers = map[string]func([]byte) (fleet.Event, error){
	"message": func(data []byte) (fleet.Event, error) {
		l, err := decode[messageLine](data)
		return fleet.Event{Text: l.Text}, err
	},
	"log": func(data []byte) (fleet.Event, error) {
		l, err := decode[logLine](data)
		return fleet.Event{Level: l.Level, Text: l.Message}, err
	},
	"reply":    aboutCall,
	"withdraw": aboutCall,
	"tool_request": func(data []byte) (fleet.Event, error) {
		l, err := decode[toolRequestLine](data)
		args, bad := object("args", l.Args)
		return fleet.Event{CallID: l.CallID, Tool: l.Tool, Args: args, Intent: l.Intent, Risk: l.Risk},
			cmp.Or(err, bad)
	},
	"tool_result": func(data []byte) (fleet.Event, error) {
		l, err := decode[toolResultLine](data)
		out, bad := object("result", l.Result)
		return fleet.Event{CallID: l.CallID, Status: l.Status, Output: out},
			cmp.Or(err, bad)
	},
	"usage": func(data []byte) (fleet.Event, error) {
		l, err := decode[usageLine](data)
		var bad error
		if min(l.Input, l.Output, l.Cached, l.Context.Used, l.Context.Size) < 0 {
			bad = core.Invalid("usage", fmt.Sprintf("%+v of %+v", l.Split, l.Context), "amounts of 0 or more")
		}
		return fleet.Event{Tokens: max(l.Tokens, l.Input+l.Output), CostUSD: l.CostUSD, Split: l.Split, Context: l.Context}, cmp.Or(err, bad)
	},
	"attention": func(data []byte) (fleet.Event, error) {
		l, err := decode[attentionLine](data)
		return fleet.Event{Text: l.Message}, err
	},
	"result": func(data []byte) (fleet.Event, error) {
		l, err := decode[resultLine](data)
		out, bad := object("output", l.Output)
		return fleet.Event{Status: l.Status, Output: out, Error: l.Error, Confidence: l.Confidence},
			cmp.Or(err, bad)
	},
}

func decode[T any](data []byte) (T, error) {
	var v T
	if err := core.Decode(data, &v); err != nil {
		return v, err
	}
	return v, bound.Check(&v)
}

// object checks a member that must be a JSON object, {} when it is absent.
func object(field string, v core.Raw) (core.Raw, error) {
	if len(v) == 0 || v.Kind() == 'n' {
		return core.Raw(`{}`), nil
	}
	if v.Kind() != '{' {
		return nil, core.Invalid(field, string(v), "a JSON object")
	}
	out := bytes.Clone(v)
	compact := core.Raw(out)
	if err := compact.Compact(); err != nil {
		return nil, core.Errorf(core.InvalidInput, "%s: not valid JSON: %v", field, err)
	}
	return compact, nil
}
