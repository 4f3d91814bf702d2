// Package cad runs teams of CAD agents (seed 5): their roles and what these
// allow, the workspaces they build in, the operations they carry out on real
// geometry, and the messages between them.
//
// The engine owns the truth. A workspace is a journal of operations in the
// store; the process that computes geometry is a disposable copy of it. What
// an operation changed, what it counts for its agent and what the audit log
// says of it are one transaction: after a crash of either side an operation has
// happened in full or not at all.
package cad

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// Options of New.
type Options struct {
	Ledger *audit.Ledger
	Judge  *judge.Judge
	Swarm  *swarm.Swarm
	Tasks  *task.Table
	Bus    Bus
	// Pool computes geometry. Without one every operation that needs it is
	// refused as UNAVAILABLE; all else works.
	Pool Pool
	// Dir is below what the files of workspaces lie that were given no directory of
	// their own: Dir/TENANT/WORKSPACE. Without it such workspaces have no files.
	Dir string
	// Taken reports whether a name belongs to somebody else who gets messages,
	// so that no CAD agent is given it; nil knows nobody.
	Taken    func(tenant, id string) bool
	ReadOnly bool // the store is: repair nothing, audit nothing
	Health   *health.Troubles
}

// Bus carries the messages between agents; *bus.Bus is one.
type Bus interface {
	AcceptIn(tx *audit.Tx, m bus.Send) (bus.Message, error)
	TakeIn(tx *audit.Tx, id, recipient string) error
	TakenIn(tx store.Tx, id, recipient string) (bool, error)
}

// Controller keeps every tenant's CAD agents and carries out what they do. Its
// methods may be called from any goroutine.
//
// Lock order: an agent's turn, a slot of its tenant, workspaces by name, a
// worker. mu is held for none of these, nor while anything else is called.
type Controller struct {
	opt    Options
	ledger *audit.Ledger
	asked  *swarm.Questions
	roles  []RoleTemplate // the built-in ones, in order
	kinds  kinds

	work   *workflows
	facets *facets

	mu      sync.RWMutex
	tenants map[string]*tenant
}

var _ judge.Settler = (*Controller)(nil)

// New reads what the store has. It starts nothing. The caller makes it known
// to the judge (Own GateCAD) and to the bus (Parties).
func New(ctx context.Context, opt Options) (*Controller, error) {
	roles, err := builtinRoles()
	if err != nil {
		return nil, err
	}
	c := &Controller{opt: opt, ledger: opt.Ledger, asked: opt.Swarm.Questions(), roles: roles, facets: newFacets(mostFacets), tenants: map[string]*tenant{}}
	if c.work, err = newWorkflows(c); err != nil {
		return nil, err
	}
	c.declare()
	all, err := opt.Swarm.Tenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the CAD agents: %w", err)
	}
	if err := opt.Health.Tenants(ctx, component, idsOf(all), func(tenant string) error { return c.recall(ctx, tenant) }); err != nil {
		return nil, fmt.Errorf("read the CAD agents: %w", err)
	}
	return c, nil
}

// component is what troubles of this package are told under.
const component = "cad"

func idsOf(all []swarm.Tenant) []string {
	ids := make([]string, len(all))
	for i, t := range all {
		ids[i] = t.TenantID
	}
	return ids
}

// Run has workflows go on until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.RunWorkflows(ctx) }

// foreign audits err when it says that something belongs to another tenant.
func (c *Controller) foreign(ctx context.Context, by core.Caller, named string, err error) error {
	if !errors.Is(err, core.ErrForeign) || c.opt.ReadOnly {
		return err
	}
	return c.ledger.Refuse(ctx, by, audit.Entry{
		Type: "tenant.violation", Subject: "tenant", ID: by.Tenant, Detail: map[string]string{"named": named, "kind": "cad"},
	}, err)
}

// reader is who reads; a foreign name is refused in its name.
func reader(tenant string) core.Caller { return core.Self(tenant, "reader") }
