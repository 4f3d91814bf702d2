package retention

import (
	"context"
	"errors"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

// How often the policies are looked at.
const (
	busy = 100 * time.Millisecond // where something left the last time
	idle = 2 * time.Second        // else
)

// Prune removes one slice of the oldest things of a kind that the limit lets
// go, from a key on. It returns where to look next, nil when it is through.
type Prune func(ctx context.Context, by core.Caller, limit record.Limit, from []byte) (next []byte, err error)

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Tenants func(context.Context) ([]string, error)
	Health  *health.Troubles
	Prune   map[string]Prune // by kind; audit needs none
	// Erase is what Erase carries out, one after the other: reasons last, which
	// Said finds before. Whose tells whose tasks are.
	Erase []record.Eraser
	Whose func(*record.Subject) func(tx *audit.Tx, id string) (record.Whose, bool, error)
	Said  func(ctx context.Context, tenant string, of *record.Subject) error
}

// Service keeps the policies of every tenant and, while Run does, lets what is
// old leave. It is safe for concurrent use.
type Service struct {
	opt  Options
	kind record.Table[Policy]
	all  record.Mirror[Policy]
	loop *loop.Loop
	pass sync.Mutex // one at a time
}

// New reads the policies; Run applies them.
func New(ctx context.Context, opt Options) (*Service, error) {
	s := &Service{opt: opt}
	s.loop = loop.New(loop.Options{Component: "retention", Health: opt.Health, Clock: opt.Ledger.Clock(), Pass: s.tend})
	s.kind = &record.Kind[*Policy]{Noun: "retention", Subject: "retention.policy", Bucket: "retention", Ledger: s.opt.Ledger, Follow: s.follow, ID: func(p *Policy) string { return p.Kind }, Whole: true}
	opt.Ledger.Register(s.kind.Auditable())
	return s, s.kind.ReadAll(ctx, opt.Health, opt.Tenants)
}

// Run lets what is old leave until ctx ends.
func (s *Service) Run(ctx context.Context) error { return s.loop.Run(ctx) }

func (s *Service) tend(ctx context.Context, tenant string, _ bool) (next time.Time, err error) {
	if len(s.all.Of(tenant)) == 0 {
		return next, nil
	}
	some, err := s.Apply(ctx, tenant)
	wait := idle
	if some {
		wait = busy
	}
	return s.opt.Ledger.Clock().Now().Add(wait), err
}

// Apply lets leave what a tenant's policies let go now, and says whether
// anything did. The kinds leave side by side: where one comes as fast as it
// goes, the others do not wait.
func (s *Service) Apply(ctx context.Context, tenant string) (some bool, err error) {
	s.pass.Lock()
	defer s.pass.Unlock()
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, kind := range Kinds() {
		all.Go(func() {
			left, bad := s.apply(ctx, tenant, kind)
			mu.Lock()
			defer mu.Unlock()
			some, err = some || left, errors.Join(err, bad)
		})
	}
	all.Wait()
	return some, err
}

// apply is Apply of one kind.
func (s *Service) apply(ctx context.Context, tenant, kind string) (some bool, err error) {
	prune := s.opt.Prune[kind]
	if kind == Audit {
		prune = s.retire
	}
	if prune == nil {
		return false, nil
	}
	by := core.Self(tenant, "retention")
	for from := []byte(nil); ; some = true {
		limit := s.Limit(tenant, kind)
		if limit == (record.Limit{}) || ctx.Err() != nil {
			return some, ctx.Err()
		}
		err = health.Caught(func() (err error) {
			from, err = prune(ctx, by, limit, from)
			return err
		})
		if err != nil || from == nil {
			return some, err
		}
	}
}
