package witness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// restAfter is how long a publisher rests when the store would not be read or
// written.
const restAfter = 10 * time.Second

type place struct{ tenant, name string }

// Run publishes what there is to publish until ctx ends.
func (s *Witnesses) Run(ctx context.Context) error {
	if s.opt.Driver == nil {
		<-ctx.Done()
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	type running struct {
		of  Witness
		end context.CancelFunc
		out chan struct{}
	}
	publishers := map[place]running{}
	for {
		wanted, err := s.wanted(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("read the witnesses: %w", err)
		}
		for at, r := range publishers {
			if w, ok := wanted[at]; !ok || !w.same(&r.of) || !w.CreatedAt.Equal(r.of.CreatedAt) {
				r.end()
				<-r.out // two never publish side by side
				delete(publishers, at)
			}
		}
		for at, w := range wanted {
			if _, ok := publishers[at]; ok {
				continue
			}
			going, end := context.WithCancel(ctx)
			out := make(chan struct{})
			publishers[at] = running{w, end, out}
			all.Go(func() {
				defer close(out)
				defer end()
				s.keepOn(going, w)
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
	}
}

func (s *Witnesses) wanted(ctx context.Context) (map[place]Witness, error) {
	tenants, err := s.opt.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	all := map[place]Witness{}
	for _, t := range tenants {
		// One that can't be read publishes nothing; the others do.
		err := s.ledger.View(ctx, t, func(tx *audit.Tx) error {
			return s.kind.Each(tx, func(w *Witness) error {
				all[place{t, w.Name}] = *w
				return nil
			})
		})
		if errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnusable) {
			return nil, err
		}
	}
	return all, nil
}

// keepOn runs one witness's publisher; trouble with the store rests and begins
// again from what is on disk.
func (s *Witnesses) keepOn(ctx context.Context, w Witness) {
	for {
		err := (&publisher{s: s, w: w}).run(ctx)
		if ctx.Err() != nil || errors.Is(err, errOther) {
			return
		}
		// The cause comes back when it can't be audited either.
		_ = s.ledger.Refuse(ctx, core.Self(w.TenantID, "witness"), audit.Entry{Type: "witness.trouble", Subject: "witness", ID: w.Name}, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(restAfter):
		}
	}
}
