package swarm

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/judge"
)

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Judge   *judge.Judge
	Runners map[string]Runner // by task kind
	Slots   int               // tasks run at once; 0 means 8
	Spill   string            // directory for output past 1 MiB
}

// Swarm implements Service.
type Swarm struct{ Service }

// New rebuilds the live set from the store.
func New(opt Options) (*Swarm, error) { panic("not built") }

// Runner adds the runner of a task kind. Call it before Run.
func (s *Swarm) Runner(kind string, r Runner) { panic("not built") }

// Auditables are the records that reconcile compares.
func (s *Swarm) Auditables() []audit.Auditable { panic("not built") }
