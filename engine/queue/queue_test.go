package queue_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/queue"
	"swarmdeck/expect"
)

// rig is a world with a queue.
type rig struct {
	*enginetest.World
	q     *queue.Queue
	rings int
}

func newRig(t *testing.T) *rig {
	r := &rig{}
	r.World = enginetest.New(t, enginetest.Options{Build: func(w *enginetest.World) {
		r.q = queue.New(func() { r.rings++ })
		w.No(w.Ledger.View(t.Context(), enginetest.Acme, r.q.Read))
	}})
	return r
}

// do changes the queue of Acme in one transaction.
func (r *rig) do(fn func(tx *audit.Tx) error) error {
	return r.Ledger.Update(r.T.Context(), enginetest.Alice(), func(tx *audit.Tx) error {
		if _, err := tx.Record(audit.Entry{Type: "queue.test", Subject: "test", ID: "1"}); err != nil {
			return err
		}
		return fn(tx)
	})
}

func (r *rig) put(l queue.Lane, priority int, seqs ...uint64) {
	r.T.Helper()
	r.No(r.do(func(tx *audit.Tx) error {
		for _, seq := range seqs {
			if err := r.q.Put(tx, l, priority, seq); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (r *rig) lanes() []queue.Lane {
	lanes := r.q.Lanes(enginetest.Acme, func(queue.Lane) bool { return true })
	slices.SortFunc(lanes, func(a, b queue.Lane) int {
		return slices.Compare([]string{a.Session, a.Agent}, []string{b.Session, b.Agent})
	})
	return lanes
}

// claim takes what is to be claimed next from the open lanes, 0 for nothing.
func (r *rig) claim(open func(queue.Lane) bool) (seq uint64) {
	r.T.Helper()
	r.No(r.do(func(tx *audit.Tx) error {
		var fronts []queue.Front
		for _, l := range r.q.Lanes(enginetest.Acme, open) {
			f, ok, err := r.q.Front(tx, l, func(uint64) bool { return false })
			if err != nil {
				return err
			}
			if ok {
				fronts = append(fronts, f)
			}
		}
		if len(fronts) == 0 {
			return nil
		}
		f := fronts[queue.First(fronts)]
		seq = f.Seq()
		return r.q.Take(tx, f)
	}))
	return seq
}

func anyLane(queue.Lane) bool { return true }

func TestTasksAreClaimedByPriorityThenByAgeOverAllLanes(t *testing.T) {
	r := newRig(t)
	r.put(queue.Lane{}, 50, 1, 4)
	r.put(queue.Lane{Session: "s_1"}, 50, 2)
	r.put(queue.Lane{Session: "s_1", Agent: "ada"}, 90, 5)
	r.put(queue.Lane{Agent: "ada"}, 0, 3)
	var got []uint64
	for seq := r.claim(anyLane); seq != 0; seq = r.claim(anyLane) {
		got = append(got, seq)
	}
	want := []uint64{5, 1, 2, 4, 3}
	expect.True(t, slices.Equal(got, want), "claimed %v, want %v", got, want)
	left := r.lanes()
	expect.True(t, len(left) == 0, "empty lanes are remembered: %v", left)
}

func TestAClosedLaneHoldsItsTasksAndNoOthers(t *testing.T) {
	r := newRig(t)
	r.put(queue.Lane{Session: "s_1"}, 100, 1)
	r.put(queue.Lane{}, 10, 2)
	running := func(l queue.Lane) bool { return l.Session == "" }
	expect.Is(t, r.claim(running), 2, "claimed")
	expect.Is(t, r.claim(running), 0, "claimed")
	expect.Is(t, r.claim(anyLane), 1, "claimed")
}

func TestMemoryFollowsCommitsOnly(t *testing.T) {
	r := newRig(t)
	no := errors.New("no")
	if err := r.do(func(tx *audit.Tx) error {
		r.No(r.q.Put(tx, queue.Lane{}, 50, 1))
		r.No(r.q.At(tx, queue.Gate, queue.Entry{At: tx.Now(), Seq: 1}))
		return no
	}); !errors.Is(err, no) {
		t.Fatal(err)
	}
	if len(r.lanes()) != 0 || r.rings != 0 || !r.q.NextDue(enginetest.Acme).IsZero() {
		t.Errorf("what was not committed is remembered: %v, %d rings, due %v", r.lanes(), r.rings, r.q.NextDue(enginetest.Acme))
	}
}

func TestARestartFindsTheLanesAndTheNextTime(t *testing.T) {
	r := newRig(t)
	lanes := []queue.Lane{{}, {Agent: "ada"}, {Session: "s_1", Agent: "bob"}}
	for i, l := range lanes {
		r.put(l, 50, uint64(i+1), uint64(i+11))
	}
	soon, later := time.Now().Add(time.Minute).UTC().Truncate(time.Microsecond), time.Now().Add(time.Hour).UTC()
	r.No(r.do(func(tx *audit.Tx) error {
		return errors.Join(r.q.At(tx, queue.StartBy, queue.Entry{At: soon, Seq: 2}), r.q.At(tx, queue.Gate, queue.Entry{At: later, Seq: 3}))
	}))
	r.Reopen()
	expect.Same(t, r.lanes(), lanes, "lanes")
	got := r.q.NextDue(enginetest.Acme)
	expect.True(t, got.Equal(soon), "due at %v, want %v", got, soon)
	if got := r.q.Lanes(enginetest.Other, anyLane); len(got) != 0 {
		t.Errorf("another tenant has lanes %v", got)
	}
}

func TestWhatIsDueComesByItsTimeAndSaysWhenTheNextIs(t *testing.T) {
	r := newRig(t)
	var now time.Time
	at := func(seq uint64, in time.Duration) queue.Entry { return queue.Entry{At: now.Add(in), Seq: seq} }
	r.No(r.do(func(tx *audit.Tx) error {
		now = tx.Now()
		return errors.Join(r.q.At(tx, queue.Gate, at(1, 0)), r.q.At(tx, queue.Gate, at(2, -time.Second)),
			r.q.At(tx, queue.Gate, at(3, -time.Minute)), r.q.At(tx, queue.Gate, at(4, time.Hour)))
	}))
	for _, c := range []struct {
		most int
		want []uint64
		next time.Time
	}{{10, []uint64{2, 1}, now.Add(time.Hour)}, {1, []uint64{2}, now}, {0, nil, now.Add(-time.Second)}} {
		var got []uint64
		var next time.Time
		r.No(r.Ledger.View(context.Background(), enginetest.Acme, func(tx *audit.Tx) error {
			due, n, err := queue.Gate.Due(tx, now, c.most, func(seq uint64) bool { return seq == 3 })
			for _, e := range due {
				got = append(got, e.Seq)
			}
			next = n
			return err
		}))
		expect.True(t, slices.Equal(got, c.want) && next.Equal(c.next), "at most %d: %v, next %v; want %v, %v", c.most, got, next, c.want, c.next)
	}
	r.No(r.do(func(tx *audit.Tx) error { return queue.Gate.Drop(tx, at(2, -time.Second)) }))
	r.No(r.Ledger.View(context.Background(), enginetest.Acme, func(tx *audit.Tx) error {
		for seq, want := range map[uint64]bool{2: false, 1: true} {
			e := at(1, 0)
			if seq == 2 {
				e = at(2, -time.Second)
			}
			has, err := queue.Gate.Has(tx, e)
			expect.True(t, err == nil && has == want, "task %d: has its time %v, %v; want %v", seq, has, err, want)
		}
		return nil
	}))
}

func TestOneTenantAloneNeedsNoTurns(t *testing.T) {
	r := newRig(t)
	every := func(string, queue.Lane) bool { return true }
	r.put(queue.Lane{}, 50, 1)
	got := r.q.Alone(enginetest.Acme, every)
	expect.True(t, len(got) == 1, "alone: %v, want its one lane", got)
	by := core.Caller{Tenant: enginetest.Other, Name: "bob", Kind: core.Operator, Door: core.DoorCLI}
	r.No(r.Ledger.Append(t.Context(), by, func(tx *audit.Tx) error { return r.q.Put(tx, queue.Lane{}, 50, 1) }))
	got = r.q.Alone(enginetest.Acme, every)
	expect.True(t, got == nil, "beside another tenant: %v, want none", got)
}
