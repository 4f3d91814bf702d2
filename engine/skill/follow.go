package skill

import (
	"fmt"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// Moved implements task.Follower: a subagent is given its task with the
// task's dispatch, and its state is that of its task.
func (i invoker) Moved(tx *audit.Tx, t *task.Task, from task.Status) error {
	if t.Status.Terminal() {
		for _, r := range i.s.registry.runners {
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
	switch {
	case a.State != Idle:
		return busyAgent(a, fmt.Sprintf("is %s", a.State))
	case a.TaskID != "":
		return busyAgent(a, "is to run task "+a.TaskID)
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

func busyAgent(a *Subagent, why string) error {
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
		why = shorten(whyFailed(&r), maxAgentError)
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
