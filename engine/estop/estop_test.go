package estop_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/estop"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// rig is a world with emergency stops, and what they stop.
type rig struct {
	*enginetest.World
	stops *estop.Stops

	mu      sync.Mutex
	frozen  []string // what a freezer was told, in order
	waiting []string // tasks that have not acknowledged
	full    bool
}

func newRig(t *testing.T) *rig {
	r := &rig{}
	r.World = enginetest.New(t, enginetest.Options{Build: func(w *enginetest.World) {
		r.stops = estop.New(estop.Options{Ledger: w.Ledger, Changed: func(string) {}, Work: func(string) ([]string, int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.Clone(r.waiting), 1
		}})
		r.stops.Freezer(r)
		w.No(r.stops.Read(t.Context(), enginetest.Acme))
	}})
	return r
}

func (r *rig) isFull() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full
}

func (r *rig) setFull(full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = full
}

func (r *rig) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = append(r.frozen, what)
}

// Freeze implements estop.Freezer: the stop is on disk by then.
func (r *rig) Freeze(_ context.Context, tenant string) []string {
	on := "off"
	_ = r.DB.View(context.Background(), tenant, func(tx store.Tx) error {
		if r.stops.OnIn(tx) {
			on = "on"
		}
		return nil
	})
	r.note("freeze " + tenant + " " + on)
	return []string{"agent:ada"}
}

func (r *rig) Thaw(_ context.Context, tenant string) { r.note("thaw " + tenant) }

func TestAStopIsOnDiskBeforeAnybodyFreezes(t *testing.T) {
	r := newRig(t)
	st, err := r.stops.Press(t.Context(), enginetest.Alice(), "smoke")
	r.No(err)
	expect.True(t, st.On && st.Reason == "smoke" && st.By == "alice" && slices.Equal(st.Waiting, []string{"agent:ada"}) && st.Frozen == 1, "%+v", st)
	want := []string{"freeze t_acme on"}
	expect.True(t, slices.Equal(r.frozen, want), "the freezer was told %v, want %v", r.frozen, want)
	expect.True(t, !r.stops.On(enginetest.Other), "another tenant stands still too")
	_, err = r.stops.Press(t.Context(), enginetest.Alice(), "more smoke")
	expect.No(t, err, "a second stop")
	st = r.stops.State(enginetest.Acme)
	expect.True(t, st.Reason == "smoke", "the second stop took the first's place: %+v", st)
	r.Proven(enginetest.Acme)
}

func TestAStopHoldsOverARestartUntilItIsThawed(t *testing.T) {
	r := newRig(t)
	expect.Of(r.stops.Press(t.Context(), enginetest.Alice(), "smoke"))(r.T)
	r.Reopen()
	r.frozen = nil
	var wg sync.WaitGroup
	r.stops.Renew(t.Context(), &wg)
	wg.Wait()
	if !r.stops.On(enginetest.Acme) || !slices.Equal(r.frozen, []string{"freeze t_acme on"}) {
		t.Errorf("after a restart: on %v, told %v", r.stops.On(enginetest.Acme), r.frozen)
	}
	st := expect.Of(r.stops.Thaw(t.Context(), enginetest.Alice(), "no fire"))(r.T)
	expect.True(t, !st.On && !r.stops.On(enginetest.Acme) && r.frozen[len(r.frozen)-1] == "thaw t_acme", "after the thaw: %+v, told %v", st, r.frozen)
	expect.Is(t, core.AsError(expect.Fault(r.stops.Thaw(t.Context(), enginetest.Alice(), "again"))).Code, core.Conflict, "a thaw of nothing")
	r.Proven(enginetest.Acme)
}

func TestAStopAndItsEndWantAReason(t *testing.T) {
	r := newRig(t)
	for name, do := range map[string]func(context.Context, core.Caller, string) (estop.State, error){"press": r.stops.Press, "thaw": r.stops.Thaw} {
		expect.Is(t, core.AsError(expect.Fault(do(t.Context(), enginetest.Alice(), ""))).Code, core.InvalidInput, name, "without a reason")
	}
	expect.True(t, !r.stops.On(enginetest.Acme) && r.frozen == nil, "it was done all the same")
}

// fullStore has no room.
type fullStore struct {
	store.Store
	full func() bool
}

func (s fullStore) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	if s.full() {
		return store.ErrFull
	}
	return s.Store.Update(ctx, tenant, fn)
}

func TestAStopHoldsThatTheDiskHasNoRoomFor(t *testing.T) {
	r := &rig{}
	r.World = enginetest.New(t, enginetest.Options{
		Over: func(st store.Store) store.Store { return fullStore{st, r.isFull} },
		Build: func(w *enginetest.World) {
			r.stops = estop.New(estop.Options{Ledger: w.Ledger, Changed: func(string) {}, Work: func(string) ([]string, int) { return nil, 0 }})
			w.No(r.stops.Read(t.Context(), enginetest.Acme))
		},
	})
	r.setFull(true)
	st := expect.Of(r.stops.Press(t.Context(), enginetest.Alice(), "smoke"))(r.T)
	expect.True(t, st.On && st.Unrecorded, "%+v, want a stop that is not recorded", st)
	err := r.stops.Record(t.Context(), enginetest.Acme)
	expect.True(t, errors.Is(err, store.ErrFull) || core.AsError(err).Code == core.StorageFull, "it was recorded on a full disk: %v", err)
	r.setFull(false)
	r.No(r.stops.Record(t.Context(), enginetest.Acme))
	st = r.stops.State(enginetest.Acme)
	expect.True(t, st.On && !st.Unrecorded && st.Reason == "smoke", "with room: %+v", st)
	r.Proven(enginetest.Acme)
}
