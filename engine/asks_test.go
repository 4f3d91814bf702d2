package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/store"
)

// ask opens n approvals in one commit.
func ask(t testing.TB, e *Engine, n int) (ids []string) {
	t.Helper()
	ask := judge.Ask{
		Gate: judge.GateStart, Action: judge.Action{Kind: "exec.run", Args: core.Raw(`{"argv":["rm","-rf","/srv/data"]}`)},
		TaskID: core.NewID(core.TaskPrefix, alice.Tenant, 1), Attempt: 1, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", By: core.Caller{Tenant: alice.Tenant, Name: "robot", Kind: core.Agent, Door: core.DoorMCP},
	}
	v := e.Judge.Evaluate(t.Context(), alice.Tenant, ask)
	if err := e.Audit.Update(t.Context(), alice, func(tx *audit.Tx) error {
		for range n {
			_, a, err := e.Judge.Commit(tx, ask, v)
			if err != nil {
				return err
			}
			ids = append(ids, a.ApprovalID)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return ids
}

// asStored holds the snapshot against what is stored.
func asStored(t *testing.T, e *Engine, step string) {
	t.Helper()
	stored, err := e.Judge.Open(t.Context(), alice.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]*judge.Approval, len(stored))
	for i := range stored {
		want[i] = &stored[i]
	}
	slices.SortFunc(want, moreUrgent)
	got := e.Snapshot(alice.Tenant).Approvals
	if len(got) != len(want) {
		t.Fatalf("%s: %d approvals, %d are stored", step, len(got), len(want))
	}
	for i := range want {
		if g, w := fmt.Sprintf("%+v", *got[i]), fmt.Sprintf("%+v", *want[i]); g != w {
			t.Errorf("%s: approval %d is\n%s\nstored is\n%s", step, i, g, w)
		}
	}
}

func TestASnapshotHasTheOpenApprovalsAsTheyAreStored(t *testing.T) {
	e, _ := open(t)
	if _, err := e.Swarm.CreateTenant(t.Context(), alice, alice.Tenant); err != nil {
		t.Fatal(err)
	}
	asStored(t, e, "none")
	ids := ask(t, e, 5)
	asStored(t, e, "opened")
	if _, err := e.Judge.Defer(t.Context(), alice, ids[1], time.Minute); err != nil {
		t.Fatal(err)
	}
	asStored(t, e, "one put off")
	before := e.Snapshot(alice.Tenant).Approvals
	over := func(these []string) {
		t.Helper()
		if err := e.Audit.Update(t.Context(), alice, func(tx *audit.Tx) error {
			return e.Judge.Void(tx, func(a *judge.Approval) bool { return slices.Contains(these, a.ApprovalID) }, "over")
		}); err != nil {
			t.Fatal(err)
		}
	}
	over(ids[:1])
	asStored(t, e, "one over")
	ids = append(ids, ask(t, e, 3)...)
	if len(before) != 5 || !slices.ContainsFunc(before, func(a *judge.Approval) bool { return a.ApprovalID == ids[0] }) {
		t.Error("a former snapshot was changed")
	}
	over(ids[4:])
	asStored(t, e, "some void")
	if n := len(e.Snapshot(alice.Tenant).Approvals); n != 3 {
		t.Errorf("%d are open", n)
	}
}

// TestApprovalsThatComeWhileTheyAreFirstReadAreThere has looks and commits
// race, again and again.
func TestApprovalsThatComeWhileTheyAreFirstReadAreThere(t *testing.T) {
	e, _ := open(t)
	if _, err := e.Swarm.CreateTenant(t.Context(), alice, alice.Tenant); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		e.world.mu.Lock()
		e.world.tenant(alice.Tenant).asks = asks{}
		e.world.mu.Unlock()
		var all sync.WaitGroup
		all.Go(func() { ask(t, e, 2) })
		all.Go(func() { e.Snapshot(alice.Tenant) })
		all.Wait()
		asStored(t, e, "after a race")
	}
}

func TestALookAtApprovalsReadsNoneOfThemAgain(t *testing.T) {
	e, st := open(t)
	if _, err := e.Swarm.CreateTenant(t.Context(), alice, alice.Tenant); err != nil {
		t.Fatal(err)
	}
	ask(t, e, 300)
	e.Snapshot(alice.Tenant)
	ask(t, e, 1)
	read := 0
	st.got = func(b store.Bucket) {
		if b == "approval" {
			read++
		}
	}
	if n := len(e.Snapshot(alice.Tenant).Approvals); n != 301 || read > 0 {
		t.Errorf("%d approvals, %d of them read", n, read)
	}
}

// BenchmarkASnapshotOfManyApprovals has one of 1,000 put off before each look;
// "stored" is what reading all of them costs.
func BenchmarkASnapshotOfManyApprovals(b *testing.B) {
	e, _ := open(b)
	if _, err := e.Swarm.CreateTenant(b.Context(), alice, alice.Tenant); err != nil {
		b.Fatal(err)
	}
	ids := ask(b, e, 1000)
	e.Snapshot(alice.Tenant)
	b.Run("look", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			if _, err := e.Judge.Defer(b.Context(), alice, ids[i%len(ids)], time.Minute); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			e.Snapshot(alice.Tenant)
		}
	})
	b.Run("stored", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.Judge.Open(context.Background(), alice.Tenant); err != nil {
				b.Fatal(err)
			}
		}
	})
}
