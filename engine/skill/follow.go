package skill

import (
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/task"
)

// Moved implements task.Follower: a subagent is given its task with the
// task's dispatch, and its state is that of its task.
func (i invoker) Moved(tx *audit.Tx, t *task.Task, from task.Status) error {
	if t.Status.Terminal() {
		for _, r := range i.s.opt.Runners {
			f, keeps := r.(Forgetter)
			if !keeps {
				continue
			}
			if err := f.Forget(tx, t.TaskID); err != nil {
				return fmt.Errorf("forget task %s: %w", t.TaskID, err)
			}
		}
	}
	if from == "" && t.Agent != "" {
		if err := i.s.assignIn(tx, t); err != nil {
			return err
		}
	}
	id := t.Agent
	if id == "" {
		made, known, err := taskAgents.Get(tx, ofTask(t.TaskID))
		if err != nil {
			return fmt.Errorf("find the subagent of task %s: %w", t.TaskID, err)
		}
		switch {
		case known:
			id = made
		case t.Status == task.Running && from == task.Queued:
			if id, err = i.s.spawnFor(tx, t); err != nil || id == "" {
				return err
			}
		default:
			return nil
		}
	}
	return i.s.bring(tx, id, t)
}

// assignIn gives an idle subagent its task. Any other refuses.
func (s *Skills) assignIn(tx *audit.Tx, t *task.Task) error {
	in, err := readInvocation(t.Input)
	if err != nil {
		return err
	}
	a, err := s.agents.Need(tx, t.Agent)
	if err != nil {
		return err
	}
	if err := a.free(); err != nil {
		return err
	}
	was := *a
	a.assign(in, t)
	return s.saveAgent(tx, &was, a, "subagent.assigned", map[string]any{"skill": in.Skill})
}

func (a *Subagent) assign(in invocation, t *task.Task) {
	a.Skill, a.TaskID, a.TraceID, a.SessionID = in.Skill, t.TaskID, t.TraceID, t.SessionID
	a.AssignedSkill, _, _ = strings.Cut(in.Skill, "@")
	a.SkillParams = in.Params
}

// free reports a subagent that takes no skill.
func (a *Subagent) free() error {
	why := "is to run task " + a.TaskID
	switch {
	case a.State != Idle:
		why = "is " + string(a.State)
	case a.TaskID == "":
		return nil
	}
	return core.Errorf(core.Conflict, "subagent %s %s; only an idle one without a task takes a skill", a.AgentID, why).
		With("error", "AgentBusyError").With("field", "agent_id").With("value", a.AgentID).With("state", string(a.State))
}

// spawnFor makes the subagent of a task that names none, as the task starts.
// It makes none when there are too many: the start then fails.
func (s *Skills) spawnFor(tx *audit.Tx, t *task.Task) (string, error) {
	in, err := readInvocation(t.Input)
	if err != nil || s.liveCount(tx) >= int64(s.opt.MaxSubagents) {
		return "", nil // Start says so
	}
	a := s.newAgent(tx, Spawn{}, t.CreatedBy)
	a.assign(in, t)
	if err := taskAgents.Put(tx, ofTask(t.TaskID), a.AgentID); err != nil {
		return "", err
	}
	return a.AgentID, s.saveAgent(tx, nil, a, "subagent.spawned", map[string]any{"skill": in.Skill, "task_id": t.TaskID})
}

// bring makes a subagent's state what its task's is.
func (s *Skills) bring(tx *audit.Tx, id string, t *task.Task) error {
	a, err := s.agents.Need(tx, id)
	if err != nil {
		return fmt.Errorf("follow task %s: %w", t.TaskID, err)
	}
	if a.State.Final() || a.TaskID != t.TaskID {
		return nil
	}
	want, waiting := stateOfTask(t), ""
	if t.Waiting != "" {
		waiting = t.ApprovalID
	}
	if want == a.State && waiting == a.Waiting {
		return nil
	}
	var why string
	if want == Failed {
		r, err := s.opt.Tasks.ResultIn(tx, t.TaskID)
		if err != nil {
			return err
		}
		why = core.ClipTo(whyFailed(&r), maxAgentError)
	}
	was := *a
	if a.State == Paused && want == Completed { // the last step ended as it was paused
		if err := a.to(Running, tx.Now()); err != nil {
			return err
		}
		if err := s.saveAgent(tx, &was, a, "subagent.running", nil); err != nil {
			return err
		}
		was = *a
	}
	if want != was.State {
		if err := a.to(want, tx.Now()); err != nil {
			return err
		}
	}
	event := "subagent." + string(want)
	switch {
	case want != was.State:
		a.Error = why
	case waiting != "":
		event = "subagent.waiting"
	}
	if a.Waiting = waiting; want.Final() {
		a.Waiting = ""
	}
	return s.saveAgent(tx, &was, a, event, nil)
}

// stateOfTask is the state of the subagent that runs a task. Between two
// attempts it is still running.
func stateOfTask(t *task.Task) State {
	switch {
	case t.Status == task.Succeeded:
		return Completed
	case t.Status.Terminal():
		return Failed
	case t.Paused:
		return Paused
	case t.Status == task.Running || !t.StartedAt.IsZero():
		return Running
	}
	return Idle
}

// whyFailed is the error of a subagent whose task ended so: "cancelled" and
// "stopped" stand for themselves.
func whyFailed(r *task.Result) string {
	if r.Error == nil {
		return string(r.Status)
	}
	if r.Status != task.Cancelled || r.Error.Message == wordStopped || strings.HasPrefix(r.Error.Message, wordCancelled) {
		return r.Error.Message
	}
	return wordCancelled + ": " + r.Error.Message
}

// What ends a subagent by an operator's word.
const (
	wordCancelled = "cancelled"
	wordStopped   = "stopped"
)

// interruptedByEngine is the error of an execution whose engine ended.
const interruptedByEngine = "interrupted: the engine stopped"

// recall reads the live subagents of a tenant, and ends what an engine that
// died left half done: nothing runs at this point.
func (s *Skills) recall(ctx context.Context, tenant string) error {
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		for _, state := range liveStates() {
			if err := s.agents.Along(tx, bAgentState, string(state), func(a *Subagent) error {
				s.follow(tenant, a.AgentID, a)
				if a.TaskID == "" {
					return nil
				}
				_, x, err := s.readPlan(tx, a.TaskID)
				if x != nil {
					s.planned(tenant, a.AgentID, x)
				}
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || s.opt.ReadOnly {
		return err
	}
	var pending []string // that no engine has ended
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return s.execs.Along(tx, bExecStatus, string(StatusPending), func(e *Execution) error {
			pending = append(pending, e.ExecutionID)
			return nil
		})
	})
	if err != nil {
		return err
	}
	by := core.Self(tenant, "skills")
	for _, id := range pending {
		if err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			e, err := s.execs.Need(tx, id)
			if err != nil || e.Status != StatusPending {
				return err
			}
			return s.interruptIn(tx, e, interruptedByEngine)
		}); err != nil {
			if health.WholeEngine(err) {
				return err
			}
			s.opt.Health.Report(tenant, component, "execution "+id, err)
		}
	}
	return nil
}

// interruptIn ends an execution that something outside it ended. Its step has
// not run, as far as its task is concerned.
func (s *Skills) interruptIn(tx *audit.Tx, e *Execution, why string) error {
	was := *e
	was.Status, was.Interrupted = StatusPending, false // this runs again where the disk was full
	e.Error, e.Interrupted = core.ClipTo(why, maxExecutionError), true
	e.end(StatusFailed, tx.Now())
	return s.saveExec(tx, &was, e, "execution.interrupted", nil)
}
