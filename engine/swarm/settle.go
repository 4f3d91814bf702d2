package swarm

import (
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

var _ judge.Settler = (*Swarm)(nil)

// Validate checks edited arguments before they are judged again, and returns
// them as they will run, with the runner's defaults.
func (s *Swarm) Validate(a judge.Approval, args core.Raw) (core.Raw, error) {
	if a.Gate != judge.GateStart {
		return nil, core.Errorf(core.InvalidInput, "edit: only the arguments of a task or a tool call can be edited").With("field", "edit")
	}
	if err := core.CheckObject("edit", args, core.MaxInput); err != nil {
		return nil, err
	}
	r, err := s.runner(a.Action.Kind)
	if err != nil {
		return nil, err
	}
	_, action, err := r.Check(a.TenantID, args)
	if err != nil {
		return nil, err
	}
	if tg, ok := r.(targeter); ok && tg.Target(args) != a.Agent.Name {
		return nil, core.Invalid("edit.agent", tg.Target(args), a.Agent.Name+"; to ask another agent, deny this and dispatch anew")
	}
	return action.Args, nil
}

// Settle applies an approval's end to the task or budget it was about.
func (s *Swarm) Settle(tx *audit.Tx, a judge.Approval, out judge.Outcome) error {
	if a.Gate == judge.GateBudget {
		return s.settleBudget(tx, a, out)
	}
	var t Task
	if err := loadTask(tx, taskSeq(a.TaskID), &t); err != nil {
		return err
	}
	if t.Waiting == "" || t.ApprovalID != a.ApprovalID {
		return core.Errorf(core.Conflict, "task %s does not wait for approval %s any more", t.TaskID, a.ApprovalID)
	}
	setWaiting(tx, &t, false)
	if a.Gate == judge.GateResult {
		return s.settleResult(tx, &t, out)
	}
	return s.settleStart(tx, &t, a, out)
}

func (s *Swarm) settleStart(tx *audit.Tx, t *Task, a judge.Approval, out judge.Outcome) error {
	if !out.Approved {
		code := "approval_denied"
		if out.Decision.ReasonCode == "deadline" {
			code = "approval_expired"
		}
		return s.end(tx, t, Result{Status: Blocked, Error: &TaskError{
			Code: code, Message: denial(out), Details: core.MustEncode(map[string]string{"approval_id": a.ApprovalID}),
		}})
	}
	if a.PriorDigest != "" {
		r, err := s.runner(t.Kind)
		if err != nil {
			return err
		}
		title, _, err := r.Check(t.TenantID, out.Args)
		if err != nil {
			return fmt.Errorf("edited arguments: %w", err)
		}
		t.Title, t.Bound = cut(title, 200), judge.FilesDigest(a.Action.Files)
		if err := tx.Put(bInput, key8(taskSeq(t.TaskID)), append([]byte(nil), out.Args...)); err != nil {
			return err
		}
	}
	if err := s.move(tx, t, Queued, "task.approved", core.MustEncode(map[string]string{"approval_id": a.ApprovalID, "by": out.By})); err != nil {
		return err
	}
	return s.enqueue(tx, t)
}

func (s *Swarm) settleResult(tx *audit.Tx, t *Task, out judge.Outcome) error {
	var parked Outcome
	if err := load(tx, bParked, key8(taskSeq(t.TaskID)), "parked result of task", t.TaskID, &parked); err != nil {
		return err
	}
	if err := tx.Delete(bParked, key8(taskSeq(t.TaskID))); err != nil {
		return err
	}
	switch {
	case out.Approved:
		return s.end(tx, t, Result{Status: Succeeded, Output: parked.Output, Confidence: parked.Confidence, Denials: parked.Denials})
	case out.Abort:
		return s.end(tx, t, Result{Status: Blocked, Output: parked.Output, Error: &TaskError{Code: "approval_denied", Message: denial(out)}})
	}
	_, err := s.reject(tx, t, parked, "result_rejected", denial(out))
	return err
}

// Gate marks that a running task waits for an approval, opened by whoever runs
// it (the fleet, for a tool call); approvalID "" means that it goes on. A task
// that does not run can't wait: that is a CONFLICT.
func (s *Swarm) Gate(tx *audit.Tx, taskID, approvalID string) error {
	var t Task
	if err := loadTask(tx, taskSeq(taskID), &t); err != nil {
		return err
	}
	if t.Status != Running {
		if approvalID != "" {
			return core.Errorf(core.Conflict, "task %s is %s: nobody would act on approval %s", taskID, t.Status, approvalID)
		}
		return nil // it ended meanwhile: nothing waits
	}
	if approvalID == "" && t.Waiting == "" {
		return nil
	}
	event := "task.waiting"
	if approvalID == "" {
		event = "task.resumed"
	}
	t.ApprovalID = approvalID
	setWaiting(tx, &t, approvalID != "")
	return s.move(tx, &t, Running, event, core.MustEncode(map[string]string{"approval_id": approvalID}))
}

func denial(out judge.Outcome) string {
	msg := "denied by " + out.By
	if out.Decision.ReasonCode == "deadline" {
		msg = "nobody answered before the deadline"
	}
	if out.Reason != "" {
		msg += ": " + out.Reason
	}
	return cut(msg, 4096)
}

// settleBudget grants the same amount again, or ends what runs on the budget.
func (s *Swarm) settleBudget(tx *audit.Tx, a judge.Approval, out judge.Outcome) error {
	var args struct {
		Subject string `json:"subject"`
	}
	if err := core.DecodeStored(a.Action.Args, &args); err != nil {
		return fmt.Errorf("budget approval %s: %w", a.ApprovalID, err)
	}
	old, err := s.budgets.Load(tx, args.Subject)
	if err != nil {
		return err
	}
	if old == nil || old.ApprovalID != a.ApprovalID {
		return core.Errorf(core.Conflict, "the budget of %s does not wait for approval %s any more", args.Subject, a.ApprovalID)
	}
	b := *old
	b.ApprovalID = ""
	if out.Approved {
		b.Granted, b.Reached = b.Granted+1, ""
		return s.putBudget(tx, old, &b, "budget.granted")
	}
	b.Denied = true
	if err := s.putBudget(tx, old, &b, "budget.denied"); err != nil {
		return err
	}
	if b.Reached == limitTasks {
		return nil // what runs was within it
	}
	for _, id := range s.runningOn(a.TenantID, b.Subject) {
		var t Task
		if err := loadTask(tx, taskSeq(id), &t); err != nil {
			return err
		}
		if t.Status == Running {
			if err := s.cancel(tx, &t, "the budget of "+b.Subject+" is used up"); err != nil {
				return err
			}
		}
	}
	return nil
}

// runningOn lists the running tasks that draw on a budget.
func (s *Swarm) runningOn(tenant, subject string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, l := range s.leases {
		if l.tenant == tenant && contains(slices.Collect(lane{l.session, l.agent}.subjects()), subject) {
			out = append(out, l.task)
		}
	}
	return out
}
