package control

import (
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// Status says where an intent stands.
type Status string

// The statuses. The last three are ends.
const (
	Waiting  Status = "waiting"  // for the judge, or a person's answer
	Open     Status = "open"     // its steps are being brought about
	Undoing  Status = "undoing"  // its steps are being taken back
	Stuck    Status = "stuck"    // a step could not be taken back: a person must look
	Done     Status = "done"     // the world is as it wants it
	Failed   Status = "failed"   // it could not be brought about
	Canceled Status = "canceled" // it was withdrawn
)

// Statuses are all of them.
func Statuses() []Status {
	return []Status{Waiting, Open, Undoing, Stuck, Done, Failed, Canceled}
}

// Over reports the ends.
func (s Status) Over() bool { return s == Done || s == Failed || s == Canceled }

// StepStatus says where a step stands.
type StepStatus string

// The statuses of a step.
const (
	StepPending   StepStatus = "pending"
	StepStarted   StepStatus = "started" // it may have had its effect, or half of it
	StepDone      StepStatus = "done"
	StepFailed    StepStatus = "failed"
	StepCanceled  StepStatus = "canceled" // it never began
	StepUndone    StepStatus = "undone"
	StepNotUndone StepStatus = "not_undone" // taking it back failed
)

// touched reports steps that may have left something in the world.
func (s StepStatus) touched() bool { return s == StepStarted || s == StepDone || s == StepFailed }

// Step is an action with its arguments.
type Step struct {
	Action string   `json:"action"`
	Args   core.Raw `json:"args"` // an object
}

// StepState is a step of an intent and what came of it.
type StepState struct {
	Action string     `json:"action"`
	Status StepStatus `json:"status"`
	Tries  int        `json:"tries,omitzero"` // how often it was begun
	Call   string     `json:"call_event"`
	End    string     `json:"result_event,omitempty"` // the observation
	Undo   string     `json:"undo_event,omitempty"`   // the call that takes it back
	Undos  int        `json:"undos,omitzero"`         // how often that was called for
	Error  *dag.Fault `json:"error,omitzero"`

	// Filled in by Get and Await, from the record.
	Args   core.Raw `json:"args,omitzero"`
	Result core.Raw `json:"result,omitzero"`
}

// Intent is a desired state and how far the world is there. Its spec and its
// observations are in the record; this is where the controller stands.
type Intent struct {
	TenantID  string         `json:"tenant_id"`
	IntentID  string         `json:"intent_id"` // and the run_id of its events
	Status    Status         `json:"status"`
	AgentID   string         `json:"agent_id"`
	TaskID    string         `json:"task_id,omitempty"`
	SessionID string         `json:"session_id,omitempty"`
	TraceID   string         `json:"trace_id"`
	Subject   string         `json:"subject,omitempty"` // intents of one subject take turns
	Turn      uint64         `json:"turn,omitzero"`     // its place among them
	By        string         `json:"by"`
	ByKind    core.ActorKind `json:"by_kind"`
	Door      core.Door      `json:"door,omitempty"`
	Cause     string         `json:"cause_event,omitempty"`
	RetryOf   string         `json:"retry_of,omitempty"`
	Steps     []StepState    `json:"steps"`
	At        int            `json:"at"` // the step at hand, from 1
	Tries     int            `json:"tries"`
	Why       string         `json:"why,omitempty"`      // why it waits, or ended as it did
	Withdrawn bool           `json:"withdrawn,omitzero"` // it is to be taken back
	Approval  string         `json:"approval_id,omitempty"`
	Decision  string         `json:"decision_id,omitempty"`
	Used      bool           `json:"approval_used,omitzero"`
	Epoch     uint64         `json:"epoch,omitzero"`   // of the data file, while its step is tried
	NextAt    time.Time      `json:"next_at,omitzero"` // it is not tried again before
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
	EndedAt   time.Time      `json:"ended_at,omitzero"`
	AuditSeq  uint64         `json:"audit_seq,omitzero"`

	Before string `json:"waits_for,omitempty"` // the intent that comes first; filled in when it is read
}

// step is the step at hand.
func (i *Intent) step() *StepState { return &i.Steps[i.At-1] }
