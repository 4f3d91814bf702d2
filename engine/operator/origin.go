package operator

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Origin is where a process comes from that calls by a door of this machine, as
// the system and those who start processes know it. Nothing in it is said by
// the process itself, except for what a mark tells.
type Origin struct {
	Kind OriginKind `json:"kind"`
	PID  int        `json:"pid"` // 0 for one outside of the engine's PID name space
	Run  Run        `json:"run,omitzero"`
	// Why ends the sentence for who is refused: set when Kind is Unclear.
	Why string `json:"-"`
}

// OriginKind is what is known of a process's origin.
type OriginKind string

// The kinds. Whatever is none of them counts as Unclear.
const (
	// Person is a process that the engine did not start, nor anything that the
	// engine started.
	Person OriginKind = "person"
	// OfRun is a process of a run, by descent.
	OfRun OriginKind = "run"
	// Unclear is one of the engine's that no run is known for, or one that could
	// not be looked at. Run is then what its mark says, which it may have put
	// there itself: good enough for the log, and for nothing else.
	Unclear OriginKind = "unclear"
)

// Run is what a process was started for.
type Run struct {
	Name   string `json:"name,omitempty"`   // as in the mark of its processes
	Tenant string `json:"tenant,omitempty"` // "" for one that is no tenant's
	Agent  string `json:"agent,omitempty"`  // name; "" for what no single agent runs in
	Task   string `json:"task,omitempty"`   // id, of a task's or a skill's own command
}

// Who names the agent or the task; "" for neither.
func (r Run) Who() string {
	if r.Agent != "" {
		return r.Agent
	}
	return r.Task
}

// attempt is the detail of a refusal.
type attempt struct {
	Origin
	Command string    `json:"command"`
	Code    core.Code `json:"code"`
	Message string    `json:"message"`
}

// RefusedProcess records that a process of the engine's tried something that
// only a person may. Command is the words that name it, without arguments:
// they may hold what is secret. When it is not known whose the process is, each
// tenant's log is told that somebody may enter.
func (o *Operators) RefusedProcess(ctx context.Context, by core.Caller, from Origin, command string, cause error) error {
	c := core.AsError(cause)
	entry := audit.Entry{
		Type: "caller.refused", Subject: "caller", ID: by.Name,
		Detail: attempt{Origin: from, Command: command, Code: c.Code, Message: c.Message},
	}
	if by.Tenant != "" {
		return o.ledger.Refuse(ctx, by, entry, cause)
	}
	var errs []error
	for _, tenant := range o.entered() {
		by.Tenant = tenant
		if err := o.ledger.Refuse(ctx, by, entry, nil); err != nil {
			errs = append(errs, fmt.Errorf("in %s: %w", tenant, err))
		}
	}
	return errors.Join(append(errs, cause)...)
}

// RefusedProcessAgain records many such refusals as one event.
func (o *Operators) RefusedProcessAgain(ctx context.Context, by core.Caller, a Again) error {
	tenants := []string{by.Tenant}
	if by.Tenant == "" {
		tenants = o.entered()
	}
	var errs []error
	for _, tenant := range tenants {
		by.Tenant = tenant
		errs = append(errs, o.ledger.Refuse(ctx, by, audit.Entry{Type: "caller.refused", Subject: "caller", ID: by.Name, Detail: a}, nil))
	}
	return errors.Join(errs...)
}
