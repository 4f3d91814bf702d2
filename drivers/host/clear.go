package host

import (
	"context"
	"fmt"

	"github.com/hashicorp/yamux"

	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/engine/core"
	"swarmdeck/engine/host"
)

func (p *Pool) Clear(ctx context.Context, h host.Host) error {
	l, gone := p.begin(h)
	defer gone()
	err := l.clear(ctx)
	for failed := 0; err != nil && ctx.Err() == nil; failed++ {
		l.set(host.Refused, desk.Text(err.Error(), maxReason))
		if !core.Within(ctx.Done(), core.Backoff(failed, firstRest, longRest)) {
			err = l.clear(ctx)
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", l.state().Reason, err)
	}
	return err
}

func (l *link) clear(ctx context.Context) error {
	epoch, err := l.pool.epoch(ctx, l.at.tenant)
	if err != nil {
		return err
	}
	return l.reach(ctx, func(_ *yamux.Session, stream *yamux.Stream) error {
		if err := end(wire.New(stream, wire.MaxFromHost), wire.End{Remove: true, Epoch: epoch}); err != nil {
			return fmt.Errorf("end what is there: %w", err)
		}
		return nil
	})
}
