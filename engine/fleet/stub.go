package fleet

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
)

// Options of New.
type Options struct {
	Ledger   *audit.Ledger
	Judge    *judge.Judge
	Swarm    *swarm.Swarm
	Runtimes map[string]Runtime
}

// Fleet implements Service, swarm.Runner for agent.prompt and judge.Settler
// for tool calls.
type Fleet struct{ Service }

// New reads the agents of every tenant.
func New(opt Options) (*Fleet, error) { panic("not built") }

// Auditables are the records that reconcile compares.
func (f *Fleet) Auditables() []audit.Auditable { panic("not built") }
