package acp

import (
	"context"
	"errors"
	"slices"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
)

// Pause implements fleet.Handle. An agent without a process is paused by being
// told: a prompt or a restart then waits for Resume.
func (a *agent) Pause(ctx context.Context) error {
	a.Mu.Lock()
	if a.Keep.IsClosed() {
		a.Mu.Unlock()
		return keeper.ErrClosed
	}
	a.Keep.Pause()
	pe, s, working := a.Sess, a.talk, a.Turn != nil
	a.Mu.Unlock()
	if pe == nil {
		return nil
	}
	if pe.hold(a) {
		if working {
			return core.Errorf(core.Conflict, "agent %s shares its process with agents at work: its tool calls are held until they rest", a.rec.Name)
		}
		return nil
	}
	return pe.UnlessOver(ctx, errors.Join(pe.Proc.Pause(ctx), s.eachTerminal(ctx, keeper.Process.Pause)))
}

func (a *agent) Resume(ctx context.Context) error {
	a.Mu.Lock()
	pe, s := a.Sess, a.talk
	a.Mu.Unlock()
	if pe != nil && pe.let(a) {
		err := errors.Join(pe.Proc.Resume(ctx), s.eachTerminal(ctx, keeper.Process.Resume))
		if err := pe.UnlessOver(ctx, err); err != nil {
			pe.mu.Lock()
			pe.frozen = true // it may still stand: the next Resume continues it
			pe.mu.Unlock()
			return err
		}
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.Keep.Resume()
	return nil
}

func (s *session) eachTerminal(ctx context.Context, act func(keeper.Process, context.Context) error) error {
	if s == nil {
		return nil
	}
	return s.terminals.each(ctx, act)
}

// hold marks an agent as paused, and the process as frozen unless it must run
// for others.
func (pe *peer) hold(a *agent) (others bool) {
	pe.mu.Lock()
	pe.paused[a] = struct{}{}
	pe.mu.Unlock()
	if pe.othersWork(a) {
		return true
	}
	pe.mu.Lock()
	defer pe.mu.Unlock()
	pe.frozen = true
	return false
}

// let marks an agent as not paused, and reports whether the process is to be
// continued. Others that are paused stay so by their held tool calls alone.
func (pe *peer) let(a *agent) bool {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	delete(pe.paused, a)
	was := pe.frozen
	pe.frozen = false
	return was
}

// othersWork reports whether another agent that is not paused has a prompt in
// this process.
func (pe *peer) othersWork(a *agent) bool {
	pe.mu.Lock()
	var others []*session
	for _, s := range pe.sessions {
		if _, paused := pe.paused[s.a]; s.a != a && !paused {
			others = append(others, s)
		}
	}
	pe.mu.Unlock()
	return slices.ContainsFunc(others, func(s *session) bool { return s.turn.Load() != nil })
}

// isFrozen reports whether the process stands still, not counting a pause of
// this agent itself.
func (pe *peer) isFrozen(but *agent) bool {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	_, own := pe.paused[but]
	return pe.frozen && !own
}

// isShared reports whether more than one agent is in the process.
func (pe *peer) isShared() bool {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	return len(pe.members) > 1
}
