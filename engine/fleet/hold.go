package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// holder is a set of reasons for which an agent's process stands still. It
// goes on when the last one is gone.
type holder uint8

const (
	byOperator holder = 1 << iota // the agent is paused
	byTask                        // its task or session is paused
	byFreeze                      // emergency stop
)

// hold adds or removes a reason and returns when the runtime has acknowledged
// what follows from it. On an error the reason stays as asked, so that no tool
// call goes through meanwhile and another call tries again.
func (m *member) hold(ctx context.Context, why holder, on bool) error {
	m.mu.Lock()
	was := m.holds
	if on {
		m.holds |= why
	} else {
		m.holds &^= why
	}
	if m.holds != was { // else each freeze would have the scheduler freeze again
		m.move()
	}
	m.mu.Unlock()
	return m.applyHolds(ctx)
}

// applyHolds pauses or resumes the runtime where it differs from what the
// reasons ask for.
func (m *member) applyHolds(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return fmt.Errorf("pause or resume agent %s: %w", m.name, ctx.Err())
	}
	m.mu.Lock()
	want, h := m.holds != 0, m.handle
	done := want == m.held && !m.unsure
	m.mu.Unlock()
	if done {
		return nil
	}
	if h != nil {
		act, verb := h.Resume, "resume"
		if want {
			act, verb = h.Pause, "pause"
		}
		if err := act(ctx); err != nil {
			m.mu.Lock()
			m.unsure = true
			m.mu.Unlock()
			return fmt.Errorf("%s agent %s: %w", verb, m.name, err)
		}
	}
	m.mu.Lock()
	m.held, m.unsure = want, false
	m.move()
	m.mu.Unlock()
	return nil
}

// Freeze makes every agent of a tenant stand still, idle ones too, and names
// those that did not acknowledge before ctx ended (estop.Freezer).
func (f *Fleet) Freeze(ctx context.Context, tenant string) []string {
	members := f.members(tenant)
	late := make([]bool, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { late[i] = m.hold(ctx, byFreeze, true) != nil })
	}
	all.Wait()
	var names []string
	for i, m := range members {
		if late[i] {
			names = append(names, m.name)
			m.ring() // the supervisor keeps trying
		}
	}
	return names
}

// Thaw ends a freeze. What an operator or a session paused stays paused.
func (f *Fleet) Thaw(ctx context.Context, tenant string) {
	var all sync.WaitGroup
	for _, m := range f.members(tenant) {
		all.Go(func() {
			if m.hold(ctx, byFreeze, false) != nil {
				m.ring()
			}
		})
	}
	all.Wait()
}

// ackLimit bounds one try of a supervisor to pause or resume a runtime, so
// that its other duties go on.
const ackLimit = 3 * time.Second
