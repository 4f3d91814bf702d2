package judge

import (
	"errors"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// ErrStale means the rules changed since Evaluate: evaluate again.
var ErrStale = errors.New("policy changed since the evaluation")

// Options of New.
type Options struct {
	Ledger *audit.Ledger
	Policy []byte // rule table (YAML); nil means the embedded default
	// Deadlines by risk; nil means 30m low, 15m medium, 10m high and critical.
	Deadlines map[Risk]time.Duration
}

// Judge implements Service.
type Judge struct{ Service }

// New compiles the policy; a rule that does not compile is an error.
func New(opt Options) (*Judge, error) { panic("not built") }

// Own names the owner of a gate. Call it before Run, once per gate.
func (j *Judge) Own(g Gate, s Settler) { panic("not built") }

// Auditables are the records that reconcile compares.
func (j *Judge) Auditables() []audit.Auditable { panic("not built") }

var _ core.Raw
