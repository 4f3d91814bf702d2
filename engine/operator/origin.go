package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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

// Rejected is how many connections a door turned away in some time, and whose
// they were as far as that is known.
type Rejected struct {
	Since   time.Time      `json:"since"`
	Until   time.Time      `json:"until"`
	Reasons map[string]int `json:"reasons"`         // connections by reason
	From    map[string]int `json:"from"`            // connections by address, the first few
	Keys    []string       `json:"keys,omitempty"`  // fingerprints that nobody has, the first few
	Others  int            `json:"others,omitzero"` // connections of further addresses
}

// maxTold bounds the tenants whose log is told of strangers.
const maxTold = 16

// RecordRejected records strangers in the log of every tenant that somebody may enter
// by that door: whom they were after can't be known. Where nobody may, it is
// the first tenant's.
func (o *Operators) RecordRejected(ctx context.Context, door core.Door, t Rejected) error {
	var errs []error
	for _, tenant := range o.entered() {
		by := core.Caller{Tenant: tenant, Name: string(door), Kind: core.Engine, Door: door}
		if err := o.ledger.Update(context.WithoutCancel(ctx), by, func(tx *audit.Tx) error {
			_, err := tx.Record(audit.Entry{Type: "door.refused", Subject: "door", ID: string(door), Detail: t})
			return err
		}); err != nil {
			errs = append(errs, fmt.Errorf("audit who was turned away, in %s: %w", tenant, err))
		}
	}
	return errors.Join(errs...)
}

// entered lists the tenants that have operators, or the first of all.
func (o *Operators) entered() []string {
	tenants := map[string]bool{}
	o.state.Look(func() {
		for _, all := range o.grants {
			for _, g := range all {
				tenants[g.Tenant] = true
			}
		}
	})
	told := slices.Sorted(maps.Keys(tenants))
	if len(told) == 0 {
		all, err := o.tenants(context.Background())
		if err == nil && len(all) > 0 {
			told = all[:1]
		}
	}
	return told[:min(len(told), maxTold)]
}

// Again is how often a known operator was refused, in some time, what the log
// says already that they were.
type Again struct {
	Since   time.Time      `json:"since"`
	Until   time.Time      `json:"until"`
	Reasons map[string]int `json:"reasons"`         // refusals by reason, the first few
	Others  int            `json:"others,omitzero"` // refusals for further reasons
}

// Refused records that a known operator was refused something by their role.
func (o *Operators) Refused(ctx context.Context, by core.Caller, cause error) error {
	return o.ledger.Refuse(ctx, by, refused(by, nil), cause)
}

// RefusedAgain records many refusals as one event.
func (o *Operators) RefusedAgain(ctx context.Context, by core.Caller, a Again) error {
	return o.ledger.Refuse(ctx, by, refused(by, a), nil)
}

func refused(by core.Caller, detail any) audit.Entry {
	return audit.Entry{Type: "operator.refused", Subject: "operator", ID: by.Name, Detail: detail}
}
