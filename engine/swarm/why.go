package swarm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/session"
	"swarmdeck/engine/task"
)

// Reason says why a task waits. Kind is one of gate, lease, pause, budget,
// capacity, dependency, backoff, estop, session, retried, or "" when it does not wait.
type Reason struct {
	TaskID string      `json:"task_id,omitempty"`
	Status task.Status `json:"status"`
	Kind   string      `json:"kind"`
	Text   string      `json:"text"`
	Ref    string      `json:"ref,omitempty"` // approval, session, agent, budget or task to look at
	// Moving says that its running work shall stand still but has not
	// acknowledged that yet.
	Moving bool `json:"moving,omitzero"`
	// StartBy is when the task times out unless it has started.
	StartBy time.Time `json:"start_by,omitzero"`
}

// ForPerson says that it goes on once a person does something.
func (r *Reason) ForPerson() bool {
	return slices.Contains([]string{"gate", "pause", "budget", "estop", "session"}, r.Kind)
}

// Why answers "why is this waiting?", and of what is over why it ended so.
func (s *slotting) Why(ctx context.Context, tenant, id string) (Reason, error) {
	t, err := s.tasks.Header(ctx, core.Self(tenant, "reader"), id)
	if err != nil {
		return Reason{}, err
	}
	r := s.why(ctx, &t)
	if r.StartBy = t.StartBy(); !r.StartBy.IsZero() {
		r.Text += "; it times out at " + r.StartBy.Format("15:04:05") + " unless it has started"
	}
	return r, nil
}

func (s *slotting) why(ctx context.Context, t *task.Task) Reason {
	r := Reason{TaskID: t.TaskID, Status: t.Status}
	set := func(kind, ref, format string, args ...any) Reason {
		r.Kind, r.Ref, r.Text = kind, ref, fmt.Sprintf(format, args...)
		return r
	}
	if t.Status.Terminal() {
		r = s.whyEnded(ctx, t, set)
		if t.RetriedAs != "" {
			r.Kind, r.Ref, r.Text = "retried", t.RetriedAs, r.Text+"; it was retried as "+t.RetriedAs
		}
		return r
	}
	if t.Waiting != "" {
		return set("gate", t.ApprovalID, "a person must answer approval %s", t.ApprovalID)
	}
	stop := s.EStops.State(t.TenantID)
	s.mu.Lock()
	state := s.Sessions.State(t.TenantID, t.SessionID)
	spent, denied := s.Budgets.Reached(t.TenantID, spender(t))
	if t.Status == task.Running && !s.Budgets.Spent(t.TenantID, spender(t)) {
		spent, denied = "", false
	}
	l := s.leases[refOf(t)]
	frozen := l != nil && l.frozen || t.Status == task.Queued
	r.Moving = l != nil && !l.frozen && s.wantFrozen(l)
	s.mu.Unlock()
	acknowledged := map[bool]string{true: "", false: ", not yet acknowledged"}[frozen]
	switch {
	case stop.On:
		return set("estop", t.TenantID, "the emergency stop is on (%s: %s)%s", stop.By, stop.Reason, acknowledged)
	case t.Pending > 0:
		return set("dependency", t.After[0], "it waits for %d of the tasks %v", t.Pending, t.After)
	case t.SessionID != "" && state == session.Created:
		return set("session", t.SessionID, "session %s is not started", t.SessionID)
	case t.SessionID != "" && state == session.Paused:
		return set("pause", t.SessionID, "session %s is paused%s", t.SessionID, acknowledged)
	case t.SessionID != "" && state == "" && t.Status == task.Queued:
		return set("session", t.SessionID, "session %s is stopped: the task is about to be cancelled", t.SessionID)
	case spent != "" && denied:
		return set("budget", spent, "the budget of %s is used up and more was denied: raise it to go on", spent)
	case spent != "":
		return set("budget", spent, "the budget of %s is used up%s", spent, acknowledged)
	case t.Paused:
		return set("pause", t.TaskID, "the task is paused%s", acknowledged)
	case t.Status == task.Running && t.CancelRequested:
		return set("lease", t.Worker, "it is being cancelled")
	case t.Status == task.Running && l == nil:
		return set("lease", t.Worker, "its lease was held by %s and is about to be taken away", t.Worker)
	case t.Status == task.Running:
		if a := s.connects(ctx, t); a != nil {
			return set("gate", a.ApprovalID, "worker %s runs it; a person must answer approval %s: %s", t.Worker, a.ApprovalID, a.Subject.Headline)
		}
		if why := s.stands(t); why != "" {
			return set("pause", t.Agent, "%s", why)
		}
		return set("", "", "it does not wait: worker %s runs it", t.Worker)
	case !t.RunAt.IsZero():
		after := ""
		if t.ErrorCode != "" { // none where the engine ended it
			after = ", after " + t.ErrorCode
		}
		return set("backoff", "", "attempt %d starts at %s%s", t.Attempt+1, t.RunAt.Format("15:04:05"), after)
	}
	return s.whyCapacity(t, set)
}

// whyEnded is what its result says; Ref is the approval, budget, task or agent that it
// ended for.
func (s *slotting) whyEnded(ctx context.Context, t *task.Task, set func(kind, ref, format string, args ...any) Reason) Reason {
	if t.Status == task.Succeeded {
		return set("", "", "it did what it was to do")
	}
	r, err := s.tasks.Result(ctx, t.TenantID, t.TaskID)
	if err != nil || r.Error == nil {
		return set("", t.ApprovalID, "%s; what it said is no longer kept", t.ErrorCode)
	}
	ref := cmp.Or(t.ApprovalID, t.Agent)
	var may []string // an error may be an agent's own words: none but these become a part of a command
	switch r.Error.Code {
	case "budget_denied":
		may = []string{"tenant", "session:" + t.SessionID, "agent:" + t.Agent}
	case "dependency_failed":
		may = t.After
	}
	for _, name := range may {
		if strings.Contains(r.Error.Message, " "+name+" ") {
			ref = name
		}
	}
	return set("", ref, "%s (%s)", r.Error.Message, r.Error.Code)
}

func (s *slotting) whyCapacity(t *task.Task, set func(kind, ref, format string, args ...any) Reason) Reason {
	if t.Agent == "" {
		if n := s.slotsLeft(t.TenantID); n <= 0 {
			return set("capacity", "", "all %d slots are taken", s.SlotsOf(t.TenantID).Slots)
		}
		return set("lease", "", "it is ready: the next free worker claims it")
	}
	if r, err := s.runner(t.Kind); err == nil {
		if free, text := r.Slot(t.TenantID, t.Agent); !free {
			return set("capacity", t.Agent, "agent %s is not free: %s", t.Agent, text)
		}
	}
	return set("lease", t.Agent, "it is ready: agent %s takes it next", t.Agent)
}

// stands is why the agent of a task stands still; "" is that it does not.
func (s *shared) stands(t *task.Task) string {
	if r, err := s.runner(t.Kind); err == nil {
		if r, ok := r.(stander); ok {
			return r.Stands(t.TenantID, t.Agent)
		}
	}
	return ""
}

// connects is an open question about a connection of a task, which its other
// work need not wait for; nil for none.
func (s *shared) connects(ctx context.Context, t *task.Task) *judge.Approval {
	open, err := s.judge.Open(ctx, t.TenantID)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(open, func(a judge.Approval) bool { return a.Gate == judge.GateNet && a.TaskID == t.TaskID })
	if i < 0 {
		return nil
	}
	return &open[i]
}
