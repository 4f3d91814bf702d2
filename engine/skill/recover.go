package skill

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
)

// interruptedByEngine is the error of an execution whose engine ended.
const interruptedByEngine = "interrupted: the engine stopped"

// recall reads the live subagents of a tenant, and ends what an engine that
// died left half done: nothing runs at this point.
func (s *Skills) recall(ctx context.Context, tenant string) error {
	var live []*Subagent
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		for _, state := range liveStates() {
			if err := s.agents.Along(tx, bAgentState, string(state), func(a *Subagent) error {
				live = append(live, a)
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
	if unread := s.kind.Read(ctx, tenant); unread != nil {
		s.opt.Health.Report(tenant, component, "reactions", unread)
	}
	if err != nil || s.opt.ReadOnly {
		return err
	}
	pending, err := s.pending(ctx, tenant)
	if err != nil || len(live) == 0 && len(pending) == 0 {
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
	// What became of a task while nobody followed it: the swarm ended it, or
	// put it back, when it took the dead engine's leases away.
	for _, a := range live {
		if a.TaskID == "" {
			continue
		}
		t, err := s.opt.Tasks.Get(ctx, tenant, a.TaskID)
		if err == nil {
			err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error { return s.bring(tx, a.AgentID, &t) })
		}
		if health.WholeEngine(err) {
			return err
		}
		s.opt.Health.Report(tenant, component, "subagent "+a.AgentID, err)
	}
	return nil
}

// pending lists the executions that no engine has ended.
func (s *Skills) pending(ctx context.Context, tenant string) (ids []string, err error) {
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return s.execs.Along(tx, bExecStatus, string(StatusPending), func(e *Execution) error {
			ids = append(ids, e.ExecutionID)
			return nil
		})
	})
	return ids, err
}

// interruptIn ends an execution that something outside it ended. Its step has
// not run, as far as its task is concerned.
func (s *Skills) interruptIn(tx *audit.Tx, e *Execution, why string) error {
	was := *e
	was.Status, was.Interrupted = StatusPending, false // this runs again where the disk was full
	e.Error, e.Interrupted = shorten(why, maxExecutionError), true
	e.end(StatusFailed, tx.Now())
	return s.saveExec(tx, &was, e, "execution.interrupted", nil)
}
