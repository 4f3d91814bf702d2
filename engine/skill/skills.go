package skill

import (
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
)

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Judge   *judge.Judge
	Swarm   *swarm.Swarm
	Runners map[string]Runner // by kind; composite needs none
	Static  []Skill           // the program's own: every tenant has them
}

// Skills keeps every tenant's skills.
type Skills struct {
	*registry
	opt Options
}

// New reads what the store has. It writes nothing and starts nothing.
func New(ctx context.Context, opt Options) (*Skills, error) {
	tenants, err := opt.Swarm.Tenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the skills: %w", err)
	}
	ids := make([]string, len(tenants))
	for i, t := range tenants {
		ids[i] = t.TenantID
	}
	s := &Skills{opt: opt}
	s.registry, err = newRegistry(ctx, opt.Ledger, ids, opt.Runners, opt.Static)
	return s, err
}

// Run reads the skills again whenever their files change, until ctx ends.
func (s *Skills) Run(ctx context.Context) error { return s.watch(ctx) }
