// Package jsonrpc speaks JSON-RPC 2.0 with a child process, one message on
// each line of its standard input and output.
//
// It makes these promises about order, which the protocols on top rely on:
// requests and notifications are handed over one by one as they came, and an
// answer reaches its caller only after everything that came before it was
// handed over. Nothing that is sent waits for the other side to read it.
//
// Lines that are no message are noise, not the end: they are handed over as
// such. Only a stream that ends, or a reader that says so, ends a connection.
package jsonrpc

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
)

// The error codes of JSON-RPC 2.0.
const (
	ParseError     = -32700
	InvalidRequest = -32600
	MethodNotFound = -32601
	InvalidParams  = -32602
	InternalError  = -32603
)

// Error is an error as it stands in a message.
type Error struct {
	Code    int      `json:"code"`
	Message string   `json:"message"`
	Data    core.Raw `json:"data,omitempty"`
}

// Errorf makes an error to answer with.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string {
	if d := e.detail(); d != "" && d != e.Message {
		return fmt.Sprintf("%s: %s (%d)", e.Message, d, e.Code)
	}
	return fmt.Sprintf("%s (%d)", e.Message, e.Code)
}

// detail is what the usual shapes of data say in words.
func (e *Error) detail() string {
	if len(e.Data) == 0 {
		return ""
	}
	var text string
	if decode(e.Data, &text) == nil {
		return text
	}
	var d struct {
		Details string `json:"details"`
		Message string `json:"message"`
		Error   string `json:"error"`
	}
	if decode(e.Data, &d) != nil {
		return ""
	}
	return d.Details + d.Message + d.Error
}

// message is any JSON-RPC message.
type message struct {
	Version string   `json:"jsonrpc"`
	ID      core.Raw `json:"id,omitzero"`
	Method  string   `json:"method,omitzero"`
	Params  core.Raw `json:"params,omitzero"`
	Result  core.Raw `json:"result,omitzero"`
	Error   *Error   `json:"error,omitzero"`
}

// decode is lenient where strictness would only lose a message: members that
// come twice, and text that is not valid UTF-8.
func decode(data []byte, v any) error {
	return json.Unmarshal(data, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Decode reads params or a result. Unknown members are ignored.
func Decode(data core.Raw, v any) error {
	if len(data) == 0 {
		data = core.Raw("{}")
	}
	return decode(data, v)
}

// parse reads one line; false for what is no message.
func parse(line []byte) (message, bool) {
	var m message
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return m, false
	}
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	if decode(bytes.Clone(line), &m) != nil {
		return m, false
	}
	if string(m.ID) == "null" {
		m.ID = nil
	}
	return m, m.Method != "" || len(m.ID) > 0
}
