package host

import (
	"context"
	"fmt"
	"maps"
	"time"

	"swarmdeck/drivers/host/wire"
)

// epoch is that of a tenant's owner, as keepers are told.
func (p *Pool) epoch(ctx context.Context, tenant string) (uint64, error) {
	if p.opt.Epoch == nil {
		return 0, nil
	}
	epoch, err := p.opt.Epoch(ctx, tenant)
	if err != nil {
		return 0, fmt.Errorf("read the epoch of the tenant: %w", err)
	}
	return epoch, nil
}

// Hold lets what runs on hosts go on until then, and new processes start there, where
// Options.Leased says that this is needed.
func (p *Pool) Hold(until time.Time) { p.until.Store(int64(wire.SinceBoot() + time.Until(until))) }

// answer is what comes back with a beat.
func (p *Pool) answer(beat uint64) wire.Control {
	f := wire.Control{Beat: beat}
	if p.opt.Leased {
		f.HoldMS = max(0, (time.Duration(p.until.Load()) - wire.SinceBoot()).Milliseconds())
	}
	return f
}

// replaced is told that the host has a newer owner of the tenant, which has ended all
// that ran there.
func (l *link) replaced() {
	l.mu.Lock()
	runs := maps.Clone(l.runs)
	l.mu.Unlock()
	for _, p := range runs {
		p.lose("is lost: its host has a newer owner of the tenant")
	}
}
