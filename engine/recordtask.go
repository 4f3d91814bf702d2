package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// What is no agent's prompt is recorded in the transactions that it consists of: a
// subagent's life and a CAD agent's are a run each, and so is each attempt of a command.

var (
	_ swarm.Recorder = recorder{}
	_ skill.Recorder = skillRecorder{}
	_ cad.Recorder   = recorder{}
	_ bus.Recorder   = recorder{}
)

// The lists of what is told of a run beside its conversation.
const (
	listResult = "result" // what its attempts came to
	listState  = "state"  // of a subagent
	listBus    = "bus"    // messages that it sent, or that came to it
)

// runOf is the run that tells of a task's attempt, and whether it ends with that.
func (r recorder) runOf(tx *audit.Tx, t *task.Task) (run string, ends bool, err error) {
	if run, err = r.dag.Attempt(tx, t.TaskID); err != nil || run != "" {
		return run, run != "", err
	}
	agent := t.Agent
	if agent == "" {
		agent = r.worker(tx, t)
	}
	if agent == "" {
		return "", false, nil
	}
	run, err = r.dag.OpenRun(tx, agent)
	return run, false, err
}

// infoOf is what a run of a task says of itself.
func infoOf(agent string, t *task.Task) dag.RunInfo {
	reason := "user"
	switch {
	case t.ParentTaskID != "" || t.CreatedKind == core.Agent:
		reason = "subagent"
	case t.CreatedKind == core.Engine:
		reason = "schedule"
	}
	return dag.RunInfo{
		AgentID: agent, TaskID: t.TaskID, SessionID: t.SessionID, TraceID: t.TraceID, Reason: reason,
		AskedBy: t.CreatedBy, AskedKind: string(t.CreatedKind), Attempt: t.Attempt, ParentTask: t.ParentTaskID,
	}
}

func (r recorder) Judged(tx *audit.Tx, t *task.Task, d judge.GateDecision) error {
	run, _, err := r.runOf(tx, t)
	if err != nil {
		return err
	}
	return r.dag.Tell(tx, run, func(w *dag.Recording) error {
		w.Note(dag.ListDecisions, dag.RoleSystem, t.TaskID, "decision", decidedAs(judge.Action{}, d))
		return nil
	})
}

// concluded is what the record says of what an attempt came to.
type concluded struct {
	Status     task.Status `json:"status"` // queued: the task is tried again
	Confidence *float64    `json:"confidence,omitempty"`
	Error      *task.Error `json:"error,omitempty"`
	Denials    []string    `json:"denials,omitempty"`
	Output     string      `json:"output_sha256,omitempty"`
}

func (r recorder) Concluded(tx *audit.Tx, t *task.Task, res task.Result) error {
	run, ends, err := r.runOf(tx, t)
	if err != nil {
		return err
	}
	return r.dag.Tell(tx, run, func(w *dag.Recording) error {
		if ends {
			w.Result(t.TaskID, statusOf(res), res.Output, faultOf(res.Error))
		}
		c := concluded{Status: res.Status, Confidence: res.Confidence, Error: res.Error, Denials: res.Denials}
		if len(res.Output) > 0 {
			c.Output = core.SHA256(string(res.Output))
		}
		w.Note(listResult, dag.RoleSystem, t.TaskID, "result", c)
		if !ends {
			return nil
		}
		return w.Finish(res.Status == task.Succeeded)
	})
}

func statusOf(res task.Result) dag.CallStatus {
	switch {
	case res.Status == task.Succeeded:
		return dag.CallOK
	case res.Status == task.TimedOut:
		return dag.CallTimeout
	case res.Status == task.Cancelled:
		return dag.CallCanceled
	case res.Status == task.Queued && res.Error != nil && slices.Contains([]string{swarm.CodeInterrupted, "lease_lost"}, res.Error.Code):
		return dag.CallInterrupted
	}
	return dag.CallError
}

func faultOf(e *task.Error) *dag.Fault {
	if e == nil {
		return nil
	}
	return &dag.Fault{Code: e.Code, Message: e.Message}
}

// Starting implements swarm.Recorder: an attempt of what keeps no run of its own is one
// with a single call.
func (r recorder) Starting(ctx context.Context, t *task.Task, a judge.Action) error {
	switch t.Kind {
	case fleet.KindPrompt, skill.KindInvoke, cad.KindAssignment:
		return nil
	}
	return r.ledger.Append(ctx, core.Self(t.TenantID, "recorder"), func(tx *audit.Tx) error {
		run, err := r.dag.StartIn(tx, infoOf(cmp.Or(t.Agent, t.Kind), t), true)
		if err != nil {
			return err
		}
		return r.dag.Tell(tx, run, func(w *dag.Recording) error {
			if err := r.allowed(tx, w, t); err != nil {
				return err
			}
			w.Call("", cmp.Or(a.Server, t.Kind), cmp.Or(a.Tool, t.Kind), t.TaskID, t.Input)
			return nil
		})
	})
}

// allowed tells who let a task start.
func (r recorder) allowed(tx *audit.Tx, w *dag.Recording, t *task.Task) error {
	by, err := r.start(tx, t)
	if by != nil {
		w.Note(dag.ListDecisions, dag.RoleSystem, t.TaskID, "decision", by)
	}
	return err
}

func (r recorder) Subagent(tx *audit.Tx, old, a *skill.Subagent) error {
	if old == nil {
		info := dag.RunInfo{
			AgentID: a.AgentID, TaskID: a.TaskID, SessionID: a.SessionID, TraceID: a.TraceID, Reason: "subagent",
			AskedBy: a.CreatedBy, AskedKind: string(tx.By.Kind), ParentTask: a.TaskID,
		}
		_, err := r.dag.StartIn(tx, info, false, dag.NewNode(&dag.Subagent{ID: a.AgentID, ParentAgentID: cmp.Or(a.CreatedBy, "engine")}))
		return err
	}
	if old.State == a.State && old.TaskID == a.TaskID && old.Waiting == a.Waiting {
		return nil
	}
	run, err := r.dag.OpenRun(tx, a.AgentID)
	if err != nil {
		return err
	}
	return r.dag.Tell(tx, run, func(w *dag.Recording) error {
		if old.State == skill.Idle && a.State == skill.Running {
			t, err := r.tasks(tx, a.TaskID)
			if err == nil {
				err = r.allowed(tx, w, &t)
			}
			if err != nil {
				return err
			}
		}
		if old.TaskID != a.TaskID {
			w.Note(dag.ListMain, dag.RoleUser, a.TaskID, a.Skill, a.SkillParams)
		}
		if old.State != a.State || old.Waiting != a.Waiting {
			state := map[string]any{"state": a.Shown(), "task_id": a.TaskID}
			if a.Waiting != "" {
				state["approval_id"] = a.Waiting
			}
			if a.Error != "" {
				state["error"] = a.Error
			}
			w.Note(listState, dag.RoleSystem, a.AgentID, "state", state)
		}
		if !a.State.Final() {
			return nil
		}
		return w.Finish(a.State == skill.Completed)
	})
}

func (r recorder) Execution(tx *audit.Tx, old, e *skill.Execution) error {
	run, err := r.dag.OpenRun(tx, e.AgentID)
	if err != nil {
		return err
	}
	return r.dag.Tell(tx, run, func(w *dag.Recording) error {
		switch {
		case old == nil:
			w.Call(e.TaskID, "skill", e.SkillName+"@"+e.SkillVersion, e.ExecutionID, e.Parameters)
			return nil
		case e.Status == skill.StatusPending:
			w.Note(listState, dag.RoleSystem, e.ExecutionID, "retried", map[string]any{"retry_count": e.RetryCount, "step": e.Step})
			return nil
		}
		status := map[skill.Status]dag.CallStatus{skill.StatusSuccess: dag.CallOK, skill.StatusTimeout: dag.CallTimeout}[e.Status]
		if e.Interrupted {
			status = dag.CallInterrupted
		}
		fault := &dag.Fault{Code: cmp.Or(e.ErrorCode, "skill_failed"), Message: e.Error}
		w.Result(e.ExecutionID, cmp.Or(status, dag.CallError), e.Result, fault)
		if len(e.Result) > 0 {
			w.Said(dag.ListMain, dag.RoleAssistant, string(e.Result))
		}
		return nil
	})
}

func (r recorder) CADAgent(tx *audit.Tx, a *cad.Agent) error {
	if a.Status != cad.Terminated {
		_, err := r.dag.StartIn(tx, dag.RunInfo{AgentID: a.AgentID, Reason: "subagent", AskedBy: a.CreatedBy, AskedKind: string(tx.By.Kind)}, false)
		return err
	}
	run, err := r.dag.OpenRun(tx, a.AgentID)
	if err != nil {
		return err
	}
	return r.dag.Tell(tx, run, func(w *dag.Recording) error { return w.Finish(true) })
}

func (r recorder) Operation(tx *audit.Tx, o cad.Operated) error {
	run, err := r.dag.OpenRun(tx, o.AgentID)
	if err != nil {
		return err
	}
	return r.dag.Tell(tx, run, func(w *dag.Recording) error {
		call := fmt.Sprintf("op-%d", tx.Add("cad.recorded", 1))
		w.Call(o.TaskID, "cad", o.Method, call, o.Params)
		if len(o.Decision) > 0 {
			w.Note(dag.ListDecisions, dag.RoleSystem, call, "decision", o.Decision)
		}
		if f := o.Fault; f != nil {
			w.Result(call, dag.CallError, nil, &dag.Fault{Code: string(f.Class), Message: f.Message})
		} else {
			w.Result(call, dag.CallOK, o.Data, nil, exported(o)...)
		}
		return nil
	})
}

// exported is the file that an operation wrote, with what it says of it.
func exported(o cad.Operated) []dag.File {
	if o.File == "" {
		return nil
	}
	var said struct {
		SHA256 string `json:"sha256"`
		Bytes  int64  `json:"bytes"`
	}
	_ = core.DecodeStored(o.Data, &said) // an environment of one's own may say less
	return []dag.File{{Path: o.File, SHA256: said.SHA256, Size: said.Bytes}}
}

// Sent implements bus.Recorder: a message is told of its sender's run, or else of its
// recipient's.
func (r recorder) Sent(tx *audit.Tx, m *bus.Message) error {
	role := dag.RoleAssistant
	run, err := r.dag.OpenRun(tx, m.SenderID)
	if err == nil && run == "" && m.RecipientID != "" {
		role = dag.RoleUser
		run, err = r.dag.OpenRun(tx, m.RecipientID)
	}
	if err != nil {
		return err
	}
	return r.dag.Tell(tx, run, func(w *dag.Recording) error {
		w.Note(listBus, role, m.MessageID, string(m.MessageType), map[string]any{
			"from": m.SenderID, "to": cmp.Or(m.RecipientID, m.Topic), "correlation_id": m.CorrelationID, "payload": m.Payload,
		})
		return nil
	})
}
