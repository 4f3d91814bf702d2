package engine

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/expect"
	"swarmdeck/store"
)

var alice = core.Caller{Tenant: "t_acme", Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// flaky is a store whose reads can be made to fail, and be told of.
type flaky struct {
	store.Store
	fail error
	got  func(store.Bucket)
}

// told tells of reads.
type told struct {
	store.Tx
	got func(store.Bucket)
}

func (t told) Get(b store.Bucket, key []byte) ([]byte, error) {
	t.got(b)
	return t.Tx.Get(b, key)
}

func (f *flaky) View(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	if f.fail != nil {
		return f.fail
	}
	if f.got == nil {
		return f.Store.View(ctx, tenant, fn)
	}
	return f.Store.View(ctx, tenant, func(tx store.Tx) error { return fn(told{tx, f.got}) })
}

func open(t testing.TB) (*Engine, *flaky) {
	path := filepath.Join(t.TempDir(), "test.db")
	sealer := expect.Of(audit.OpenSealer(path + ".key"))(t)
	db := expect.Of(store.Open(path, store.Options{Seal: sealer.Seal}))(t)
	st := &flaky{Store: db}
	e := expect.Of(Open(t.Context(), Options{Store: st, Sealer: sealer}))(t)
	t.Cleanup(func() {
		_ = e.Close()
		expect.Is(t, db.Close(), nil)
	})
	return e, st
}

func TestASnapshotFollowsWhatChanged(t *testing.T) {
	e, _ := open(t)
	bell := e.Watch(t.Context())
	if s := e.Snapshot("t_acme"); len(s.Tenants) != 0 || s.Err != nil {
		t.Errorf("before there is a tenant: %+v", s)
	}
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, "t_acme"))(t)
	ses := expect.Of(e.Swarm.Sessions.Create(t.Context(), alice, "day"))(t)
	<-bell
	s := e.Snapshot("t_acme")
	expect.True(t, len(s.Tenants) == 1 && len(s.Sessions) == 1 && s.Sessions[0].SessionID == ses.SessionID && s.AuditSeq != 0, "%+v", s)
	expect.Is(t, e.Snapshot("t_acme"), s, "nothing changed, and it is another snapshot")
	expect.Of(e.Swarm.EStops.Press(t.Context(), alice, "drill"))(t)
	s = e.Snapshot("t_acme")
	expect.True(t, s.EStop.On, "emergency stop: %+v", s.EStop)
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, "t_two"))(t)
	s = e.Snapshot("t_acme")
	expect.True(t, len(s.Tenants) == 2, "a second tenant is not seen from the first: %v", s.Tenants)
}

func TestASnapshotThatFailedIsReadAgain(t *testing.T) {
	e, st := open(t)
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, "t_acme"))(t)
	expect.Of(e.Swarm.Sessions.Create(t.Context(), alice, "day"))(t)
	st.fail = errors.New("the disk is away")
	expect.True(t, e.Snapshot("t_acme").Err != nil, "no error")
	st.fail = nil
	s := e.Snapshot("t_acme")
	expect.True(t, s.Err == nil && len(s.Sessions) == 1, "after the disk is back: %v, %d sessions", s.Err, len(s.Sessions))
}

func TestBellsEndWithTheirWatcherAndTheEngine(t *testing.T) {
	e, _ := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	one, two := e.Watch(ctx), e.Watch(t.Context())
	cancel()
	ended := func(bell <-chan struct{}) bool {
		for {
			select {
			case _, open := <-bell:
				if !open {
					return true
				}
			case <-time.After(2 * time.Minute):
				return false
			}
		}
	}
	expect.True(t, ended(one), "a bell outlived its watcher")
	expect.No(t, e.Close())
	expect.True(t, ended(two) && ended(e.Watch(t.Context())), "a bell outlived the engine")
}

func TestTheEngineRunsAndStops(t *testing.T) {
	e, _ := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := expect.Later(func() error { return e.Run(ctx) })
	// A tenant made while it runs is scheduled, too.
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, "t_acme"))(t)
	_, err := e.Swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "ghost", Input: core.Raw(`{}`)})
	expect.Err(t, err, core.Kind(core.InvalidInput), "unknown kind")
	deltas, err := e.Reconcile(t.Context(), "t_acme")
	expect.True(t, err == nil && len(deltas) == 0, "reconcile: %v %v", deltas, err)
	cancel()
	expect.No(t, <-done, "Run")
}

func TestASnapshotHasTheSubagentsThatAreNotOver(t *testing.T) {
	e, _ := open(t)
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, "t_acme"))(t)
	a := expect.Of(e.Skills.Spawn(t.Context(), alice, skill.Spawn{Name: "Navigator-1"}))(t)
	s := e.Snapshot("t_acme")
	expect.True(t, len(s.Subagents) == 1 && s.Subagents[0].AgentID == a.AgentID && s.Err == nil, "%+v", s.Subagents)
	_, err := e.Bus.Accept(t.Context(), alice, bus.Send{Recipient: a.AgentID, Payload: core.Raw(`{}`)})
	expect.No(t, err, "a message to it")
	expect.Of(e.Skills.Cancel(t.Context(), alice, a.AgentID, ""))(t)
	s = e.Snapshot("t_acme")
	expect.True(t, len(s.Subagents) == 0, "when it is over: %+v", s.Subagents)
	deltas, err := e.Reconcile(t.Context(), "t_acme")
	expect.True(t, err == nil && len(deltas) == 0, "%+v, %v", deltas, err)
}
