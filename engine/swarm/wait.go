package swarm

import (
	"context"
	"time"

	"swarmdeck/engine/core"
)

// Wait returns when the task has the status, or any terminal one when status
// is "". A task that ended otherwise is returned too: it can't get there any
// more. ctx ends the wait.
func (s *Swarm) Wait(ctx context.Context, tenant, id string, status Status) (Task, error) {
	by := core.Self(tenant, "reader")
	for {
		changed := make(chan struct{})
		s.mu.Lock()
		s.waiters[id] = append(s.waiters[id], changed)
		s.mu.Unlock()
		t, err := s.header(ctx, by, id)
		if err != nil || t.Status == status || t.Status.Terminal() {
			s.unwait(id, changed)
			return t, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			s.unwait(id, changed)
			return t, ctx.Err()
		}
	}
}

func (s *Swarm) unwait(id string, ch chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.waiters[id]
	for i, c := range list {
		if c == ch {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(s.waiters, id)
	} else {
		s.waiters[id] = list
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
