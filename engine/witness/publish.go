package witness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

// How checkpoints are published.
const (
	firstRest = 2 * time.Second // after a failed try; doubled each time
	longRest  = 5 * time.Minute
	patience  = 30 * time.Second // for one try
	lastTry   = 2 * time.Second  // when the engine ends
	maxReason = 500              // bytes of an error that are kept
)

// publisher publishes to one witness.
type publisher struct {
	loop.Courier[Witness, Standing]
	s *Witnesses
	w Witness
}

func (s *Witnesses) publisher(w Witness) *publisher {
	return &publisher{s: s, w: w, Courier: loop.Courier[Witness, Standing]{
		Ledger: s.ledger, Kind: s.kind, Rows: standings, By: core.Self(w.TenantID, "witness"), ID: w.Name,
		Same: func(now *Witness) bool { return now.AuditSeq == w.AuditSeq },
	}}
}

// run publishes until ctx ends, and then once more what is left.
func (p *publisher) run(ctx context.Context) error {
	if err := p.Load(ctx); err != nil {
		return err
	}
	bell := p.s.opt.Watch(ctx)
	for {
		wait, err := p.step(ctx)
		switch {
		case ctx.Err() != nil:
			if p.St.Failing {
				return nil
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
			defer cancel()
			if l, size, err := p.newest(ctx); err == nil && size != p.St.Size {
				return p.publish(ctx, l, size)
			}
			return nil
		case err != nil:
			return err
		}
		if wait == untilBell {
			loop.Wait(ctx, bell, wait)
		} else {
			loop.Wait(ctx, nil, wait)
		}
	}
}

// untilBell is a rest that only the bell ends.
const untilBell time.Duration = -1

// step publishes the newest checkpoint when its time has come. It returns how
// long to rest, untilBell when there is none that was not published.
func (p *publisher) step(ctx context.Context) (wait time.Duration, err error) {
	l, size, err := p.newest(ctx)
	switch {
	case err != nil && core.AsError(err).Code == core.NotFound, err == nil && size == p.St.Size:
		return untilBell, nil
	case err != nil:
		return 0, err
	}
	every := time.Duration(p.w.EveryS) * time.Second
	now := p.s.ledger.Clock().Now()
	// Bounded, because the clock may have been set back since.
	wait = max(min(p.St.PublishedAt.Add(every).Sub(now), every), min(p.St.NextAt.Sub(now), longRest))
	if wait > 0 {
		return wait, nil
	}
	return 0, p.publish(ctx, l, size)
}

// newest is the newest checkpoint and its number of events.
func (p *publisher) newest(ctx context.Context) (Line, uint64, error) {
	note, err := p.s.ledger.Checkpoint(ctx, p.w.TenantID)
	if err != nil {
		return Line{}, 0, err
	}
	c, err := audit.ParseCheckpoint(note)
	if err != nil && !errors.Is(err, audit.ErrUnsigned) {
		return Line{}, 0, err
	}
	return Line{At: p.s.ledger.Clock().Now(), Checkpoint: string(note)}, c.Size, nil
}

// publish tries once and notes how it went.
func (p *publisher) publish(ctx context.Context, l Line, size uint64) error {
	try, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no end within %s", patience))
	defer cancel()
	err := p.s.ledger.Issue(ctx, p.w.TenantID, []byte(l.Checkpoint))
	if err == nil {
		err = p.s.opt.Driver.Publish(try, p.w, l)
	}
	if err == nil {
		e := record.Event{}
		if p.St.Failing {
			e.Type = "witness.recovered"
		}
		// Kept though the engine ends just now.
		return p.Keep(context.WithoutCancel(ctx), e, func(st *Standing) {
			*st = Standing{Published: st.Published + 1, Size: size, PublishedAt: l.At, LastError: st.LastError, FailedAt: st.FailedAt}
		})
	}
	if ctx.Err() != nil {
		return nil
	}
	why := core.Cut(err.Error(), maxReason)
	e := record.Event{Detail: map[string]string{"error": why}}
	if !p.St.Failing {
		e.Type = "witness.failing"
	}
	return p.Keep(ctx, e, func(st *Standing) {
		now := p.s.ledger.Clock().Now()
		st.NextAt = now.Add(core.Backoff(st.Attempts, firstRest, longRest))
		st.Failing, st.Attempts, st.LastError, st.FailedAt = true, st.Attempts+1, why, now
	})
}
