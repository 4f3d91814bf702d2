package estop

import (
	"context"
	"slices"
	"sync"
)

// obey brings the freezers to what the emergency stop of a tenant says, and
// returns what did not acknowledge. When that changes meanwhile it starts
// again, so that of a stop and a thaw at once the one on disk wins.
func (s *Stops) obey(ctx context.Context, tenant string) (late []string) {
	for {
		on := s.On(tenant)
		late = nil
		if on {
			late = s.freezeAll(ctx, tenant)
		} else {
			for _, f := range s.all() {
				f.Thaw(ctx, tenant)
			}
		}
		if s.On(tenant) == on {
			return late
		}
	}
}

// Renew makes the stops that are on hold for what was started since, each in a
// goroutine of wg.
func (s *Stops) Renew(ctx context.Context, wg *sync.WaitGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tenant, st := range s.states {
		if st.On {
			wg.Go(func() {
				ctx, end := context.WithTimeout(ctx, patience)
				defer end()
				s.obey(ctx, tenant)
			})
		}
	}
}

// freezeAll asks the freezers, all at once, and returns what did not answer.
func (s *Stops) freezeAll(ctx context.Context, tenant string) []string {
	var mu sync.Mutex
	var late []string
	var wg sync.WaitGroup
	for _, f := range s.all() {
		wg.Go(func() {
			names := f.Freeze(ctx, tenant)
			mu.Lock()
			late = append(late, names...)
			mu.Unlock()
		})
	}
	wg.Wait()
	return late
}

func (s *Stops) all() []Freezer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.freezers)
}
