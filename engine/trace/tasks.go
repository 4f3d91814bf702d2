package trace

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Of what is no agent's prompt a subagent's life and a CAD agent's are a run each, and so
// is each attempt of a command.

// runOf is the run that tells of a task's attempt, and whether it ends with that.
func (r *Recorder) runOf(tx *audit.Tx, t *task.Task) (run string, ends bool, err error) {
	if run, err = r.DAG.Attempt(tx, t.TaskID); err != nil || run != "" {
		return run, run != "", err
	}
	agent := t.Agent
	if agent == "" {
		agent = r.Skills.Worker(tx, t)
	}
	if agent == "" {
		return "", false, nil
	}
	run, err = r.DAG.OpenRun(tx, agent)
	return run, false, err
}

// tell tells something of the run that an agent, subagent or CAD agent is in.
func (r *Recorder) tell(tx *audit.Tx, agent string, what func(*dag.Recording)) error {
	run, err := r.DAG.OpenRun(tx, agent)
	if err != nil {
		return err
	}
	return r.DAG.Tell(tx, run, what)
}

// Judged implements swarm.Recorder.
func (r *Recorder) Judged(tx *audit.Tx, t *task.Task, d judge.GateDecision) error {
	run, _, err := r.runOf(tx, t)
	if err != nil {
		return err
	}
	return r.DAG.Tell(tx, run, func(w *dag.Recording) { decide(w, t.TaskID, decidedAs(judge.Action{}, d)) })
}

// concluded is what the record says of what an attempt came to.
type concluded struct {
	Status     task.Status `json:"status"` // queued: the task is tried again
	Confidence *float64    `json:"confidence,omitempty"`
	Error      *task.Error `json:"error,omitempty"`
	Denials    []string    `json:"denials,omitempty"`
	Output     string      `json:"output_sha256,omitempty"`
}

// Concluded implements swarm.Recorder.
func (r *Recorder) Concluded(tx *audit.Tx, t *task.Task, res task.Result) error {
	run, ends, err := r.runOf(tx, t)
	if err != nil {
		return err
	}
	return r.DAG.Tell(tx, run, func(w *dag.Recording) {
		if ends {
			w.Result(t.TaskID, statusOf(res), res.Output, faultOf(res.Error))
		}
		c := concluded{Status: res.Status, Confidence: res.Confidence, Error: res.Error, Denials: res.Denials}
		if len(res.Output) > 0 {
			c.Output = core.SHA256(string(res.Output))
		}
		w.Note(listResult, dag.RoleSystem, t.TaskID, "result", c)
		if ends {
			w.Finish(res.Status == task.Succeeded)
		}
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
func (r *Recorder) Starting(ctx context.Context, t *task.Task, a judge.Action) error {
	switch t.Kind {
	case fleet.KindPrompt, skill.KindInvoke, cad.KindAssignment:
		return nil
	}
	return r.Ledger.Append(ctx, by(t.TenantID), func(tx *audit.Tx) error {
		run, err := r.DAG.StartIn(tx, infoOf(cmp.Or(t.Agent, t.Kind), t), true)
		if err != nil {
			return err
		}
		let, err := r.letStart(tx, t)
		if err != nil {
			return err
		}
		return r.DAG.Tell(tx, run, func(w *dag.Recording) {
			decide(w, t.TaskID, let)
			w.Call("", cmp.Or(a.Server, t.Kind), cmp.Or(a.Tool, t.Kind), t.TaskID, t.Input)
		})
	})
}

// Subagent implements skill.Recorder.
func (r *Recorder) Subagent(tx *audit.Tx, old, a *skill.Subagent) error {
	if old == nil {
		info := dag.RunInfo{
			AgentID: a.AgentID, TaskID: a.TaskID, SessionID: a.SessionID, TraceID: a.TraceID, Reason: "subagent",
			AskedBy: a.CreatedBy, AskedKind: string(tx.By.Kind), ParentTask: a.TaskID,
		}
		_, err := r.DAG.StartIn(tx, info, false, dag.NewNode(&dag.Subagent{ID: a.AgentID, ParentAgentID: cmp.Or(a.CreatedBy, "engine")}))
		return err
	}
	if old.State == a.State && old.TaskID == a.TaskID && old.Waiting == a.Waiting {
		return nil
	}
	var let decided
	if old.State == skill.Idle && a.State == skill.Running {
		t, err := r.Tasks.In(tx, a.TaskID)
		if err == nil {
			let, err = r.letStart(tx, &t)
		}
		if err != nil {
			return err
		}
	}
	return r.tell(tx, a.AgentID, func(w *dag.Recording) {
		decide(w, a.TaskID, let)
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
		if a.State.Final() {
			w.Finish(a.State == skill.Completed)
		}
	})
}

// Execution implements skill.Recorder.
func (r *Recorder) Execution(tx *audit.Tx, old, e *skill.Execution) error {
	return r.tell(tx, e.AgentID, func(w *dag.Recording) {
		switch {
		case old == nil:
			w.Call(e.TaskID, "skill", e.SkillName+"@"+e.SkillVersion, e.ExecutionID, e.Parameters)
			return
		case e.Status == skill.StatusPending:
			w.Note(listState, dag.RoleSystem, e.ExecutionID, "retried", map[string]any{"retry_count": e.RetryCount, "step": e.Step})
			return
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
	})
}

// CADAgent implements cad.Recorder.
func (r *Recorder) CADAgent(tx *audit.Tx, a *cad.Agent) error {
	if a.Status == cad.Terminated {
		return r.tell(tx, a.AgentID, func(w *dag.Recording) { w.Finish(true) })
	}
	_, err := r.DAG.StartIn(tx, dag.RunInfo{AgentID: a.AgentID, Reason: "subagent", AskedBy: a.CreatedBy, AskedKind: string(tx.By.Kind)}, false)
	return err
}

// Operation implements cad.Recorder.
func (r *Recorder) Operation(tx *audit.Tx, o cad.Operated) error {
	return r.tell(tx, o.AgentID, func(w *dag.Recording) {
		call := fmt.Sprintf("op-%d", tx.Add("cad.recorded", 1))
		w.Call(o.TaskID, "cad", o.Method, call, o.Params)
		if len(o.Decision) > 0 {
			w.Note(dag.ListDecisions, dag.RoleSystem, call, "decision", o.Decision)
		}
		if f := o.Fault; f != nil {
			w.Result(call, dag.CallError, nil, &dag.Fault{Code: string(f.Class), Message: f.Message})
			return
		}
		w.Result(call, dag.CallOK, o.Data, nil, exported(o)...)
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
