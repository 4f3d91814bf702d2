package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// ask opens n approvals in one commit.
func ask(t testing.TB, e *Engine, n int) (ids []string) {
	t.Helper()
	ask := judge.Ask{
		Gate: judge.GateStart, Action: judge.Action{Kind: "exec.run", Args: core.Raw(`{"argv":["rm", "-rf", "/srv/\u202edata"]}`)},
		TaskID: core.NewID(core.TaskPrefix, alice.Tenant, 1), Attempt: 1, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", By: core.Caller{Tenant: alice.Tenant, Name: "robot", Kind: core.Agent, Door: core.DoorMCP},
	}
	v := e.Judge.Evaluate(t.Context(), alice.Tenant, ask)
	expect.No(t, e.Audit.Update(t.Context(), alice, func(tx *audit.Tx) error {
		for range n {
			_, a, err := e.Judge.Commit(tx, ask, v)
			if err != nil {
				return err
			}
			ids = append(ids, a.ApprovalID)
		}
		return nil
	}))
	return ids
}

// asStored holds the snapshot against what is stored.
func asStored(t *testing.T, e *Engine, step string) {
	t.Helper()
	stored := expect.Of(e.Judge.Open(t.Context(), alice.Tenant))(t)
	want := make([]*judge.Approval, len(stored))
	for i := range stored {
		want[i] = &stored[i]
	}
	slices.SortFunc(want, judge.MoreUrgent)
	got := e.Snapshot(alice.Tenant).Approvals
	expect.Must(t, len(got) == len(want), "%s: %d approvals, %d are stored", step, len(got), len(want))
	for i := range want {
		g, w := fmt.Sprintf("%+v", *got[i]), fmt.Sprintf("%+v", *want[i])
		expect.True(t, g == w, "%s: approval %d is\n%s\nstored is\n%s", step, i, g, w)
	}
}

func TestASnapshotHasTheOpenApprovalsAsTheyAreStored(t *testing.T) {
	e, _ := open(t)
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, alice.Tenant))(t)
	asStored(t, e, "none")
	ids := ask(t, e, 5)
	asStored(t, e, "opened")
	expect.Of(e.Judge.Defer(t.Context(), alice, ids[1], time.Minute))(t)
	asStored(t, e, "one put off")
	before := e.Snapshot(alice.Tenant).Approvals
	over := func(these []string) {
		t.Helper()
		expect.No(t, e.Audit.Update(t.Context(), alice, func(tx *audit.Tx) error {
			return e.Judge.Void(tx, func(a *judge.Approval) bool { return slices.Contains(these, a.ApprovalID) }, "over")
		}))
	}
	over(ids[:1])
	asStored(t, e, "one over")
	ids = append(ids, ask(t, e, 3)...)
	expect.True(t, len(before) == 5 && slices.ContainsFunc(before, func(a *judge.Approval) bool { return a.ApprovalID == ids[0] }),
		"a former snapshot was changed")
	over(ids[4:])
	asStored(t, e, "some void")
	expect.Is(t, len(e.Snapshot(alice.Tenant).Approvals), 3)
}

func TestOpenApprovalsAreThereAfterARestart(t *testing.T) {
	e, st := open(t)
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, alice.Tenant))(t)
	ask(t, e, 5)
	again := expect.Of(Open(t.Context(), Options{Store: st}))(t)
	defer again.Close()
	asStored(t, again, "opened again")
}

func TestALookAtASnapshotReadsNothingThatIsStored(t *testing.T) {
	e, st := open(t)
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, alice.Tenant))(t)
	expect.Of(e.Swarm.Budgets.Set(t.Context(), alice, budget.Budget{Subject: "tenant", Tokens: 1000}))(t)
	ask(t, e, 300)
	ses := expect.Of(e.Swarm.Sessions.Create(t.Context(), alice, "day"))(t)
	e.Snapshot(alice.Tenant)
	ask(t, e, 1) // the task below asks, too
	e.Swarm.Runner("idle", idle{})
	work := expect.Of(e.Swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "idle", Input: core.Raw(`{}`), Session: ses.SessionID}))(t)
	expect.No(t, e.Swarm.Budgets.Use(t.Context(), alice, budget.Spender{}, work.TaskID, "", 70, 0.25))
	expect.Of(e.Bus.Accept(t.Context(), alice, bus.Send{Topic: "news", Type: bus.Event, Payload: core.Raw(`{}`)}))(t)
	st.fail = errors.New("the disk is away")
	s := e.Snapshot(alice.Tenant)
	st.fail = nil
	if s.Err != nil || len(s.Approvals) != 302 || s.Counts.Total != 1 || s.Counts.ByStatus[task.Queued] != 1 || s.Bus.Messages != 1 ||
		len(s.Budgets) != 1 || s.Budgets[0].Used.Tokens != 70 || s.Budgets[0].Used.CostUSD != 0.25 {
		t.Errorf("%d approvals, %+v, %+v, %+v: %v", len(s.Approvals), s.Counts, s.Bus, s.Budgets, s.Err)
	}
	events, err := e.Audit.List(t.Context(), alice.Tenant, core.Filter{Size: 1})
	expect.True(t, err == nil && s.AuditSeq == uint64(events.Info.Total), "%d events, the snapshot says %d: %v", events.Info.Total, s.AuditSeq, err)
}

// idle runs nothing: its tasks stay queued.
type idle struct{}

func (idle) Check(string, core.Raw) (string, judge.Action, error) {
	return "idle", judge.Action{Kind: "idle", Args: core.Raw(`{}`)}, nil
}

func (idle) Slot(string, string) (bool, string) { return false, "it is idle" }

func (idle) Start(context.Context, swarm.Job) (swarm.Work, error) {
	return nil, errors.New("it is idle")
}

// BenchmarkASnapshotOfManyApprovals has one of 1,000 put off before each look;
// "stored" is what reading all of them costs.
func BenchmarkASnapshotOfManyApprovals(b *testing.B) {
	e, _ := open(b)
	expect.Of(e.Swarm.CreateTenant(b.Context(), alice, alice.Tenant))(b)
	ids := ask(b, e, 1000)
	e.Snapshot(alice.Tenant)
	b.Run("look", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			expect.Of(e.Judge.Defer(b.Context(), alice, ids[i%len(ids)], time.Minute))(b)
			b.StartTimer()
			e.Snapshot(alice.Tenant)
		}
	})
	b.Run("stored", func(b *testing.B) {
		for b.Loop() {
			expect.Of(e.Judge.Open(context.Background(), alice.Tenant))(b)
		}
	})
}
