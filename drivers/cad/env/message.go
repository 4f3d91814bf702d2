package env

import (
	"bytes"
	"slices"

	"swarmdeck/engine/core"
)

// request is one JSON-RPC 2.0 request or notification.
type request struct {
	id     core.Raw // nil of a notification
	method string
	params core.Raw
	wrong  *Error // why it is no request
}

// answer is one JSON-RPC 2.0 response.
type answer struct {
	Version string   `json:"jsonrpc"`
	ID      core.Raw `json:"id"`
	Result  *result  `json:"result,omitzero"`
	Error   *Error   `json:"error,omitzero"`
}

// result is what a method that succeeded answers.
type result struct {
	Status   string   `json:"status"` // success
	Data     any      `json:"data"`
	Metadata metadata `json:"metadata"`
}

type metadata struct {
	Operation string `json:"operation_type"`
	Millis    int64  `json:"execution_time_ms"`
	Entry     any    `json:"entry,omitempty"`
}

const (
	maxBatch = 1000
	maxID    = 256 // bytes
)

// read takes a line apart: one request, or the requests of a batch.
func read(line []byte) (all []request, batch bool) {
	value := core.Raw(bytes.TrimSpace(line))
	if !value.IsValid() {
		return []request{{wrong: Refuse(ParseError, "", nil, "the line is not one valid JSON value", "send one JSON-RPC 2.0 message to a line, in UTF-8, with no name twice in an object")}}, false
	}
	if value.Kind() != '[' {
		return []request{readOne(value)}, false
	}
	var list []core.Raw
	if err := core.Decode(value, &list); err != nil || len(list) == 0 || len(list) > maxBatch {
		return []request{{wrong: Refuse(InvalidRequest, "", len(list), "a batch of this length is not answered", "send 1 to 1000 requests in an array")}}, false
	}
	for _, v := range list {
		all = append(all, readOne(v))
	}
	return all, true
}

// readOne reads a request. Its id is told as far as it can be made out, so that
// the sender learns which one was wrong.
func readOne(value core.Raw) request {
	var r request
	if value.Kind() != '{' {
		r.wrong = Refuse(InvalidRequest, "", value, "a request is an object", `send {"jsonrpc":"2.0","id":…,"method":…,"params":{…}}`)
		return r
	}
	var m struct {
		Version core.Raw `json:"jsonrpc"`
		ID      core.Raw `json:"id"`
		Method  core.Raw `json:"method"`
		Params  core.Raw `json:"params"`
	}
	if err := core.DecodeStored(value, &m); err != nil {
		r.wrong = Refuse(InvalidRequest, "", nil, "the request can't be read: "+err.Error(), "give each name once")
		return r
	}
	if len(m.ID) > 0 {
		if kind := m.ID.Kind(); kind != '"' && kind != '0' && kind != 'n' || len(m.ID) > maxID {
			r.wrong = Refuse(InvalidRequest, "id", m.ID, "the id is no id", "give a text, a number or null of at most 256 bytes")
			return r
		}
		r.id = slices.Clone(m.ID)
	}
	switch {
	case string(m.Version) != `"2.0"`:
		r.wrong = Refuse(InvalidRequest, "jsonrpc", orNil(m.Version), "this is no JSON-RPC 2.0", `give "jsonrpc":"2.0"`)
	case m.Method.Kind() != '"' || core.Decode(m.Method, &r.method) != nil:
		r.wrong = Refuse(InvalidRequest, "method", orNil(m.Method), "the method has no name", "give the name of a method as text; system.hello lists them")
	case len(m.Params) > 0 && m.Params.Kind() != '{' && m.Params.Kind() != '[' && m.Params.Kind() != 'n':
		r.wrong = Refuse(InvalidRequest, "params", m.Params, "params is neither an object nor a list", "give an object of named parameters")
	case m.Params.Kind() != 'n':
		r.params = m.Params
	}
	return r
}

func orNil(v core.Raw) any {
	if len(v) == 0 {
		return nil
	}
	return v
}

// encode writes an answer as one line.
func (a answer) encode() []byte {
	a.Version = "2.0"
	if len(a.ID) == 0 {
		a.ID = core.Raw("null")
	}
	line, err := core.Encode(a)
	if err != nil { // a kernel's number that JSON has no form for
		a.Result, a.Error = nil, internal(err)
		return core.MustEncode(a)
	}
	return line
}
