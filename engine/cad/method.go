package cad

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Effect is what a method does beyond answering.
type Effect string

// The effects of methods, as the judge's rules see them in action.effects,
// beside those that depend on the parameters: Elsewhere and Overwrite.
const (
	Reads   Effect = "read"    // changes nothing
	Changes Effect = "write"   // changes the content of a workspace
	Creates Effect = "create"  // makes a workspace
	Merges  Effect = "merge"   // brings one workspace's content into another
	Imports Effect = "import"  // reads a file of the workspace's directory into it
	Exports Effect = "export"  // writes a file into the workspace's directory
	Deletes Effect = "destroy" // deletes a file

	Elsewhere Effect = "elsewhere" // changes another workspace than the agent's own
	Overwrite Effect = "overwrite" // writes over a file that is there
)

// Method is one operation of the CAD environment that agents can be allowed.
type Method struct {
	Name   string
	Of     string // the method that this is a variant of: solid.boolean of solid.boolean.union
	Effect Effect
	// Local methods are answered by the controller: they are about more than
	// one workspace, or about agents.
	Local bool
}

// methods in the order in which they are told.
var methods = [...]Method{
	{Name: "entity.create_point", Effect: Changes},
	{Name: "entity.create_line", Effect: Changes},
	{Name: "entity.create_circle", Effect: Changes},
	{Name: "entity.create_arc", Effect: Changes},
	{Name: "entity.update", Effect: Changes},
	{Name: "entity.delete", Effect: Changes},
	{Name: "entity.query", Effect: Reads},
	{Name: "entity.list", Effect: Reads},
	{Name: "constraint.apply", Effect: Changes},
	{Name: "constraint.remove", Effect: Changes},
	{Name: "constraint.status", Effect: Reads},
	{Name: "solid.extrude", Effect: Changes},
	{Name: "solid.revolve", Effect: Changes},
	{Name: "solid.boolean", Effect: Changes},
	{Name: "solid.boolean.union", Of: "solid.boolean", Effect: Changes},
	{Name: "solid.boolean.subtract", Of: "solid.boolean", Effect: Changes},
	{Name: "solid.boolean.intersect", Of: "solid.boolean", Effect: Changes},
	{Name: "solid.primitive", Effect: Changes},
	{Name: "solid.pattern", Effect: Changes},
	{Name: "solid.pattern.linear", Of: "solid.pattern", Effect: Changes},
	{Name: "solid.pattern.circular", Of: "solid.pattern", Effect: Changes},
	{Name: "solid.mirror", Effect: Changes},
	{Name: "solid.transform", Effect: Changes},
	{Name: "solid.fillet", Effect: Changes},
	{Name: "solid.chamfer", Effect: Changes},
	{Name: "solid.shell", Effect: Changes},
	{Name: "workspace.create", Effect: Creates, Local: true},
	{Name: "workspace.list", Effect: Reads, Local: true},
	{Name: "workspace.switch", Effect: Changes, Local: true},
	{Name: "workspace.status", Effect: Reads},
	{Name: "workspace.merge", Effect: Merges},
	{Name: "workspace.resolve_conflict", Effect: Merges},
	{Name: "workspace.diff", Effect: Reads},
	{Name: "history.list", Effect: Reads},
	{Name: "history.undo", Effect: Changes},
	{Name: "history.redo", Effect: Changes},
	{Name: "file.import", Effect: Imports},
	{Name: "file.export", Effect: Exports},
	{Name: "file.delete", Effect: Deletes},
	{Name: "agent.metrics", Effect: Reads, Local: true},
	{Name: "measure.mass", Effect: Reads},
	{Name: "measure.interference", Effect: Reads},
	{Name: "measure.bbox", Effect: Reads},
	{Name: "measure.distance", Effect: Reads},
	{Name: "view.mesh", Effect: Reads},
	{Name: "system.hello", Effect: Reads},
	{Name: "system.ping", Effect: Reads},
}

// FindMethod finds a method by its name. The dotted way to spell the creating
// ones (entity.create.point) is known too.
func FindMethod(name string) (Method, bool) {
	if kind, dotted := strings.CutPrefix(name, "entity.create."); dotted {
		name = "entity.create_" + kind
	}
	i := slices.IndexFunc(methods[:], func(m Method) bool { return m.Name == name })
	if i < 0 {
		return Method{}, false
	}
	return methods[i], true
}

// MethodNames are all names, in order.
func MethodNames() []string {
	return namesOf(methods[:], func(m Method) string { return m.Name })
}

// variant is the method that a call comes to: solid.boolean with the operation
// union is solid.boolean.union, so that a role can allow just that.
func (m Method) variant(params core.Raw) Method {
	word := ""
	switch m.Name {
	case "solid.boolean":
		word = textOf(params, "operation")
	case "solid.pattern":
		switch word = textOf(params, "pattern_type"); {
		case word != "":
		case hasMember(params, "direction"):
			word = "linear"
		case hasMember(params, "axis_direction"):
			word = "circular"
		}
	}
	if v, ok := FindMethod(m.Name + "." + word); ok && v.Of == m.Name {
		return v
	}
	return m
}

// Operation is one call of a method by an agent (controller operation
// execute_operation).
type Operation struct {
	AgentID string // "" is that of a fleet agent that calls
	Method  string
	Params  core.Raw // JSON object; nil is {}. workspace_id is the agent's own unless it names another

	// For is at whose word it is done, where the caller is a subagent that they
	// started; of no kind it is the caller.
	For core.Caller

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
	// Beat, Stop and Held are those of judge.Request, for an operation that a
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

// ErrorCode is the class of an error that the controller tells of (requirement 6,
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
	if len(e.Value) > 0 {
		out.With("value", e.Value)
	}
	for name, text := range map[string]string{"field": e.Field, "suggestion": e.Suggestion, "decision_id": e.DecisionID} {
		if text != "" {
			out.With(name, text)
		}
	}
	return out
}

func (e *OpError) coreCode() core.Code {
	if e.Denied || e.Class == RoleViolation {
		return core.Denied
	}
	switch e.Class {
	case SubprocessError, TimedOut:
		return core.Unavailable
	case UnknownError:
		return core.Internal
	}
	return cmp.Or(faults[e.Code].core, core.InvalidInput)
}

// Numbers of the CAD environment's errors (requirement 6.3).
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

// faults are what the numbers stand for, where it is more than an operation that
// failed by its input.
var faults = map[int]struct {
	class ErrorCode
	core  core.Code
}{
	codeInvalidParameter:   {class: InvalidParameters},
	codeInvalidGeometry:    {class: InvalidParameters},
	codeInvalidCommand:     {class: InvalidParameters},
	codeEntityNotFound:     {EntityNotFound, core.NotFound},
	codeFileNotFound:       {OperationFailed, core.NotFound},
	codeConstraintConflict: {ConstraintError, core.Conflict},
	codeCircularDependency: {ConstraintError, core.Conflict},
	codeInvalidConstraint:  {class: ConstraintError},
	codeWorkspaceConflict:  {WorkspaceError, core.Conflict},
	codeTimeout:            {class: TimedOut},
}

func failure(f *Fault) *OpError {
	return &OpError{
		Class: cmp.Or(faults[f.Code].class, OperationFailed), Code: f.Code, Name: f.Name, Message: f.Message, Field: f.Field, Value: f.Value,
		Suggestion: f.Suggestion, Retryable: f.Code == codeTimeout || f.Code == codeOutOfMemory,
	}
}
