package skill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// endWait is how long Cancel and Stop wait for work to end. After it the
// record still shows what was asked.
const endWait = 4 * time.Second

// Pause makes a running subagent stand still: at once when what it runs can,
// else before its next step. Its task says whether it does already.
func (s *Skills) Pause(ctx context.Context, by core.Caller, id string) (Subagent, error) {
	return s.setPaused(ctx, by, id, Running, Paused)
}

// Resume lets a paused subagent go on.
func (s *Skills) Resume(ctx context.Context, by core.Caller, id string) (Subagent, error) {
	return s.setPaused(ctx, by, id, Paused, Running)
}

func (s *Skills) setPaused(ctx context.Context, by core.Caller, id string, from, to State) (Subagent, error) {
	a, err := s.find(ctx, by, id)
	if err != nil {
		return Subagent{}, err
	}
	if c := *a; a.State != from || a.TaskID == "" {
		if err := c.to(to, time.Time{}); err != nil {
			return *a, err
		}
		return *a, core.Errorf(core.Conflict, "subagent %s is %s: it has nothing to run", id, a.State).With("field", "state")
	}
	if to == Paused {
		_, err = s.opt.Swarm.PauseTask(ctx, by, a.TaskID, "the subagent is paused")
	} else {
		_, err = s.opt.Swarm.ResumeTask(ctx, by, a.TaskID)
	}
	if err != nil {
		return *a, fmt.Errorf("subagent %s: %w", id, err)
	}
	return s.Subagent(ctx, by.Tenant, id)
}

// Cancel ends a subagent in any state that is not final: it fails with
// "cancelled", and what it runs is interrupted.
func (s *Skills) Cancel(ctx context.Context, by core.Caller, id, reason string) (Subagent, error) {
	why := wordCancelled
	if reason != "" {
		why += ": " + reason
	}
	return s.finish(ctx, by, id, why)
}

// Stop lets a running subagent end its step: then it fails with "stopped",
// unless that was its last step. One that stands still fails at once.
func (s *Skills) Stop(ctx context.Context, by core.Caller, id string) (Subagent, error) {
	a, err := s.find(ctx, by, id)
	if err != nil {
		return Subagent{}, err
	}
	if a.State != Running || a.Waiting != "" {
		return s.finish(ctx, by, id, wordStopped)
	}
	working := false
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		a, err := s.agents.Need(tx, id)
		if err != nil {
			return err
		}
		if a.State != Running {
			return errMoved
		}
		status, err := s.opt.Tasks.StatusIn(tx, a.TaskID)
		if err != nil {
			return err
		}
		if working = status == task.Running; !working || a.Stopping {
			return nil
		}
		was := *a
		a.Stopping = true
		return s.saveAgent(tx, &was, a, "subagent.stopping", nil)
	})
	switch {
	case errors.Is(err, errMoved):
		return s.Stop(ctx, by, id)
	case err != nil:
		return Subagent{}, fmt.Errorf("stop subagent %s: %w", id, err)
	case !working: // its task waits for another attempt
		return s.finish(ctx, by, id, wordStopped)
	}
	return s.Subagent(ctx, by.Tenant, id)
}

// errMoved says that the state changed under an operation: look again.
var errMoved = errors.New("the subagent has moved on")

// finish ends a subagent as failed, by the end of its task when it has one.
func (s *Skills) finish(ctx context.Context, by core.Caller, id, why string) (Subagent, error) {
	a, err := s.find(ctx, by, id)
	if err != nil {
		return Subagent{}, err
	}
	if a.State.Final() {
		return *a, core.Errorf(core.Conflict, "subagent %s is %s already", id, a.State).With("field", "state").With("value", string(a.State))
	}
	if a.TaskID == "" {
		return s.fail(ctx, by, id, why)
	}
	if _, err := s.opt.Swarm.Cancel(ctx, by, a.TaskID, why); err != nil {
		return *a, fmt.Errorf("subagent %s: %w", id, err)
	}
	wait, stop := context.WithTimeout(ctx, endWait)
	defer stop()
	if _, err := s.opt.Tasks.Wait(wait, by.Tenant, a.TaskID, ""); err != nil && wait.Err() == nil {
		return *a, err
	}
	return s.Subagent(context.WithoutCancel(ctx), by.Tenant, id)
}

// fail ends a subagent without a task.
func (s *Skills) fail(ctx context.Context, by core.Caller, id, why string) (Subagent, error) {
	err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		a, err := s.agents.Need(tx, id)
		if err != nil {
			return err
		}
		was := *a
		if err := a.to(Failed, tx.Now()); err != nil {
			return err
		}
		a.Error = shorten(why, maxAgentError)
		return s.saveAgent(tx, &was, a, "subagent.failed", nil)
	})
	if err != nil {
		return Subagent{}, err
	}
	return s.Subagent(ctx, by.Tenant, id)
}
