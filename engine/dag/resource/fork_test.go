package resource

import (
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// refused is a fork that fails for good after its snapshots are taken.
func refused(Made) error { return core.Errorf(core.Conflict, "name: it was taken just now") }

// states counts the states that are noted of a resource, and those counted.
func (r *rig) states(id string) (noted int, counted int64) {
	r.t.Helper()
	r.no(r.ledger.View(r.t.Context(), acme, func(tx *audit.Tx) error {
		counted = tx.Counter(countStates(id))
		return tx.Scan(bState, numberKey(id, 0), numberKey(id, ^uint64(0)), false, func(_, _ []byte) bool {
			noted++
			return true
		})
	}))
	return noted, counted
}

func TestWhatAForkThatFailedWasOfIsForkedAgain(t *testing.T) {
	inBubble(t, func(r *rig) {
		id := r.attachThing("bench")
		at := r.began("r-1")
		r.people.onFork = refused
		if _, err := r.fork(at, "bob", nil); core.AsError(err).Code != core.Conflict {
			t.Fatalf("the first fork: %v", err)
		}
		if noted, counted := r.states(id); noted != 0 || counted != 0 {
			t.Errorf("the snapshot is given up, but %d states of it stay, %d counted", noted, counted)
		}
		r.people.onFork = nil
		later := r.began("r-2")
		for n, at := range []string{at, later} {
			name := []string{"bob", "eve"}[n]
			f, err := r.fork(at, name, nil)
			r.no(err)
			if len(f.Parts) != 1 || !f.Parts[0].makes() {
				t.Errorf("%s has %+v", name, f.Parts)
			}
			if word := r.shelf.things[f.Parts[0].Dest]; word != "one" {
				t.Errorf("what %s has says %q", name, word)
			}
		}
	})
}

// A file from before may have states whose snapshot is gone.
func TestAStateWithoutItsSnapshotIsPassedOver(t *testing.T) {
	inBubble(t, func(r *rig) {
		id := r.attachThing("bench")
		first, err := r.Snapshot(r.t.Context(), alice, id)
		r.no(err)
		at := r.began("r-1")
		for _, run := range []string{"r-2", "r-3"} {
			r.no(r.ledger.Update(r.t.Context(), alice, func(tx *audit.Tx) error { return note(tx, id, state{Snapshot: "snap-gone"}) }))
			r.began(run)
		}
		f, err := r.fork(at, "bob", nil)
		r.no(err)
		if got := f.Parts[0].SnapshotRef; got != first.Snapshot.ID {
			t.Errorf("forked from the snapshot %q, want %q", got, first.Snapshot.ID)
		}
	})
}
