package resource

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/record"
	"swarmdeck/expect"
)

// refused is a fork that fails for good after its snapshots are taken.
func refused(Made) error { return core.Errorf(core.Conflict, "name: it was taken just now") }

// states counts the states that are noted of a resource, and those counted.
func (r *rig) states(id string) (noted int, counted int64) {
	r.T.Helper()
	r.No(r.Ledger.View(r.T.Context(), acme, func(tx *audit.Tx) error {
		counted = tx.Counter(countStates(id))
		return states.Each(tx, record.Text(id), func(record.Parts, state) (bool, error) {
			noted++
			return true, nil
		})
	}))
	return noted, counted
}

func TestWhatAForkThatFailedWasOfIsForkedAgain(t *testing.T) {
	inBubble(t, func(r *rig) {
		id := r.attachThing("bench")
		at := r.began("r-1")
		r.people.onFork = refused
		_, err := r.fork(at, "bob", nil)
		expect.Must(t, core.AsError(err).Code == core.Conflict, "the first fork: %v", err)
		noted, counted := r.states(id)
		expect.True(t, noted == 0 && counted == 0, "the snapshot is given up, but %d states of it stay, %d counted", noted, counted)
		r.people.onFork = nil
		later := r.began("r-2")
		for n, at := range []string{at, later} {
			name := []string{"bob", "eve"}[n]
			f := expect.Of(r.fork(at, name, nil))(r.T)
			expect.True(t, len(f.Parts) == 1 && f.Parts[0].makes(), "%s has %+v", name, f.Parts)
			expect.Is(t, r.shelf.things[f.Parts[0].Dest], "one", "what", name, "has says")
		}
	})
}

// A file from before may have states whose snapshot is gone.
func TestAStateWithoutItsSnapshotIsPassedOver(t *testing.T) {
	inBubble(t, func(r *rig) {
		id := r.attachThing("bench")
		first := expect.Of(r.Snapshot(r.T.Context(), alice, id))(r.T)
		at := r.began("r-1")
		for _, run := range []string{"r-2", "r-3"} {
			r.No(r.Ledger.Update(r.T.Context(), alice, func(tx *audit.Tx) error { return note(tx, id, dag.Pos(tx), state{Snapshot: "snap-gone"}) }))
			r.began(run)
		}
		f := expect.Of(r.fork(at, "bob", nil))(r.T)
		expect.Is(t, f.Parts[0].SnapshotRef, first.Snapshot.ID, "forked from the snapshot")
	})
}

// A fork that keeps what the source had is killed when it is recorded, and
// withdrawn: the source has the thing again, and the record says so.
func TestWhatAForkTookGoesBackWithIt(t *testing.T) {
	inBubble(t, func(r *rig) {
		ctx := r.T.Context()
		id := r.attachThing("bench")
		at := r.began("r-1")
		r.people.add("eve")
		p, err := r.Plan(ctx, acme, ForkRequest{AgentID: "ada", At: at, Name: "bob", Plan: map[string]Choice{id: {Mode: dag.PlanKeep, KeptBy: "bob"}}})
		r.No(err)
		_, args := p.steps()
		job := control.Job{Key: "i-1/1", Tenant: acme, IntentID: "i-1", Step: 1, AgentID: "ada", Args: core.MustEncode(args)}
		expect.Of(forking{r.Resources}.Act(ctx, job))(r.T)
		got := r.holders(id)
		expect.Must(t, got == "bob", "after the fork %s have it", got)
		time.Sleep(time.Second)
		expect.Of(r.Attach(ctx, alice, Attachment{AgentID: "eve", Target: "shelf:bench"}))(r.T)
		for range 2 {
			seen := expect.Of(forking{r.Resources}.Compensate(ctx, job))(r.T)
			got := r.holders(id)
			expect.True(t, seen.Met && got == "ada eve", "after it was taken back %q have it: %+v", got, seen)
		}
		got, want := r.moves(id), "ada+ ada- bob+ eve+ bob- ada+"
		expect.True(t, got == want, "the record says %q, want %q", got, want)
	})
}

// A fork that can't be made, for its name was taken meanwhile, leaves alone who
// took it.
func TestAForkThatFailedTakesNothingFromItsNamesake(t *testing.T) {
	inBubble(t, func(r *rig) {
		id := r.attachThing("bench")
		r.shelf.put("chair", "two")
		at := r.began("r-1")
		var chair View
		r.people.onFork = func(Made) (err error) {
			r.people.add("bob")
			chair, err = r.Attach(r.T.Context(), alice, Attachment{AgentID: "bob", Target: "shelf:chair"})
			r.No(err)
			return core.Errorf(core.Conflict, "name: there is an agent bob already")
		}
		_, err := r.fork(at, "bob", map[string]Choice{id: {Mode: dag.PlanKeep, KeptBy: "bob"}})
		expect.Must(t, core.AsError(err).Code == core.Conflict, "the fork: %v", err)
		expect.Is(t, r.holders(chair.ID)+", "+r.holders(id), "bob, ada", "the chair and the bench have")
	})
}

// A source that is gone, or another agent of its name, gets nothing.
func TestWhatAForkTookGoesToNobodyElse(t *testing.T) {
	inBubble(t, func(r *rig) {
		ctx := r.T.Context()
		id := r.attachThing("bench")
		at := r.began("r-1")
		p, err := r.Plan(ctx, acme, ForkRequest{AgentID: "ada", At: at, Name: "bob", Plan: map[string]Choice{id: {Mode: dag.PlanKeep, KeptBy: "bob"}}})
		r.No(err)
		_, args := p.steps()
		job := control.Job{Key: "i-1/1", Tenant: acme, IntentID: "i-1", Step: 1, AgentID: "ada", Args: core.MustEncode(args)}
		expect.Of(forking{r.Resources}.Act(ctx, job))(r.T)
		time.Sleep(time.Second)
		r.people.add("ada") // anew
		expect.Of(forking{r.Resources}.Compensate(ctx, job))(r.T)
		expect.Is(t, r.holders(id), "")
	})
}

// What was made for a fork that is taken back is removed, and no more.
func TestAForkThatFailedLeavesNoDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "forks")
	inBubble(t, func(r *rig) {
		r.opt.Dir = dir
		at := r.began("r-1")
		p, err := r.Plan(r.T.Context(), acme, ForkRequest{AgentID: "ada", At: at, Name: "bob"})
		r.No(err)
		_, args := p.steps()
		job := control.Job{Key: "i-1/1", Tenant: acme, IntentID: "i-1", Step: 1, AgentID: "ada", Args: core.MustEncode(args)}
		made := filepath.Join(dir, acme, "bob")
		work := filepath.Join(made, "work")
		there := func() string {
			found := expect.Of(filepath.Glob(filepath.Join(made, "*", "*")))(r.T)
			if _, err := os.Stat(made); err != nil {
				return "gone"
			}
			return strings.TrimPrefix(strings.Join(found, " "), work)
		}
		for _, c := range []struct{ file, left string }{{"", "gone"}, {"notes", "/notes"}} {
			expect.Of(forking{r.Resources}.Act(r.T.Context(), job))(r.T)
			if c.file != "" {
				r.No(os.WriteFile(filepath.Join(work, c.file), nil, 0o600))
			}
			expect.Of(forking{r.Resources}.Compensate(r.T.Context(), job))(r.T)
			expect.Is(t, there(), c.left, "left is")
		}
		_, err = os.Stat(filepath.Join(dir, acme))
		expect.True(t, err == nil, "%v", err)
	})
}

// holders are who has a resource.
func (r *rig) holders(id string) string {
	r.T.Helper()
	v := expect.Of(r.Show(r.T.Context(), acme, id))(r.T)
	var names []string
	for _, h := range v.Holders {
		names = append(names, h.AgentID)
	}
	return strings.Join(names, " ")
}

// moves are who got and lost a resource, oldest first, as the record tells.
func (r *rig) moves(id string) string {
	r.T.Helper()
	page := expect.Of(r.dag.Events(r.T.Context(), acme, dag.Query{Filter: core.Filter{Size: 100}}))(r.T)
	var moves []string
	for _, e := range page.Items {
		switch b := e.Event.Body.(type) {
		case *dag.ResourceAttached:
			if b.ResourceRef == id {
				moves = append(moves, e.Event.AgentID+"+")
			}
		case *dag.ResourceDetached:
			if b.ResourceRef == id {
				moves = append(moves, e.Event.AgentID+"-")
			}
		}
	}
	slices.Reverse(moves)
	return strings.Join(moves, " ")
}
