package swarm

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

// EStop is the state of a tenant's emergency stop.
type EStop struct {
	TenantID string    `json:"tenant_id"`
	On       bool      `json:"on"`
	Reason   string    `json:"reason,omitempty"`
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// Waiting lists the tasks and agents that have not acknowledged the
	// freeze, Frozen counts the tasks that have. Not stored.
	Waiting []string `json:"waiting"`
	Frozen  int      `json:"frozen"`
	// Unrecorded says that the disk was too full to write the stop down: it
	// holds, and is recorded once there is space. Not stored.
	Unrecorded bool   `json:"unrecorded,omitzero"`
	AuditSeq   uint64 `json:"audit_seq,omitzero"`
}

func (s *Swarm) estopKind() record.Kind[EStop] {
	return record.Kind[EStop]{
		Noun: "estop", Bucket: bEStop, Ledger: s.ledger, Follow: s.estopChanged,
		Unread: func(tenant, _ string) { // it may be on
			s.estopChanged(tenant, tenant, &EStop{TenantID: tenant, On: true, Reason: "its record can't be read"})
		},
		ID: func(st *EStop) string { return st.TenantID },
		Head: func(st *EStop) record.Head {
			return record.Head{Tenant: &st.TenantID, Updated: &st.At, Seq: &st.AuditSeq}
		},
		State: func(st *EStop) any { return map[string]bool{"on": st.On} },
	}
}

// estopChanged takes the stop over, as it is on disk.
func (s *Swarm) estopChanged(tenant, _ string, st *EStop) {
	s.mu.Lock()
	s.keep(tenant).estop = *st
	s.mu.Unlock()
	s.poke(tenant)
}

// estopWait is how long the emergency stop waits for acknowledgements.
const estopWait = 2 * time.Second

// StopAll freezes every agent and claim of the tenant (contract 1.12). The
// stop is on disk and no task starts any more from then on; it then waits up
// to 2 s for the running work to acknowledge, and lists what has not. It needs
// no confirmation and is undone by Thaw. Pressing it twice does no harm. Where
// the disk has no room even for its record it stops all the same.
func (s *Swarm) StopAll(ctx context.Context, by core.Caller, reason string) (EStop, error) {
	if reason == "" {
		return EStop{}, core.Errorf(core.InvalidInput, "reason: an emergency stop needs one").With("field", "reason")
	}
	_, err := s.setEStop(store.IfFull(ctx, store.UseReserve), by, true, reason)
	if errors.Is(err, store.ErrFull) {
		s.stopUnrecorded(by, reason)
	} else if err != nil {
		return EStop{}, fmt.Errorf("emergency stop: %w", err)
	}
	// The stop goes through although who pressed it hangs up.
	wait, end := context.WithTimeout(context.WithoutCancel(ctx), estopWait)
	defer end()
	late := s.obey(wait, by.Tenant)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		st, err := s.EStop(ctx, by.Tenant)
		st.Waiting = append(st.Waiting, late...)
		if err != nil || len(st.Waiting) == len(late) {
			return st, err
		}
		select {
		case <-look.C:
		case <-wait.Done():
			return st, nil
		}
	}
}

// Thaw ends the emergency stop.
func (s *Swarm) Thaw(ctx context.Context, by core.Caller, reason string) (EStop, error) {
	if reason == "" {
		return EStop{}, core.Errorf(core.InvalidInput, "reason: ending an emergency stop needs one").With("field", "reason")
	}
	if _, err := s.setEStop(ctx, by, false, reason); err != nil {
		return EStop{}, fmt.Errorf("end emergency stop: %w", err)
	}
	s.obey(context.WithoutCancel(ctx), by.Tenant)
	return s.EStop(ctx, by.Tenant)
}

func (s *Swarm) setEStop(ctx context.Context, by core.Caller, on bool, reason string) (EStop, error) {
	var st EStop
	err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.estops.Load(tx, by.Tenant)
		if err != nil {
			return err
		}
		if st = (EStop{TenantID: by.Tenant}); old != nil {
			st = *old
		}
		if st.On == on && !on {
			return core.Errorf(core.Conflict, "the emergency stop is not on").With("field", "on")
		}
		if st.On == on {
			return nil
		}
		tx.Add(countEStop, map[bool]int64{true: 1, false: -1}[on])
		st.On, st.Reason, st.By = on, core.Cut(reason, 1000), by.Name
		return s.estops.Save(tx, record.Event{
			Type: map[bool]string{true: "estop.on", false: "estop.off"}[on], Detail: map[string]string{"reason": st.Reason},
		}, old, &st)
	})
	return st, err
}

// stopUnrecorded makes a stop that can't be written down: an effect that only
// stops something may precede its record. recordStops writes it later.
func (s *Swarm) stopUnrecorded(by core.Caller, reason string) {
	s.mu.Lock()
	w := s.keep(by.Tenant)
	if !w.estop.On {
		w.estop = EStop{
			TenantID: by.Tenant, On: true, Reason: core.Cut(reason, 1000), By: by.Name, At: s.ledger.Clock().Now(),
			Unrecorded: true, AuditSeq: w.estop.AuditSeq,
		}
		w.unrecorded = func(ctx context.Context) error {
			_, err := s.setEStop(ctx, by, true, reason)
			return err
		}
	}
	s.mu.Unlock()
	s.poke(by.Tenant)
	s.ledger.Notify(core.Change{Tenant: by.Tenant, Kind: "estop", ID: by.Tenant})
}

// recordStop writes down a stop that there was no room for.
func (s *Swarm) recordStop(ctx context.Context, tenant string) error {
	s.mu.Lock()
	record := s.world(tenant).unrecorded
	s.mu.Unlock()
	if record == nil {
		return nil
	}
	if err := record(ctx); err != nil {
		return fmt.Errorf("record the emergency stop: %w", err)
	}
	s.mu.Lock()
	s.keep(tenant).unrecorded = nil
	s.mu.Unlock()
	return nil
}

// obey brings the freezers to what the emergency stop of a tenant says, and
// returns what did not acknowledge. When that changes meanwhile it starts
// again, so that of a stop and a thaw at once the one on disk wins.
func (s *Swarm) obey(ctx context.Context, tenant string) (late []string) {
	for {
		on := s.stopped(tenant)
		late = nil
		if on {
			late = s.freezeAll(ctx, tenant)
		} else {
			for _, f := range s.allFreezers() {
				f.Thaw(ctx, tenant)
			}
		}
		if s.stopped(tenant) == on {
			return late
		}
	}
}

func (s *Swarm) stopped(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world(tenant).estop.On
}

// refreeze makes the stops that are on hold for agents that were started since.
func (s *Swarm) refreeze(ctx context.Context, wg *sync.WaitGroup) {
	for _, tenant := range s.tenants() {
		if s.stopped(tenant) {
			wg.Go(func() {
				ctx, end := context.WithTimeout(ctx, estopWait)
				defer end()
				s.obey(ctx, tenant)
			})
		}
	}
}

// freezeAll asks the freezers, all at once, and returns what did not answer.
func (s *Swarm) freezeAll(ctx context.Context, tenant string) []string {
	var mu sync.Mutex
	var late []string
	var wg sync.WaitGroup
	for _, f := range s.allFreezers() {
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

func (s *Swarm) allFreezers() []Freezer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.freezers)
}

// EStop tells whether the stop is on, and who has not acknowledged it.
func (s *Swarm) EStop(_ context.Context, tenant string) (EStop, error) {
	s.mu.Lock()
	st := s.world(tenant).estop
	s.mu.Unlock()
	st.Waiting = []string{}
	if st.On {
		st.Waiting = append(st.Waiting, s.unpaused(tenant, "")...)
		slices.Sort(st.Waiting)
		st.Frozen = s.frozenCount(tenant)
	}
	return st, nil
}

// told tells the watchers that a task's work acknowledged a stop or went on.
func (s *Swarm) told(l *lease) {
	s.ledger.Notify(core.Change{Tenant: l.tenant, Kind: "work", ID: l.task})
}
