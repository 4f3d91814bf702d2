package cad

import (
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Operation is one call of a method by an agent (controller operation
// execute_operation).
type Operation struct {
	AgentID string
	Method  string
	Params  core.Raw // JSON object; nil is {}. workspace_id is the agent's own unless it names another

	// What follows is of an operation that belongs to a task.

	TaskID, TraceID, Session string
	Attempt, Priority        int
	// Mark makes an operation happen once: with a mark that is on disk nothing is
	// carried out, and the recorded result is the answer. It is 1-200 bytes,
	// such as TASK/ROUND/INDEX.
	Mark string
	// Origin names the workflow that the operation belongs to: a file that it
	// wrote itself, and that nobody changed since, may be written over unasked.
	Origin string
	// Holds reports, in the transaction that stores the operation, whether the
	// task is still the caller's; false stores nothing and gives ErrLost. nil is
	// always true.
	Holds func(*audit.Tx) (bool, error)
	// Beat, Stop and Held are those of swarm.Question, for an operation that a
	// person is asked about and for one that is to stand still. nil for one
	// that belongs to no task.
	Beat func()
	Stop <-chan struct{}
	Held func() (held bool, moved <-chan struct{})
	// Unasked says that nobody is there to be asked: what a person must answer is
	// refused at once.
	Unasked bool
	// Progress is told how far a long operation is, 0-100; nil is not told.
	Progress func(percent float64, stage string)
}

// Done is an operation that succeeded and is on disk.
type Done struct {
	AgentID     string        `json:"agent_id"`
	WorkspaceID string        `json:"workspace_id"`
	Method      string        `json:"method"`
	Data        core.Raw      `json:"data"`
	Metadata    core.Raw      `json:"metadata,omitzero"` // operation_type, execution_time_ms, workspace_id, agent_id, seq
	Entities    []string      `json:"entities,omitempty"`
	Removed     []string      `json:"removed,omitempty"`
	Seq         int           `json:"seq,omitzero"` // of its journal entry; 0 when it changed nothing
	DecisionID  string        `json:"decision_id,omitempty"`
	Elapsed     time.Duration `json:"-"` // as the worker measured it; metadata has it in milliseconds
	Repeated    bool          `json:"-"` // it was done before, under the same Mark
}

// ErrorCode is the class of an error that the controller tells of (contract 6,
// AgentMessage error_code).
type ErrorCode string

// The error codes.
const (
	RoleViolation     ErrorCode = "ROLE_VIOLATION"
	OperationFailed   ErrorCode = "OPERATION_FAILED"
	InvalidParameters ErrorCode = "INVALID_PARAMETERS"
	WorkspaceError    ErrorCode = "WORKSPACE_ERROR"
	EntityNotFound    ErrorCode = "ENTITY_NOT_FOUND"
	ConstraintError   ErrorCode = "CONSTRAINT_ERROR"
	SubprocessError   ErrorCode = "CLI_SUBPROCESS_ERROR"
	TimedOut          ErrorCode = "TIMEOUT"
	UnknownError      ErrorCode = "UNKNOWN_ERROR"
)

// ErrorCodes are all of them.
func ErrorCodes() []ErrorCode {
	return []ErrorCode{RoleViolation, OperationFailed, InvalidParameters, WorkspaceError, EntityNotFound, ConstraintError, SubprocessError, TimedOut, UnknownError}
}

// OpError is an operation that was attempted and failed. Nothing has changed but
// the agent's counters. As a core.Error it has the code of its class, with
// error_code, code, field and suggestion among the details.
type OpError struct {
	Class      ErrorCode
	Code       int    // of JSON-RPC; 0 when it never came so far
	Name       string // ENTITY_NOT_FOUND and so on; the class when it never came so far
	Message    string
	Field      string
	Value      core.Raw
	Suggestion string
	Denied     bool // by a rule or a person
	Abort      bool // with Denied: the task is to end
	Retryable  bool // the same may succeed later
	DecisionID string
}

func (e *OpError) Error() string {
	text := e.Message
	if e.Name != "" && !e.Denied {
		text = e.Name + ": " + text
	}
	if e.Suggestion != "" {
		text += "; " + e.Suggestion
	}
	return text
}

// ErrLost says that the task is not the caller's any more: nothing was stored.
var ErrLost = core.Errorf(core.Conflict, "the lease on the task is lost")

// Unwrap is the core.Error that doors print.
func (e *OpError) Unwrap() error {
	out := core.Errorf(e.coreCode(), "%s", e.Error()).With("error_code", string(e.Class))
	if e.Code != 0 {
		out.With("code", e.Code).With("error_type", e.Name)
	}
	if e.Field != "" {
		out.With("field", e.Field)
	}
	if len(e.Value) > 0 {
		out.With("value", e.Value)
	}
	if e.Suggestion != "" {
		out.With("suggestion", e.Suggestion)
	}
	if e.DecisionID != "" {
		out.With("decision_id", e.DecisionID)
	}
	return out
}

func (e *OpError) coreCode() core.Code {
	if e.Denied || e.Class == RoleViolation {
		return core.Denied
	}
	switch e.Code {
	case codeEntityNotFound, codeFileNotFound:
		return core.NotFound
	case codeWorkspaceConflict, codeConstraintConflict, codeCircularDependency:
		return core.Conflict
	}
	switch e.Class {
	case SubprocessError, TimedOut:
		return core.Unavailable
	case UnknownError:
		return core.Internal
	}
	return core.InvalidInput
}

// Numbers of the CAD environment's errors (contract 6.3).
const (
	codeInvalidParameter   = -32602
	codeInvalidGeometry    = -32603
	codeInvalidCommand     = -32601
	codeEntityNotFound     = -32001
	codeConstraintConflict = -32002
	codeCircularDependency = -32003
	codeInvalidConstraint  = -32004
	codeOperationInvalid   = -32005
	codeWorkspaceConflict  = -32007
	codeFileNotFound       = -32008
	codeOutOfMemory        = -32011
	codeTimeout            = -32012
)

// classOf is the controller's class of an error of the environment.
func classOf(code int) ErrorCode {
	switch code {
	case codeInvalidParameter, codeInvalidGeometry, codeInvalidCommand:
		return InvalidParameters
	case codeEntityNotFound:
		return EntityNotFound
	case codeConstraintConflict, codeInvalidConstraint, codeCircularDependency:
		return ConstraintError
	case codeWorkspaceConflict:
		return WorkspaceError
	case codeTimeout:
		return TimedOut
	}
	return OperationFailed
}

func failure(f *Fault) *OpError {
	return &OpError{
		Class: classOf(f.Code), Code: f.Code, Name: f.Name, Message: f.Message, Field: f.Field, Value: f.Value,
		Suggestion: f.Suggestion, Retryable: f.Code == codeTimeout || f.Code == codeOutOfMemory,
	}
}
