package estop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// patience is how long the emergency stop waits for acknowledgements.
const patience = 2 * time.Second

// Press freezes every agent and claim of the tenant. The stop is on disk and
// no task starts any more from then on; it then waits up to 2 s for the running
// work to acknowledge, and lists what has not. It needs no confirmation and is
// undone by Thaw. Pressing it twice does no harm. Where the disk has no room
// even for its record it stops all the same.
func (s *Stops) Press(ctx context.Context, by core.Caller, reason string) (State, error) {
	if reason == "" {
		return State{}, core.Errorf(core.InvalidInput, "reason: an emergency stop needs one").With("field", "reason")
	}
	err := s.set(store.IfFull(ctx, store.UseReserve), by, true, reason)
	if errors.Is(err, store.ErrFull) {
		s.pressUnrecorded(by, reason)
	} else if err != nil {
		return State{}, fmt.Errorf("emergency stop: %w", err)
	}
	// The stop goes through although who pressed it hangs up.
	wait, end := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer end()
	late := s.obey(wait, by.Tenant)
	for {
		st := s.State(by.Tenant)
		if len(st.Waiting) == 0 || core.Within(wait.Done(), 5*time.Millisecond) {
			st.Waiting = append(st.Waiting, late...)
			return st, nil
		}
	}
}

// Thaw ends the emergency stop.
func (s *Stops) Thaw(ctx context.Context, by core.Caller, reason string) (State, error) {
	if reason == "" {
		return State{}, core.Errorf(core.InvalidInput, "reason: ending an emergency stop needs one").With("field", "reason")
	}
	if err := s.set(ctx, by, false, reason); err != nil {
		return State{}, fmt.Errorf("end emergency stop: %w", err)
	}
	s.obey(context.WithoutCancel(ctx), by.Tenant)
	return s.State(by.Tenant), nil
}

func (s *Stops) set(ctx context.Context, by core.Caller, on bool, reason string) error {
	return s.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.kind.Load(tx, by.Tenant)
		if err != nil {
			return err
		}
		st := State{TenantID: by.Tenant}
		if old != nil {
			st = *old
		}
		if st.On == on && !on {
			return core.Errorf(core.Conflict, "the emergency stop is not on").With("field", "on")
		}
		if st.On == on {
			return nil
		}
		tx.Add(countOn, map[bool]int64{true: 1, false: -1}[on])
		st.On, st.Reason, st.By = on, core.Cut(reason, 1000), by.Name
		return s.kind.Save(tx, record.Event{
			Type: map[bool]string{true: "estop.on", false: "estop.off"}[on], Detail: map[string]string{"reason": st.Reason},
		}, old, &st)
	})
}

// pressUnrecorded makes a stop that can't be written down: an effect that only
// stops something may precede its record. Record writes it later.
func (s *Stops) pressUnrecorded(by core.Caller, reason string) {
	s.mu.Lock()
	if was := s.states[by.Tenant]; !was.On {
		s.states[by.Tenant] = State{
			TenantID: by.Tenant, On: true, Reason: core.Cut(reason, 1000), By: by.Name, At: s.opt.Ledger.Clock().Now(),
			Unrecorded: true, AuditSeq: was.AuditSeq,
		}
		s.unrecorded[by.Tenant] = func(ctx context.Context) error { return s.set(ctx, by, true, reason) }
	}
	s.mu.Unlock()
	s.opt.Changed(by.Tenant)
	s.opt.Ledger.Notify(core.Change{Tenant: by.Tenant, Kind: "estop", ID: by.Tenant})
}

// Record writes down a stop that there was no room for. Nothing may be claimed
// before.
func (s *Stops) Record(ctx context.Context, tenant string) error {
	s.mu.Lock()
	write := s.unrecorded[tenant]
	s.mu.Unlock()
	if write == nil {
		return nil
	}
	if err := write(ctx); err != nil {
		return fmt.Errorf("record the emergency stop: %w", err)
	}
	s.mu.Lock()
	delete(s.unrecorded, tenant)
	s.mu.Unlock()
	return nil
}

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
