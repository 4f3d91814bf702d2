package control

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// lookingClock calls what a test wants to happen while somebody looks at it, after
// some looks.
type lookingClock struct {
	look  func()
	after int
}

func (c *lookingClock) Now() time.Time {
	if c.after--; c.after < 0 && c.look != nil {
		look := c.look
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

// newQuiet makes a controller over a store with one tenant, and an intent of it
// that has nothing to do. Nothing runs by itself.
func newQuiet(t *testing.T, tenant string, clock core.Clock, slots int) (*Controller, Intent) {
	t.Helper()
	no := func(err error) {
		t.Helper()
		expect.No(t, err)
	}
	path := filepath.Join(t.TempDir(), "intents.db")
	sealer, err := audit.OpenSealer(path + ".key")
	no(err)
	db, err := store.Open(path, store.Options{Seal: sealer.Seal})
	no(err)
	t.Cleanup(func() { no(db.Close()) })
	no(db.CreateTenant(t.Context(), tenant))
	ledger := audit.New(db, audit.Options{Clock: clock})
	c := New(Options{Ledger: ledger, DAG: dag.New(dag.Options{Ledger: ledger}), Tenants: db.Tenants, Slots: slots})
	no(c.Register("rest", Kind{Effect: idle{}}))
	by := core.Caller{Tenant: tenant, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	i, err := c.Intend(t.Context(), by, Spec{AgentID: "ada", Steps: []Step{{Action: "rest", Args: core.Raw("{}")}}})
	no(err)
	return c, i
}

// tended looks at the tenants that are due once, and says how many intents it
// began.
func tended(t *testing.T, c *Controller) (begun int) {
	t.Helper()
	c.begin = func(*held, context.Context) { begun++ }
	expect.Of(c.loop.Step(t.Context()))(t)
	return begun
}

// What comes of an intent is on disk, and the next thing to do with it is due,
// a moment before who did it lets go.
func TestWhatIsDueBeforeItsHolderLetGoIsBegunWhenItDoes(t *testing.T) {
	c, i := newQuiet(t, "t_acme", &lookingClock{}, 4)
	h := &held{place: place{"t_acme", i.IntentID}, seq: 1}
	c.hold(t.Context(), h)
	n := tended(t, c)
	expect.Must(t, n == 0, "%d begun beside their holder", n)
	c.release(h)
	expect.Is(t, tended(t, c), 1, "begun after their holder let go")
}

// One tenant has the only slot, and gives it back just when another that found
// none is about to wait.
func TestASlotThatGetsFreeMeanwhileIsNotMissed(t *testing.T) {
	const busy, waits = "t_busy", "t_waits"
	clock := &lookingClock{}
	c, _ := newQuiet(t, waits, clock, 1)
	other := &held{place: place{busy, "i-1"}}
	c.hold(t.Context(), other)
	clock.look, clock.after = func() { c.release(other) }, 1 // the loop looks first, then who found no slot
	expect.True(t, tended(t, c)+tended(t, c) == 1 && clock.look == nil, "the slot is free, and %s is neither served nor looked at again", waits)
}

// Two are leased in one transaction; the second is withdrawn before it begins.
func TestWhatIsWithdrawnOnceItIsLeasedIsTold(t *testing.T) {
	c, i := newQuiet(t, "t_acme", &lookingClock{}, 4)
	by := core.Caller{Tenant: "t_acme", Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	second := expect.Of(c.Intend(t.Context(), by, Spec{AgentID: i.AgentID, Steps: []Step{{Action: "rest", Args: core.Raw("{}")}}}))(t)
	var begun []context.Context
	c.begin = func(_ *held, ctx context.Context) {
		if begun = append(begun, ctx); len(begun) == 1 {
			_, err := c.Withdraw(t.Context(), by, second.IntentID, "enough")
			expect.True(t, err == nil, "%v", err)
		}
	}
	expect.Of(c.loop.Step(t.Context()))(t)
	expect.True(t, len(begun) == 2 && begun[0].Err() == nil && begun[1].Err() != nil, "%d begun; of two the withdrawn one is to end", len(begun))
}
