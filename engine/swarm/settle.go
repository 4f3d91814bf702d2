package swarm

import (
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

var _ interface {
	judge.Editor
	judge.Settler
	judge.Tasks
} = (*Swarm)(nil)

// Validate checks edited arguments before they are judged again, and returns
// them as they will run, with the runner's defaults.
func (s *ending) Validate(a judge.Approval, args core.Raw) (core.Raw, error) {
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

// Settle applies an approval's end to the task it was about.
func (s *ending) Settle(tx *audit.Tx, a judge.Approval, out judge.Outcome) error {
	var t task.Task
	if err := s.tasks.Load(tx, task.Seq(a.TaskID), &t); err != nil {
		return err
	}
	if t.Waiting == "" || t.ApprovalID != a.ApprovalID {
		return core.Errorf(core.Conflict, "task %s does not wait for approval %s any more", t.TaskID, a.ApprovalID)
	}
	t.SetWaiting(tx, false)
	if a.Gate == judge.GateResult {
		return s.settleResult(tx, &t, out)
	}
	return s.settleStart(tx, &t, a, out)
}

func (s *ending) settleStart(tx *audit.Tx, t *task.Task, a judge.Approval, out judge.Outcome) error {
	if !out.Approved {
		code := "approval_denied"
		if out.Decision.ReasonCode == "deadline" {
			code = "approval_expired"
		}
		return s.end(tx, t, task.Result{Status: task.Blocked, Error: &task.Error{
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
		t.Title, t.Bound = core.Cut(title, 200), judge.FilesDigest(a.Action.Files)
		if err := s.tasks.PutInput(tx, t.Seq(), out.Args); err != nil {
			return err
		}
	}
	if err := s.tasks.Move(tx, t, task.Queued, "task.approved", core.MustEncode(map[string]string{"approval_id": a.ApprovalID, "by": out.By})); err != nil {
		return err
	}
	return s.enqueue(tx, t)
}

func (s *ending) settleResult(tx *audit.Tx, t *task.Task, out judge.Outcome) error {
	held, there, err := parked.Get(tx, record.Seq(t.Seq()))
	if err == nil && !there {
		err = core.Missing("parked result of task", t.TaskID)
	}
	if err == nil {
		err = parked.Delete(tx, record.Seq(t.Seq()))
	}
	if err == nil {
		err = s.opt.Record.Judged(tx, t, out.Decision)
	}
	if err != nil {
		return err
	}
	switch {
	case out.Approved:
		return s.end(tx, t, task.Result{Status: task.Succeeded, Output: held.Output, Confidence: held.Confidence, Denials: held.Denials})
	case out.Abort:
		return s.end(tx, t, task.Result{Status: task.Blocked, Output: held.Output, Error: &task.Error{Code: "approval_denied", Message: denial(out)}})
	}
	_, err = s.reject(tx, t, held, "result_rejected", denial(out))
	return err
}

// Gate marks that a running task waits for an approval, opened by whoever runs
// it (the fleet, for a tool call); approvalID "" means that it goes on. A task
// that does not run can't wait: that is a CONFLICT.
func (s *shared) Gate(tx *audit.Tx, taskID, approvalID string) error {
	var t task.Task
	if err := s.tasks.Load(tx, task.Seq(taskID), &t); err != nil {
		return err
	}
	if t.Status != task.Running {
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
	t.SetWaiting(tx, approvalID != "")
	return s.tasks.Move(tx, &t, task.Running, event, core.MustEncode(map[string]string{"approval_id": approvalID}))
}

// Ungate has a task go on that waits for an approval.
func (s *shared) Ungate(tx *audit.Tx, taskID, approvalID string) error {
	var t task.Task
	if err := s.tasks.Load(tx, task.Seq(taskID), &t); err != nil || t.Waiting == "" || t.ApprovalID != approvalID {
		return err
	}
	return s.Gate(tx, taskID, "")
}

func denial(out judge.Outcome) string {
	msg := "denied by " + out.By
	if out.Decision.ReasonCode == "deadline" {
		msg = "nobody answered before the deadline"
	}
	if out.Reason != "" {
		msg += ": " + out.Reason
	}
	return core.Cut(msg, 4096)
}
