package control

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// Bounds of a Spec.
const (
	maxSteps = 16
	maxArgs  = 1 << 20 // bytes of the arguments of all steps: the judge reads them
	maxName  = 256     // bytes of a subject
)

// Spec is what somebody wants.
type Spec struct {
	AgentID   string // whom it concerns; required
	TaskID    string
	SessionID string
	TraceID   string // "" means a fresh one
	// Cause is the event that led to it; zero means that the intent itself did.
	Cause dag.EventRef
	// Subject is what the effects work on, such as "resource:vol-1" or "agent:ada".
	// Intents of one subject are carried out one after another, as they came; ""
	// takes no turns.
	Subject string
	Steps   []Step // 1-16, in their order
}

func (c *Controller) check(s *Spec) error {
	switch {
	case len(s.Steps) < 1 || len(s.Steps) > maxSteps:
		return core.Invalid("steps", len(s.Steps), fmt.Sprintf("1-%d steps", maxSteps))
	case s.AgentID == "":
		return core.Invalid("agent_id", "", "the name of an agent")
	}
	if len(s.Subject) > maxName || !utf8.ValidString(s.Subject) || strings.ContainsFunc(s.Subject, unicode.IsControl) {
		return core.Invalid("subject", s.Subject, fmt.Sprintf("text of at most %d bytes without control characters", maxName))
	}
	total := 0
	for n := range s.Steps {
		step := &s.Steps[n]
		field := fmt.Sprintf("steps[%d]", n)
		if _, known := c.kinds[step.Action]; !known {
			return core.Invalid(field+".action", step.Action, strings.Join(c.Actions(), ", "))
		}
		if len(step.Args) == 0 {
			step.Args = core.Raw("{}")
		}
		if err := core.CheckObject(field+".args", step.Args, maxArgs); err != nil {
			return err
		}
		if err := core.CheckExact(step.Args); err != nil {
			return fmt.Errorf("%s.args: %w", field, err)
		}
		if total += len(step.Args); total > maxArgs {
			return core.Invalid("steps", fmt.Sprintf("%d bytes of arguments", total), fmt.Sprintf("at most %d in all", maxArgs))
		}
	}
	return nil
}

// Intend records what somebody wants: it is on disk when this returns, and is
// brought about from then on. An agent may want something for itself alone.
func (c *Controller) Intend(ctx context.Context, by core.Caller, spec Spec) (Intent, error) {
	if err := c.check(&spec); err != nil {
		return Intent{}, err
	}
	var out Intent
	err := c.ledger.Update(ctx, by, func(tx *audit.Tx) (err error) {
		out, err = c.intend(tx, spec, "")
		return err
	})
	return out, audit.Explain("intend", err)
}

// intend makes an intent of a spec that was checked.
func (c *Controller) intend(tx *audit.Tx, spec Spec, retryOf string) (Intent, error) {
	if spec.TraceID == "" {
		spec.TraceID = core.NewTrace(nil)
	}
	f := &file{c: c, tx: tx, Intent: Intent{
		TenantID: tx.Tenant(), IntentID: core.NewID(core.IntentPrefix, tx.Tenant(), c.intents.Next(tx)), Status: Open,
		AgentID: spec.AgentID, TaskID: spec.TaskID, SessionID: spec.SessionID, TraceID: spec.TraceID, Subject: spec.Subject,
		By: tx.By.Name, ByKind: tx.By.Kind, Door: tx.By.Door, Cause: spec.Cause.EventID, RetryOf: retryOf,
		At: 1,
	}}
	reason := "schedule"
	if tx.By.Kind == core.Operator {
		reason = "user"
	}
	cause := f.emit(&dag.RunStarted{Reason: reason})
	if spec.Cause.EventID != "" {
		cause = spec.Cause
	}
	for n, step := range spec.Steps {
		if k := c.kinds[step.Action]; tx.By.Kind == core.Agent && k.Destructive {
			f.Status, f.Why = Waiting, "for the judge"
		}
		call := f.emit(&dag.ToolCall{Server: server, Tool: step.Action, CallID: callID(f.IntentID, n+1), Args: step.Args, RequestedBy: cause})
		f.Steps = append(f.Steps, StepState{Action: step.Action, Status: StepPending, Call: call.EventID})
	}
	f.wake(f.IntentID)
	if f.Status == Open {
		if err := f.line(); err != nil {
			return Intent{}, err
		}
	}
	err := f.save("made", map[string]any{"agent": f.AgentID, "subject": f.Subject, "by": f.By, "by_kind": f.ByKind})
	return f.Intent, err
}

// server is the server of the tool calls that intents are.
const server = "controller"

// undoTool is the tool of the calls that take a step back.
const undoTool = "undo"

func callID(intent string, step int) string { return fmt.Sprintf("%s/%d", intent, step) }
