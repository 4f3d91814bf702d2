package resource

import (
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

// A call's approval opens at once, and the state before it is taken meanwhile: it is
// that of the place in the record where that began.
func TestAStateIsThatOfThePlaceWhereItsKeepingBegan(t *testing.T) {
	inBubble(t, func(r *rig) {
		id := r.attachThing("bench")
		before := r.began("r-1")
		at := expect.Of(r.Position(r.T.Context(), acme))(r.T)
		after := r.began("r-2")
		r.No(r.Keep(r.T.Context(), acme, "ada", at, false))
		r.shelf.put("bench", "two")
		for _, event := range []string{before, after} {
			p := expect.Of(r.Plan(r.T.Context(), acme, ForkRequest{AgentID: "ada", At: event, Name: "bob"}))(r.T)
			part := p.Parts[0]
			expect.True(t, part.Resource.ID == id && part.SnapshotRef != "" && part.Exact, "at %s: %+v", event, part)
		}
	})
}

func TestACallWaitsNoLongerForAStateThanItsPatience(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.attachThing("bench")
		r.attachThing("lathe")
		r.shelf.takes.Store(int64(3 * time.Second)) // of two things in a row: longer than the patience
		keep := func() (took time.Duration, said string) {
			began := time.Now()
			at := expect.Of(r.Position(r.T.Context(), acme))(r.T)
			if err := r.Keep(r.T.Context(), acme, "ada", at, false); err != nil {
				said = err.Error()
			}
			return time.Since(began), said
		}
		took, said := keep()
		expect.True(t, took == Patience && strings.Contains(said, "lathe") && !strings.Contains(said, "bench"), "after %v: %q", took, said)
		r.shelf.takes.Store(0)
		if took, said := keep(); took != 0 || said != "" { // the lathe is being copied still
			t.Errorf("at the next call, after %v: %q", took, said)
		}
		time.Sleep(2 * time.Second)
		r.shelf.put("lathe", "two")
		_, n, err := r.newest(r.T.Context(), acme, "thing-lathe")
		r.No(err)
		r.began("r-1")
		took, said = keep()
		expect.True(t, took == 0 && said == "", "when it is copied, after %v: %q", took, said)
		_, more, err := r.newest(r.T.Context(), acme, "thing-lathe")
		expect.True(t, err == nil && more == n+1, "%d states of it are kept, %d before: %v", more, n, err)
	})
}

// A state that is late is not passed off as that before the call.
func TestALateStateIsNotExact(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.attachThing("bench")
		event := r.began("r-1")
		at := expect.Of(r.Position(r.T.Context(), acme))(r.T)
		r.shelf.takes.Store(int64(2 * Patience))
		expect.Fails(t, r.Keep(r.T.Context(), acme, "ada", at, false), "nothing was told")
		r.shelf.put("bench", "two") // the call has its effect
		time.Sleep(3 * Patience)
		p := expect.Of(r.Plan(r.T.Context(), acme, ForkRequest{AgentID: "ada", At: event, Name: "bob"}))(r.T)
		expect.True(t, !p.Parts[0].Exact, "%+v", p.Parts[0])
	})
}
