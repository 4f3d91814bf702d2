package engine

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/task"
)

// Handover is what an operator tells the next one.
type Handover struct {
	TenantID  string        `json:"tenant_id"`
	Since     time.Time     `json:"since"`
	At        time.Time     `json:"at"`
	EStop     estop.State   `json:"estop"`
	Stops     []StopChange  `json:"estop_changes"`      // since then, newest first
	Approvals []OpenAsk     `json:"approvals"`          // open ones, the most urgent first
	Decisions []Answered    `json:"decisions"`          // since then, newest asked first
	Failures  []FailedTask  `json:"failures"`           // since then, newest task first
	Agents    []TroubledOne `json:"agents"`             // that are stuck, failed, offline or ask for a person
	Budgets   []NearBudget  `json:"budgets"`            // reached, or at 80 % or more of a limit
	Running   []task.Task   `json:"running"`            // newest first
	Counts    task.Counts   `json:"counts"`             // of tasks, now
	Cut       []string      `json:"cut,omitempty"`      // parts that hold more than is listed
	To        string        `json:"to,omitempty"`       // who takes over, once that is recorded
	EventID   string        `json:"event_id,omitempty"` // of that record
}

// StopChange is one turn of the emergency stop.
type StopChange struct {
	At     time.Time `json:"at"`
	Type   string    `json:"event_type"` // estop.on, estop.off
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

// OpenAsk is an open approval.
type OpenAsk struct {
	ApprovalID  string     `json:"approval_id"`
	TaskID      string     `json:"task_id,omitempty"`
	Agent       string     `json:"agent,omitempty"`
	Risk        judge.Risk `json:"risk"`
	Headline    string     `json:"headline"`
	CreatedAt   time.Time  `json:"created_at"`
	DeadlineAt  time.Time  `json:"deadline_at,omitzero"` // none: it waits without end
	AtDeadline  string     `json:"at_deadline,omitzero"`
	EscalatedTo string     `json:"escalated_to,omitempty"`
	ApprovedBy  []string   `json:"approved_by,omitempty"`
}

// Answered is an approval that ended.
type Answered struct {
	ApprovalID string               `json:"approval_id"`
	TaskID     string               `json:"task_id,omitempty"`
	Risk       judge.Risk           `json:"risk"`
	Headline   string               `json:"headline"`
	Status     judge.ApprovalStatus `json:"status"`
	AnsweredBy string               `json:"answered_by"` // "policy" when the deadline denied
	AnsweredAt time.Time            `json:"answered_at"`
	Reason     string               `json:"answer_reason,omitempty"`
	Edited     bool                 `json:"edited,omitzero"`
	Self       bool                 `json:"self_approved,omitzero"`
	WaitedS    float64              `json:"waited_s"`           // from ask to answer
	DecidedS   *float64             `json:"decided_s,omitzero"` // from shown to answer; none when it was never shown
}

// FailedTask is a task that did not end well.
type FailedTask struct {
	TaskID      string      `json:"task_id"`
	Title       string      `json:"title,omitempty"`
	Kind        string      `json:"kind"`
	Agent       string      `json:"agent,omitempty"`
	Status      task.Status `json:"status"`
	ErrorCode   string      `json:"error_code,omitempty"`
	CompletedAt time.Time   `json:"completed_at"`
}

// TroubledOne is an agent that needs a person.
type TroubledOne struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Why    string `json:"why"`
	TaskID string `json:"task_id,omitempty"`
}

// NearBudget is a budget with the limit that it is nearest to.
type NearBudget struct {
	Subject string  `json:"subject"`
	Limit   string  `json:"limit"` // tokens, cost, wall, tasks
	Share   float64 `json:"share"` // used of it; from 1 on it is reached
	Denied  bool    `json:"denied,omitzero"`
}

// Bounds of a hand-over.
const (
	mostListed  = 100
	mostLooked  = 20_000 // approvals
	nearShare   = 0.8
	longestBack = 30 * 24 * time.Hour
)

// Handover reports what is open and what happened since, from indexes and with
// bounds: Cut names what holds more. It changes nothing.
func (e *Engine) Handover(ctx context.Context, tenant string, since time.Time) (Handover, error) {
	now := e.Audit.Clock().Now()
	if since.After(now) || now.Sub(since) > longestBack {
		return Handover{}, core.Invalid("since", since.Format(time.RFC3339), "a time within the last 30 days")
	}
	s := e.Snapshot(tenant)
	if s.Err != nil {
		return Handover{}, s.Err
	}
	h := Handover{
		TenantID: tenant, Since: since, At: now, EStop: s.EStop, Counts: s.Counts,
		Stops: []StopChange{}, Approvals: []OpenAsk{}, Decisions: []Answered{}, Failures: []FailedTask{}, Agents: []TroubledOne{}, Budgets: []NearBudget{},
	}
	for _, a := range s.Approvals {
		h.Approvals = append(h.Approvals, OpenAsk{
			a.ApprovalID, a.TaskID, a.Agent.Name, a.Risk, a.Subject.Headline, a.CreatedAt, a.DeadlineAt, a.AtDeadline, a.EscalatedTo, a.Consenting(),
		})
	}
	for _, a := range s.Agents {
		if why := a.Needs(); why != "" {
			h.Agents = append(h.Agents, TroubledOne{a.Name, a.State(), why, a.TaskID})
		}
	}
	for i := range s.Budgets {
		if limit, share := s.Budgets[i].Nearest(); share >= nearShare || s.Budgets[i].Reached != "" {
			h.Budgets = append(h.Budgets, NearBudget{s.Budgets[i].Subject, limit, share, s.Budgets[i].Denied})
		}
	}
	for _, part := range []func(context.Context, *Handover) error{e.handDecisions, e.handFailures, e.handRunning, e.handStops} {
		if err := part(ctx, &h); err != nil {
			return Handover{}, fmt.Errorf("report a hand-over: %w", err)
		}
	}
	h.Approvals = cut(&h, "approvals", h.Approvals)
	h.Agents = cut(&h, "agents", h.Agents)
	h.Budgets = cut(&h, "budgets", h.Budgets)
	return h, nil
}

// cut keeps what is listed of one part.
func cut[T any](h *Handover, part string, all []T) []T {
	if len(all) <= mostListed {
		return all
	}
	h.Cut = append(h.Cut, part)
	return all[:mostListed]
}

func (e *Engine) handDecisions(ctx context.Context, h *Handover) error {
	more := false
	all, err := e.Judge.Ended(ctx, h.TenantID, h.Since, mostLooked, func(a *judge.Approval) {
		if more = len(h.Decisions) == mostListed; more {
			return
		}
		d := Answered{
			ApprovalID: a.ApprovalID, TaskID: a.TaskID, Risk: a.Risk, Headline: a.Subject.Headline, Status: a.Status, AnsweredBy: a.AnsweredBy,
			AnsweredAt: a.AnsweredAt, Reason: a.AnswerReason, Edited: a.PriorDigest != "", Self: a.SelfApproved,
			WaitedS: a.AnsweredAt.Sub(a.CreatedAt).Seconds(),
		}
		if !a.ShownAt.IsZero() && a.Status != judge.Expired {
			took := a.AnsweredAt.Sub(a.ShownAt).Seconds()
			d.DecidedS = &took
		}
		h.Decisions = append(h.Decisions, d)
	})
	if more || !all {
		h.Cut = append(h.Cut, "decisions")
	}
	return err
}

func (e *Engine) handFailures(ctx context.Context, h *Handover) error {
	for _, status := range []task.Status{task.Failed, task.TimedOut, task.Blocked} {
		page, err := e.Tasks.List(ctx, h.TenantID, core.Filter{Status: string(status), Size: mostListed})
		if err != nil {
			return err
		}
		for _, t := range page.Items {
			if !t.CompletedAt.Before(h.Since) {
				h.Failures = append(h.Failures, FailedTask{t.TaskID, t.Title, t.Kind, t.Agent, t.Status, t.ErrorCode, t.CompletedAt})
			}
		}
		if page.Info.Next {
			if last := page.Items[len(page.Items)-1]; !last.CompletedAt.Before(h.Since) {
				h.Cut = append(h.Cut, "failures: "+string(status))
			}
		}
	}
	return nil
}

func (e *Engine) handRunning(ctx context.Context, h *Handover) error {
	page, err := e.Tasks.List(ctx, h.TenantID, core.Filter{Status: string(task.Running), Size: mostListed})
	h.Running = page.Items
	if page.Info.Next {
		h.Cut = append(h.Cut, "running")
	}
	return err
}

// handStops follows the emergency stop's events back from its newest.
func (e *Engine) handStops(ctx context.Context, h *Handover) error {
	events, err := e.Audit.Trail(ctx, h.TenantID, h.EStop.AuditSeq, mostListed)
	if err != nil {
		return err
	}
	for _, ev := range events {
		if ev.CreatedAt.Before(h.Since) {
			return nil
		}
		p, err := ev.Data()
		if err != nil {
			return err
		}
		var why struct {
			Reason string `json:"reason"`
		}
		if err := core.DecodeStored(p.Detail, &why); err != nil {
			return fmt.Errorf("read the reason of %s: %w", ev.EventID, err)
		}
		h.Stops = append(h.Stops, StopChange{ev.CreatedAt, ev.EventType, ev.Actor, why.Reason})
	}
	return nil
}

// HandOver reports, and records that the report went to somebody. Approvals
// and work stay where they are.
func (e *Engine) HandOver(ctx context.Context, by core.Caller, since time.Time, to string) (Handover, error) {
	if err := operator.CheckName("to", to); err != nil {
		return Handover{}, err
	}
	h, err := e.Handover(ctx, by.Tenant, since)
	if err != nil {
		return h, err
	}
	err = e.Audit.Update(ctx, by, func(tx *audit.Tx) error {
		seq, err := tx.Record(audit.Entry{Type: "operator.handover", Subject: "handover", ID: to, Detail: map[string]any{
			"from": by.Name, "to": to, "since": since, "approvals": len(h.Approvals), "decisions": len(h.Decisions),
			"failures": len(h.Failures), "agents": len(h.Agents), "budgets": len(h.Budgets), "running": len(h.Running), "estop": h.EStop.On,
		}})
		h.To, h.EventID = to, core.NewID(core.EventPrefix, tx.Tenant(), seq)
		return err
	})
	return h, err
}
