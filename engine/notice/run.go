package notice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/store"
)

const (
	lookEvery = 200 * time.Millisecond // at most that often one reads the log
	restAfter = 10 * time.Second       // when the store would not be read
)

type place struct{ tenant, name string }

// Run tells what there is to tell until ctx ends.
func (s *Notices) Run(ctx context.Context) error {
	if s.opt.Sender == nil {
		<-ctx.Done()
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	type running struct {
		of  Notice
		end context.CancelFunc
		out chan struct{}
	}
	couriers := map[place]running{}
	for {
		wanted, err := s.wanted(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("read the notices: %w", err)
		}
		for at, r := range couriers {
			if n, ok := wanted[at]; !ok || !n.same(&r.of) || !n.CreatedAt.Equal(r.of.CreatedAt) {
				r.end()
				<-r.out // two never send side by side
				delete(couriers, at)
			}
		}
		for at, n := range wanted {
			if _, ok := couriers[at]; ok {
				continue
			}
			going, end := context.WithCancel(ctx)
			out := make(chan struct{})
			couriers[at] = running{n, end, out}
			all.Go(func() {
				defer close(out)
				defer end()
				s.carry(going, n)
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
	}
}

func (s *Notices) wanted(ctx context.Context) (map[place]Notice, error) {
	tenants, err := s.opt.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	all := map[place]Notice{}
	err = s.opt.Health.Tenants(ctx, "notices", tenants, func(t string) error {
		err := s.ledger.View(ctx, t, func(tx *audit.Tx) error {
			return s.kind.Each(tx, func(n *Notice) error {
				all[place{t, n.Name}] = *n
				return nil
			})
		})
		if errors.Is(err, store.ErrNoTenant) {
			return nil
		}
		return err
	})
	return all, err
}

// carry runs one notice's courier; trouble with the store rests and begins
// again from what is on disk.
func (s *Notices) carry(ctx context.Context, n Notice) {
	for {
		err := health.Caught(func() error { return s.courier(n).run(ctx) })
		if ctx.Err() != nil || errors.Is(err, errOther) {
			return
		}
		// The cause comes back when it can't be audited either.
		s.opt.Health.Report(n.TenantID, "notices", "notice "+n.Name, err)
		_ = s.ledger.Refuse(ctx, core.Self(n.TenantID, "notice"), audit.Entry{Type: "notice.trouble", Subject: "notice", ID: n.Name}, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(restAfter):
		}
	}
}
