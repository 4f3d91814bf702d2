// Package engine is the whole engine behind one door: Open, Close, the
// services, Watch and Snapshot. Doors (the cockpit, a command, a script) use
// nothing else.
package engine

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/store"
)

// Options of Open.
type Options struct {
	Store    store.Store
	Sealer   *audit.Sealer
	Clock    core.Clock // nil means the system clock
	Runners  map[string]swarm.Runner
	Runtimes map[string]fleet.Runtime
	Spill    string // directory for large outputs
	Slots    int
	Policy   []byte // nil means the default rules
	NewTrace func() string
}

// Engine embeds everything; one per data file.
type Engine struct {
	Swarm *swarm.Swarm
	Judge *judge.Judge
	Fleet *fleet.Fleet
	Audit *audit.Ledger
}

// Open builds the services over a store and repairs what a crash left. It
// starts no work: call Run for that.
func Open(ctx context.Context, opt Options) (*Engine, error) { panic("not built") }

// Run schedules tasks, supervises agents and enforces deadlines until ctx
// ends; it returns when all work has stopped.
func (e *Engine) Run(ctx context.Context) error { panic("not built") }

// Close releases what Open made, but not the store.
func (e *Engine) Close() error { panic("not built") }

// Watch returns a one-slot bell: a token means something changed since you
// looked. Take the Watch first, then the Snapshot.
func (e *Engine) Watch(ctx context.Context) <-chan struct{} { panic("not built") }

// Snapshot is the immutable live world of a tenant.
func (e *Engine) Snapshot(tenant string) *Snapshot { panic("not built") }

// Reconcile compares the audit log's replay with the store.
func (e *Engine) Reconcile(ctx context.Context, tenant string) ([]audit.Delta, error) {
	panic("not built")
}

// Snapshot is what the cockpit draws its live parts from. It must not be
// modified. Revision grows with every change of the tenant.
type Snapshot struct {
	Tenant    string
	Tenants   []string
	Revision  uint64
	Sessions  []*swarm.Session  // live ones, newest first
	Agents    []*fleet.Agent    // by name
	Approvals []*judge.Approval // open ones: most urgent first (risk × time left)
	Counts    swarm.Counts
	EStop     swarm.EStop
	Budgets   []swarm.Budget
	AuditSeq  uint64 // events so far
	Decisions uint64
	LogRev    uint64 // grows when any log stream grew
}
