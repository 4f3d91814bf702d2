package fleet

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
)

// Validate implements judge.Settler: edited arguments must be a JSON object,
// and one that whoever asked can act on.
func (f *Fleet) Validate(ap judge.Approval, args core.Raw) (core.Raw, error) {
	return f.asked.Validate(ap, args)
}

// Bind implements judge.Binder.
func (f *Fleet) Bind(ap judge.Approval) []judge.File { return f.asked.Bind(ap) }

// Settle implements judge.Settler: the agent no longer waits, and its run is
// woken after the commit. An approval whose run is gone can't be approved.
func (f *Fleet) Settle(tx *audit.Tx, ap judge.Approval, out judge.Outcome) error {
	if err := f.asked.Settle(tx, ap, out); err != nil {
		return err
	}
	m := f.member(tx.Tenant(), ap.Agent.Name)
	if m == nil {
		return nil
	}
	if err := m.judged(tx, ap.TaskID, ap.Action, out.Decision); err != nil {
		return err
	}
	n := record.Event{Type: "agent.answered", Trace: ap.TraceID, Detail: map[string]any{
		"approval_id": ap.ApprovalID, "approved": out.Approved, "abort": out.Abort,
	}}
	_, err := f.changeIn(tx, m, n, func(_ *audit.Tx, a *Agent) error {
		if !a.answered(ap.ApprovalID) {
			return errSame
		}
		if a.Waiting == "" || a.TaskID == "" {
			return nil
		}
		return f.opt.Swarm.Gate(tx, a.TaskID, a.Waiting)
	})
	return err
}
