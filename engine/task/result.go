package task

import (
	"time"

	"swarmdeck/engine/core"
)

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
