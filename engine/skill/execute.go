package skill

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

// begin records an execution before its skill runs, and that the subagent is
// at it.
func (r *run) begin(ctx context.Context, k *Skill, params core.Raw, place string) (*Execution, error) {
	t := &r.job.Task
	e := &Execution{
		AgentID: r.agent, SkillName: k.Name, SkillVersion: k.Version, Parameters: params, Status: StatusPending,
		TraceID: t.TraceID, TaskID: t.TaskID, SessionID: t.SessionID, Step: place, Kind: k.Runner.Kind, Digest: k.Digest,
	}
	was := *e
	err := r.update(ctx, func(tx *audit.Tx) error {
		*e = was // it runs again where the disk was full
		a, err := r.s.agents.Need(tx, r.agent)
		if err != nil {
			return err
		}
		if a.State.Final() {
			return errLost
		}
		if err := r.s.saveExec(tx, nil, e, "execution.started", map[string]any{"agent_id": e.AgentID, "skill": k.Ref(), "step": e.Step, "task_id": e.TaskID}); err != nil {
			return err
		}
		old := *a
		a.AssignedSkill, a.SkillParams, a.Step = k.Name, params, place
		return r.s.saveAgent(tx, &old, a, "subagent.step", map[string]any{"execution_id": e.ExecutionID})
	})
	if err != nil {
		return nil, fmt.Errorf("begin %s: %w", place, err)
	}
	return e, nil
}

// retried records that an execution is tried once more.
func (r *run) retried(ctx context.Context, e *Execution, f *failure) error {
	was := *e
	return r.update(ctx, func(tx *audit.Tx) error {
		*e = was
		e.RetryCount++
		return r.s.saveExec(tx, &was, e, "execution.retried", map[string]any{"error": shorten(f.message, maxExecutionError)})
	})
}

// end closes an execution, keeps its result with the subagent and announces
// it, all in one transaction.
func (r *run) end(ctx context.Context, k *Skill, e *Execution, how func(*Execution)) error {
	was := *e
	err := r.update(ctx, func(tx *audit.Tx) error {
		*e = was
		how(e)
		e.end(e.Status, tx.Now())
		if err := r.s.saveExec(tx, &was, e, "execution."+string(e.Status), endDetail(e)); err != nil {
			return err
		}
		if e.Status == StatusSuccess {
			if err := agentResults.Put(tx, resultsOf(e.TenantID, e.AgentID).Last(e.SkillName), e.Result); err != nil {
				return err
			}
		}
		return r.s.announce(tx, k, e)
	})
	if err != nil {
		return fmt.Errorf("end %s: %w", e.Step, err)
	}
	return nil
}

func endDetail(e *Execution) any {
	if e.Error == "" {
		return nil
	}
	return map[string]string{"error": e.Error}
}

// announce publishes how an execution ended: AREA.complete with its result, or
// AREA.failed with its error.
func (s *Skills) announce(tx *audit.Tx, k *Skill, e *Execution) error {
	if s.opt.Bus == nil {
		return nil
	}
	m := bus.Send{
		Topic: k.Area() + ".complete", Sender: e.AgentID, Type: bus.Event, Payload: e.Result, Trace: e.TraceID, Task: e.TaskID,
	}
	if e.Status != StatusSuccess {
		m.Topic, m.Payload = k.Area()+".failed", core.MustEncode(map[string]string{"error": e.Error})
	}
	_, err := s.opt.Bus.AcceptIn(tx, m)
	if errors.Is(err, core.Kind(core.InvalidInput)) { // a result that is none of a message: too large, say
		m.Payload = core.MustEncode(map[string]any{"execution_id": e.ExecutionID, "result_bytes": len(e.Result)})
		_, err = s.opt.Bus.AcceptIn(tx, m)
	}
	if err != nil {
		return fmt.Errorf("announce %s: %w", m.Topic, err)
	}
	return nil
}
