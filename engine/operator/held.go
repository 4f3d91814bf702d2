package operator

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Held is what a process of a run asked of the kernel and its wall refused, or what was
// laid for a person's tools where the wall could not.
type Held struct {
	Deed     string   `json:"deed"` // one word: mount, spaces, module, …
	Call     string   `json:"call"` // of the kernel
	Severity Severity `json:"severity"`
	Tried    string   `json:"-"`                 // as it follows "tried to"
	Laid     string   `json:"laid,omitempty"`    // the path, in place of all of these
	When     string   `json:"-"`                 // as it follows "runs on your machine when"
	Program  string   `json:"program,omitempty"` // as the process calls itself
	PID      int      `json:"pid,omitzero"`      // as its cell counts; 0 is unknown
	Role     string   `json:"role,omitempty"`    // of the agent
	TaskID   string   `json:"task_id,omitempty"` // that the run or its agent works on
	TraceID  string   `json:"-"`                 // of that task
	Says     string   `json:"says"`              // all of it in words; filled in here
	Run      string   `json:"run,omitempty"`     // filled in here
	Agent    string   `json:"agent,omitempty"`   // filled in here
}

// Severity is how much a refusal says about a program.
type Severity string

const (
	// Low is what harmless programs try too, and go on without.
	Low Severity = "low"
	// High is what no program has a reason for in a cell.
	High Severity = "high"
)

// String is the refusal in words.
func (h Held) String() string {
	if h.Laid != "" {
		return fmt.Sprintf("%s was made or changed where this run can write: it runs on your machine when %s", h.Laid, h.When)
	}
	who := h.Program
	if who == "" {
		who = "a program"
	}
	if h.PID > 0 {
		who += fmt.Sprintf(" (pid %d)", h.PID)
	}
	text := fmt.Sprintf("%s tried to %s (%s): refused", who, h.Tried, h.Call)
	if h.Severity == Low {
		text += "; harmless programs try that too"
	}
	return text
}

// The types of its events.
const (
	heldEvent = "cell.refused"
	laidEvent = "cell.laid"
)

// HeldIn is what an event says in words of a run that was held, "" for an event
// of another type.
func HeldIn(e *audit.Event) string {
	var p struct {
		Detail struct {
			Says string `json:"says"`
		} `json:"detail"`
	}
	if e.EventType != heldEvent && e.EventType != laidEvent || core.DecodeStored(e.Payload, &p) != nil {
		return ""
	}
	return p.Detail.Says
}

// Held records that a run was held. One that is no tenant's is told of in each
// tenant that somebody may enter.
func (o *Operators) Held(ctx context.Context, run Run, h Held) error {
	h.Says, h.Run, h.Agent = h.String(), run.Name, run.Agent
	by := core.Caller{Tenant: run.Tenant, Name: run.Who(), Kind: core.Agent, Door: core.DoorEngine}
	if by.Name == "" {
		by.Name, by.Kind = "process", core.Engine
	}
	event := heldEvent
	if h.Laid != "" {
		event = laidEvent
	}
	tenants := []string{run.Tenant}
	if run.Tenant == "" {
		tenants = o.entered()
	}
	var errs []error
	for _, by.Tenant = range tenants {
		err := o.ledger.Refuse(ctx, by, audit.Entry{Type: event, Trace: h.TraceID, Subject: "cell", ID: run.Name, Detail: h}, nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("in %s: %w", by.Tenant, err))
		}
	}
	return errors.Join(errs...)
}
