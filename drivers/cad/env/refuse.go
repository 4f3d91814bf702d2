package env

import (
	"errors"
	"fmt"

	"swarmdeck/engine/core"
)

// names are the error_type of each number.
var names = map[Code]string{
	ParseError: "PARSE_ERROR", InvalidRequest: "INVALID_REQUEST", InvalidCommand: "INVALID_COMMAND",
	InvalidParameter: "INVALID_PARAMETER", InvalidGeometry: "INVALID_GEOMETRY",
	EntityNotFound: "ENTITY_NOT_FOUND", ConstraintConflict: "CONSTRAINT_CONFLICT",
	CircularDependency: "CIRCULAR_DEPENDENCY", InvalidConstraint: "INVALID_CONSTRAINT",
	OperationInvalid: "OPERATION_INVALID", TopologyError: "TOPOLOGY_ERROR",
	WorkspaceConflict: "WORKSPACE_CONFLICT", FileNotFound: "FILE_NOT_FOUND",
	UnsupportedFormat: "UNSUPPORTED_FORMAT", ImportFailed: "IMPORT_FAILED",
	InsufficientMemory: "INSUFFICIENT_MEMORY", Timeout: "TIMEOUT", UnsupportedByKernel: "UNSUPPORTED_BY_KERNEL",
}

// Refuse makes an error that a caller can act on: the field that is wrong, what
// was given there, and in the suggestion what would be right.
func Refuse(code Code, field string, value any, message, suggestion string) *Error {
	return &Error{Code: code, Message: message, Data: Data{
		Name: names[code], Field: field, Value: shown(value), Suggestion: suggestion, Recoverable: true,
	}}
}

// Invalid is a refusal of one parameter, with what is allowed.
func Invalid(field string, value any, allowed string) *Error {
	return Refuse(InvalidParameter, field, value, fmt.Sprintf("%s: %v is not allowed", field, shown(value)), "give "+allowed)
}

// Unsupported is the refusal of what a kernel can't do.
func Unsupported(field string, value any, kernel, other string) *Error {
	suggestion := "no kernel of this environment does it"
	if other != "" {
		suggestion = "start the environment with --kernel " + other
	}
	return Refuse(UnsupportedByKernel, field, value, fmt.Sprintf("kernel %s does not do %v", kernel, shown(value)), suggestion)
}

// Refused turns the error of a package of the engine into one of these: a bad
// value gets the code, anything else stays what it is.
func Refused(err error, code Code) error {
	var own *Error
	var known *core.Error
	if err == nil || errors.As(err, &own) || !errors.As(err, &known) || known.Code == core.Internal {
		return err
	}
	field, _ := known.Details["field"].(string)
	if field == "profile" || field == "sketch" { // these are made of the entities that a caller names
		field = "entity_ids"
	}
	suggestion := ""
	if allowed, ok := known.Details["allowed"]; ok {
		suggestion = fmt.Sprintf("give %v", allowed)
	}
	return Refuse(code, field, known.Details["value"], err.Error(), suggestion)
}

// KernelLost is the error_type of an operation during which the kernel's process
// ended, or could not be started: it may well succeed when it is sent again.
const KernelLost = "KERNEL_LOST"

// lost is what a client is told of that, unless somebody knows better what is
// wrong.
func lost(err error) error {
	var refusal *Error
	var known *core.Error
	if errors.As(err, &refusal) || errors.As(err, &known) {
		return err
	}
	return &Error{Code: InvalidGeometry, Message: err.Error() + "; nothing has changed", Data: Data{Name: KernelLost, Suggestion: "send it again", Recoverable: true}}
}

// internal is a failure that no other parameters would have avoided.
func internal(err error) *Error {
	return &Error{Code: InvalidGeometry, Message: err.Error(), Data: Data{Name: "INTERNAL_ERROR"}}
}

// longestShown is how much of a wrong value is told back, in bytes.
const longestShown = 200

// shown is a value as it is told back: short, so that a huge parameter is not
// repeated whole.
func shown(v any) any {
	var text string
	switch v := v.(type) {
	case nil, bool, int, float64, Code:
		return v
	case string:
		text = v
	case core.Raw:
		var plain any
		if len(v) <= longestShown && core.Decode(v, &plain) == nil { // not 1e999
			return v
		}
		text = string(v)
	default:
		text = fmt.Sprint(v)
	}
	if len(text) > longestShown {
		cut := longestShown
		for cut > 0 && text[cut]&0xC0 == 0x80 {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}

// Code is the number of a JSON-RPC error. (Names and numbers: requirement 6.3.)
type Code int

// The errors of the CAD environment.
const (
	ParseError          Code = -32700
	InvalidRequest      Code = -32600
	InvalidCommand      Code = -32601
	InvalidParameter    Code = -32602
	InvalidGeometry     Code = -32603
	EntityNotFound      Code = -32001
	ConstraintConflict  Code = -32002
	CircularDependency  Code = -32003
	InvalidConstraint   Code = -32004
	OperationInvalid    Code = -32005
	TopologyError       Code = -32006
	WorkspaceConflict   Code = -32007
	FileNotFound        Code = -32008
	UnsupportedFormat   Code = -32009
	ImportFailed        Code = -32010
	InsufficientMemory  Code = -32011
	Timeout             Code = -32012
	UnsupportedByKernel Code = -32020
)

// Error is a refusal: the number, what is wrong, and its data.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Data    Data   `json:"data"`
}

// Data tells a caller what to change.
type Data struct {
	Name        string `json:"error_type"` // such as ENTITY_NOT_FOUND
	Field       string `json:"field,omitzero"`
	Value       any    `json:"provided_value,omitzero"`
	Suggestion  string `json:"suggestion,omitzero"`
	Recoverable bool   `json:"recoverable"`
	// Conflicts names the constraints that can't hold together.
	Conflicts []string `json:"conflicts,omitzero"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }
