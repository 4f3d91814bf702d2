package env

import "fmt"

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
