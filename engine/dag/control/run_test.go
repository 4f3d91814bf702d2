package control

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/store"
)

// lookingClock calls what a test wants to happen while somebody looks at it.
type lookingClock struct{ look func() }

func (c *lookingClock) Now() time.Time {
	if look := c.look; look != nil {
		c.look = nil
		look()
	}
	return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
}

// idle is an effect that has nothing to do.
type idle struct{}

func (idle) Probe(context.Context, Job) (Seen, error)      { return Seen{Met: true}, nil }
func (idle) Act(context.Context, Job) (Seen, error)        { return Seen{Met: true}, nil }
func (idle) Compensate(context.Context, Job) (Seen, error) { return Seen{Met: true}, nil }

// One tenant has the only slot, and gives it back just when another that found
// none is about to wait.
func TestASlotThatGetsFreeMeanwhileIsNotMissed(t *testing.T) {
	const busy, waits = "t_busy", "t_waits"
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "intents.db")
	no := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sealer, err := audit.OpenSealer(path + ".key")
	no(err)
	db, err := store.Open(path, store.Options{Seal: sealer.Seal})
	no(err)
	defer func() { no(db.Close()) }()
	no(db.CreateTenant(ctx, waits))
	clock := &lookingClock{}
	ledger := audit.New(db, audit.Options{Clock: clock})
	c := New(Options{Ledger: ledger, DAG: dag.New(dag.Options{Ledger: ledger}), Tenants: db.Tenants, Slots: 1})
	no(c.Register("rest", Kind{Effect: idle{}}))
	by := core.Caller{Tenant: waits, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	_, err = c.Intend(ctx, by, Spec{AgentID: "ada", Steps: []Step{{Action: "rest", Args: core.Raw("{}")}}})
	no(err)
	other := &held{place: place{busy, "i-1"}}
	c.hold(ctx, other)
	if due, _ := c.bell.take(clock.Now()); len(due) != 1 || due[0] != waits {
		t.Fatalf("due are %q", due)
	}
	clock.look = func() { c.release(other) }
	begun := 0
	more, err := c.tend(ctx, waits, func(*held, context.Context) { begun++ })
	no(err)
	again, _ := c.bell.take(clock.Now())
	for _, tenant := range again {
		more = more || tenant == waits
	}
	if clock.look != nil || begun == 0 && !more {
		t.Errorf("the slot is free, and %s is neither served nor looked at again", waits)
	}
}
