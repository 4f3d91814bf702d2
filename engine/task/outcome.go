package task

import (
	"fmt"
	"time"

	"swarmdeck/engine/core"
)

// Outcome is how one attempt ended.
type Outcome struct {
	Status     Status   `json:"status"` // Succeeded, Failed, Cancelled, TimedOut or Blocked
	Output     core.Raw `json:"output,omitempty"`
	Error      *Error   `json:"error,omitempty"`
	Confidence *float64 `json:"confidence,omitempty"`
	Text       string   `json:"text,omitempty"`    // the output's text, for the result gate
	Denials    []string `json:"denials,omitempty"` // decisions that denied during the run
	// Stands says that it had an effect which no cancel or time-out since takes back.
	Stands bool `json:"-"`
	// Unsent says that nobody was told of the work: it can be given again unasked, and the
	// attempt counts for nothing.
	Unsent bool `json:"-"`
}

// Checked bounds what a worker reports and refuses what no outcome can be.
func (o Outcome) Checked() (Outcome, error) {
	if !o.Status.known() || !o.Status.Terminal() {
		return o, core.Invalid("status", string(o.Status), "succeeded, failed, cancelled, blocked or timed_out")
	}
	if o.Status == Succeeded && o.Error != nil {
		return o, core.Errorf(core.InvalidInput, "error: a succeeded result has none").With("field", "error")
	}
	if o.Status != Succeeded {
		if o.Error == nil {
			return o, core.Errorf(core.InvalidInput, "error: a %s result needs one", o.Status).With("field", "error")
		}
		var err error
		if o.Error, err = o.Error.checked(); err != nil {
			return o, err
		}
	}
	o.Text = core.Cut(o.Text, maxOutput)
	if len(o.Denials) > maxDenials {
		return o, core.Invalid("denials", len(o.Denials), fmt.Sprint("at most ", maxDenials))
	}
	for _, id := range o.Denials {
		if prefix, _, _, ok := core.ParseID(id); !ok || prefix != core.DecisionPrefix {
			return o, core.Invalid("denials", id, "ids of decisions")
		}
	}
	if o.Confidence != nil && !(*o.Confidence >= 0 && *o.Confidence <= 1) {
		return o, core.Invalid("confidence", *o.Confidence, "0-1")
	}
	if len(o.Output) == 0 {
		o.Output = core.Raw(`{}`)
	}
	return o, core.CheckObject("output", o.Output, maxOutput)
}

// maxOutput bounds a result's output: 1 MiB of text, escaped at worst.
const maxOutput = 8 << 20

// maxDenials bounds how many decisions that denied a result names.
const maxDenials = 1000

// Error is why a task did not succeed.
type Error struct {
	Code      string   `json:"code"`    // at most 64 characters
	Message   string   `json:"message"` // at most 4096 characters
	Retryable bool     `json:"retryable"`
	Details   core.Raw `json:"details,omitempty"`
}

// Told is what events say of an error: its text may be a person's, who may want
// it erased.
func (e *Error) Told() any {
	return struct {
		Code      string `json:"code"`
		SHA256    string `json:"message_sha256,omitempty"`
		Retryable bool   `json:"retryable"`
	}{e.Code, core.SHA256(e.Message), e.Retryable}
}

// maxDetails bounds an error's details, in bytes of JSON.
const maxDetails = 64 << 10

// checked cuts a runner's error to its limits.
func (e *Error) checked() (*Error, error) {
	c := *e
	c.Code, c.Message = core.Cut(c.Code, 64), core.Cut(c.Message, 4096)
	if c.Code == "" {
		c.Code = "failed"
	}
	if len(c.Details) == 0 {
		return &c, nil
	}
	return &c, core.CheckObject("error.details", c.Details, maxDetails)
}

// Result is how a task ended.
type Result struct {
	TenantID    string    `json:"tenant_id"`
	TraceID     string    `json:"trace_id"`
	TaskID      string    `json:"task_id"`
	Status      Status    `json:"status"`
	Output      core.Raw  `json:"output"`
	Error       *Error    `json:"error,omitempty"`
	ProducedBy  string    `json:"produced_by,omitempty"`
	CompletedAt time.Time `json:"completed_at"`
	Confidence  *float64  `json:"confidence,omitempty"`
	Denials     []string  `json:"denials,omitempty"` // decisions that denied during the run
}
