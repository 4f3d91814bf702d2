package skill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Invoke asks for one run of a skill.
type Invoke struct {
	Skill    string   // name or name@version; without a version the newest
	Params   core.Raw // JSON object; nil is none
	Name     string   // of the subagent made for it
	Metadata core.Raw // of the subagent made for it
	// Of the task:
	Priority     *int          `allow:"0-100"`
	Timeout      time.Duration `json:"timeout_s" allow:"none or 1s-24h"` // of the whole run
	StartTimeout time.Duration `json:"start_timeout_s" allow:"none or 1s-24h"`
	Session      string
	Trace        string
	Intent       string
}

// dispatch is the task of a run by a subagent, "" for one to be made. It names
// the version that is meant now.
func (s *Skills) dispatch(tenant, agent string, v Invoke) (swarm.Dispatch, error) {
	in := invocation{Skill: v.Skill, Params: v.Params, AgentID: agent}
	if len(in.Params) == 0 {
		in.Params = core.Raw(`{}`)
	}
	if k, err := s.Skill(tenant, v.Skill); err == nil {
		in.Skill = k.Ref()
	} // what is wrong with it is told by Check
	if err := core.CheckObject("params", in.Params, core.MaxInput); err != nil {
		return swarm.Dispatch{}, err
	}
	return swarm.Dispatch{
		Kind: KindInvoke, Input: core.MustEncode(in), Agent: agent, Priority: v.Priority, Timeout: v.Timeout,
		StartTimeout: v.StartTimeout, Session: v.Session, Trace: v.Trace, Intent: v.Intent,
	}, nil
}

// CheckInvoke reports what would be refused about a run, before a subagent is made
// for it.
func (s *Skills) CheckInvoke(tenant string, v Invoke) error {
	d, err := s.dispatch(tenant, "", v)
	if err != nil {
		return err
	}
	if _, _, err := s.Runner().Check(tenant, d.Input); err != nil {
		return err
	}
	w := Spawn{Name: v.Name, Metadata: v.Metadata}
	return w.check()
}

// Spawn makes a subagent. It is idle until it is assigned a skill.
func (s *Skills) Spawn(ctx context.Context, by core.Caller, w Spawn) (Subagent, error) {
	if err := w.check(); err != nil {
		return Subagent{}, err
	}
	var made *Subagent
	err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if n := s.liveCount(tx); n >= int64(s.opt.MaxSubagents) {
			return s.tooMany(n)
		}
		made = s.newAgent(tx, w, by.Name)
		return s.saveAgent(tx, nil, made, "subagent.spawned", nil)
	})
	if err != nil {
		return Subagent{}, fmt.Errorf("spawn a subagent: %w", err)
	}
	return *made, nil
}

func (s *Skills) tooMany(n int64) error {
	return core.Errorf(core.Conflict, "max_subagents: %d subagents are live, at most %d may be; wait for some to end, or stop them", n, s.opt.MaxSubagents).With("field", "max_subagents")
}

// newAgent is an idle subagent that is not saved yet.
func (s *Skills) newAgent(tx *audit.Tx, w Spawn, by string) *Subagent {
	n := s.agents.Next(tx)
	return &Subagent{
		AgentID: core.NewUUID(tx.Tenant(), n, nil), Name: w.Name, State: Idle, Results: map[string]core.Raw{},
		Metadata: w.Metadata, CreatedBy: by,
	}
}

// Assign gives an idle subagent a skill to run; v's name and metadata are not
// heeded. What is refused leaves the subagent as it is.
func (s *Skills) Assign(ctx context.Context, by core.Caller, id string, v Invoke) (Subagent, error) {
	a, err := s.find(ctx, by, id)
	if err != nil {
		return Subagent{}, err
	}
	if err := a.free(); err != nil {
		return a, err
	}
	d, err := s.dispatch(by.Tenant, id, v)
	if err != nil {
		return a, err
	}
	if _, err := s.opt.Swarm.Dispatch(ctx, by, d); err != nil {
		return a, err
	}
	return s.Subagent(ctx, by.Tenant, id)
}

// Invoke runs a skill with a subagent of its own.
func (s *Skills) Invoke(ctx context.Context, by core.Caller, v Invoke) (Subagent, error) {
	if err := s.CheckInvoke(by.Tenant, v); err != nil {
		return Subagent{}, err
	}
	a, err := s.Spawn(ctx, by, Spawn{Name: v.Name, Metadata: v.Metadata})
	if err != nil {
		return Subagent{}, err
	}
	made, err := s.Assign(ctx, by, a.AgentID, v)
	if err == nil {
		return made, nil
	}
	// Nobody else knows this one: it must not stay behind.
	_, _ = s.fail(context.WithoutCancel(ctx), by, a.AgentID, core.AsError(err).Message)
	return Subagent{}, err
}

// RunParallel runs all at once, each with a subagent of its own, and returns
// these in the order given. When one of them can't be, nothing runs; the error
// names each bad item by its index. One that is refused later, because things
// changed just then, is missing beside an error.
func (s *Skills) RunParallel(ctx context.Context, by core.Caller, all []Invoke) ([]Subagent, error) {
	if len(all) == 0 || len(all) > s.opt.MaxSubagents {
		return nil, core.Invalid("items", len(all), fmt.Sprintf("1-%d", s.opt.MaxSubagents))
	}
	var bad *core.Error
	for i, v := range all {
		err := s.CheckInvoke(by.Tenant, v)
		if err == nil {
			continue
		}
		e := core.AsError(err)
		text := fmt.Sprintf("[%d]: %s", i, e.Message)
		if bad == nil {
			bad = core.Errorf(e.Code, "%s", text).With("field", fmt.Sprintf("[%d].%v", i, cmp.Or[any](e.Details["field"], "skill")))
		} else {
			bad.Message += "\n" + text
		}
	}
	if bad != nil {
		return nil, bad
	}
	if n := len(s.live.Of(by.Tenant)); n+len(all) > s.opt.MaxSubagents {
		return nil, s.tooMany(int64(n))
	}
	made := make([]Subagent, len(all))
	errs := make([]error, len(all))
	var invoking sync.WaitGroup
	for i, v := range all {
		invoking.Go(func() {
			if made[i], errs[i] = s.Invoke(ctx, by, v); errs[i] != nil {
				errs[i] = fmt.Errorf("[%d]: %w", i, errs[i])
			}
		})
	}
	invoking.Wait()
	made = slices.DeleteFunc(made, func(a Subagent) bool { return a.AgentID == "" })
	return made, errors.Join(errs...)
}

// Wait returns when a subagent has no task that is not over; ctx ends the wait.
func (s *Skills) Wait(ctx context.Context, by core.Caller, id string) (Subagent, error) {
	a, err := s.find(ctx, by, id)
	if err != nil {
		return Subagent{}, err
	}
	if a.TaskID != "" {
		if _, err := s.opt.Tasks.Wait(ctx, by.Tenant, a.TaskID, ""); err != nil {
			return a, err
		}
	}
	return s.Subagent(context.WithoutCancel(ctx), by.Tenant, id)
}

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
	if c := a; a.State != from || a.TaskID == "" {
		if err := c.to(to, time.Time{}); err != nil {
			return a, err
		}
		return a, core.Errorf(core.Conflict, "subagent %s is %s: it has nothing to run", id, a.State).With("field", "state")
	}
	if to == Paused {
		_, err = s.opt.Swarm.PauseTask(ctx, by, a.TaskID, "the subagent is paused")
	} else {
		_, err = s.opt.Swarm.ResumeTask(ctx, by, a.TaskID)
	}
	if err != nil {
		return a, fmt.Errorf("subagent %s: %w", id, err)
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
		return a, core.Errorf(core.Conflict, "subagent %s is %s already", id, a.State).With("field", "state").With("value", string(a.State))
	}
	if a.TaskID == "" {
		return s.fail(ctx, by, id, why)
	}
	if _, err := s.opt.Swarm.Cancel(ctx, by, a.TaskID, why); err != nil {
		return a, fmt.Errorf("subagent %s: %w", id, err)
	}
	wait, stop := context.WithTimeout(ctx, endWait)
	defer stop()
	if _, err := s.opt.Tasks.Wait(wait, by.Tenant, a.TaskID, ""); err != nil && wait.Err() == nil {
		return a, err
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
		a.Error = core.ClipTo(why, maxAgentError)
		return s.saveAgent(tx, &was, a, "subagent.failed", nil)
	})
	if err != nil {
		return Subagent{}, err
	}
	return s.Subagent(ctx, by.Tenant, id)
}
