package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
	"swarmdeck/store"
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

// Get reads an intent with what its steps want and came to.
func (c *Controller) Get(ctx context.Context, by core.Caller, id string) (Intent, error) {
	id, err := c.local(ctx, by, id)
	if err != nil {
		return Intent{}, err
	}
	var out Intent
	err = c.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		i, err := c.intents.Need(tx, id)
		if err == nil {
			err = c.show(tx, i)
		}
		if err != nil {
			return err
		}
		out = *i
		for n := range out.Steps {
			if err := c.fill(tx, &out.Steps[n]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, audit.Explain("read intent "+id, err)
}

// fill reads a step's arguments and result from the record.
func (c *Controller) fill(tx store.Tx, s *StepState) error {
	call, err := c.dag.GetIn(tx, s.Call)
	if err != nil {
		return err
	}
	s.Args = call.Event.Body.(*dag.ToolCall).Args
	if s.End == "" {
		return nil
	}
	end, err := c.dag.GetIn(tx, s.End)
	if err != nil {
		return err
	}
	if b := end.Event.Body.(*dag.ToolResult); b.Status == dag.CallOK {
		s.Result = b.Result
	}
	return nil
}

// show adds to an intent what it waits for.
func (c *Controller) show(tx *audit.Tx, i *Intent) error {
	if i.Status.Over() {
		return nil
	}
	if i.Epoch == tx.Epoch() {
		i.Why = join(i.Why, "the engine works on it")
		return nil
	}
	if i.Turn > 0 && i.Status == Open {
		whose, err := first(tx, i.Subject)
		if err != nil {
			return err
		}
		if whose != i.IntentID && whose != "" {
			i.Before = whose
			i.Why = join(i.Why, fmt.Sprintf("%s comes first with %s", i.Before, i.Subject))
			return nil
		}
	}
	if i.Status == Open || i.Status == Undoing {
		i.Why = join(i.Why, "tried "+waitsUntil(i.NextAt, tx.Now()))
	}
	return nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// List lists intents, newest first; openOnly leaves out those that are over. A
// page of all, or of the open ones, costs the same wherever it stands; a filter
// reads through them. f.Kind is an action, f.Match looks at id, subject, agent
// and why.
func (c *Controller) List(ctx context.Context, tenant string, f core.Filter, openOnly bool) (page core.Page[Intent], err error) {
	q := record.Query[*Intent]{}
	if q.Filter, err = f.Check(); err != nil {
		return page, err
	}
	if openOnly {
		q.Along, q.Word = bOpen, open
	}
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		if q.Filter.Narrows() {
			q.Match = func(i *Intent) (bool, error) {
				err := c.show(tx, i)
				return i.matches(q.Filter), err
			}
		}
		if page, err = record.Paged(c.intents.Page(ctx, tx, q)); err != nil || q.Match != nil {
			return err
		}
		for n := range page.Items {
			err = errors.Join(err, c.show(tx, &page.Items[n]))
		}
		return err
	})
	return page, audit.Explain("list the intents", err)
}

func (i *Intent) matches(f core.Filter) bool {
	does := func(s StepState) bool { return core.Wants(f.Kind, s.Action) }
	return slices.ContainsFunc(i.Steps, does) && core.Wants(f.Status, string(i.Status)) && core.Wants(f.Agent, i.AgentID) && core.Wants(f.Session, i.SessionID) &&
		core.Wants(f.Trace, i.TraceID) && core.Wants(f.Task, i.TaskID) &&
		f.Finds(i.IntentID, i.Subject, i.AgentID, i.Why)
}
