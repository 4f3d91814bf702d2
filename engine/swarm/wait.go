package swarm

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/core"
)

// Wait returns when the task has the status, or any terminal one when status
// is "". A task that ended otherwise is returned too: it can't get there any
// more. ctx ends the wait.
func (s *Swarm) Wait(ctx context.Context, tenant, id string, status Status) (Task, error) {
	if status != "" && !status.known() {
		return Task{}, core.Invalid("status", string(status), fmt.Sprint("one of ", Statuses()))
	}
	by := core.Self(tenant, "reader")
	seq, err := s.local(ctx, by, core.TaskPrefix, id)
	if err != nil {
		return Task{}, err
	}
	id = core.NewID(core.TaskPrefix, tenant, seq) // as who ends it spells it
	r := ref{tenant, id}
	for {
		changed := make(chan struct{})
		s.mu.Lock()
		s.waiters[r] = append(s.waiters[r], changed)
		s.mu.Unlock()
		t, err := s.header(ctx, by, id)
		if err != nil || t.Status == status || t.Status.Terminal() {
			s.unwait(r, changed)
			return t, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			s.unwait(r, changed)
			return t, ctx.Err()
		}
	}
}

func (s *Swarm) unwait(r ref, ch chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.waiters[r]
	for i, c := range list {
		if c == ch {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(s.waiters, r)
	} else {
		s.waiters[r] = list
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
