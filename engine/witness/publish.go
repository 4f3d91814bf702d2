package witness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
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

// errOther ends a publisher whose witness is gone or another by now.
var errOther = errors.New("the witness is another one")

// publisher publishes to one witness.
type publisher struct {
	s  *Witnesses
	w  Witness
	st Standing
}

// run publishes until ctx ends, and then once more what is left.
func (p *publisher) run(ctx context.Context) error {
	err := p.s.ledger.View(ctx, p.w.TenantID, func(tx *audit.Tx) (err error) {
		p.st, err = standing(tx, p.w.Name)
		return err
	})
	if err != nil {
		return err
	}
	bell := p.s.opt.Watch(ctx)
	for {
		wait, err := p.step(ctx)
		switch {
		case ctx.Err() != nil:
			if p.st.Failing {
				return nil
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
			defer cancel()
			if l, size, err := p.newest(ctx); err == nil && size != p.st.Size {
				return p.publish(ctx, l, size)
			}
			return nil
		case err != nil:
			return err
		}
		p.rest(ctx, bell, wait)
	}
}

// untilBell is a rest that only the bell ends.
const untilBell time.Duration = -1

// rest waits for a time, or for the bell.
func (p *publisher) rest(ctx context.Context, bell <-chan struct{}, wait time.Duration) {
	if wait != untilBell {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		return
	}
	select {
	case <-ctx.Done():
	case _, open := <-bell:
		if !open {
			<-ctx.Done()
		}
	}
}

// step publishes the newest checkpoint when its time has come. It returns how
// long to rest, untilBell when there is none that was not published.
func (p *publisher) step(ctx context.Context) (wait time.Duration, err error) {
	l, size, err := p.newest(ctx)
	switch {
	case err != nil && core.AsError(err).Code == core.NotFound, err == nil && size == p.st.Size:
		return untilBell, nil
	case err != nil:
		return 0, err
	}
	every := time.Duration(p.w.EveryS) * time.Second
	now := p.s.ledger.Clock().Now()
	// Bounded, because the clock may have been set back since.
	wait = max(min(p.st.PublishedAt.Add(every).Sub(now), every), min(p.st.NextAt.Sub(now), longRest))
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
		event := ""
		if p.st.Failing {
			event = "witness.recovered"
		}
		// Kept though the engine ends just now.
		return p.keep(context.WithoutCancel(ctx), event, nil, func(st *Standing) {
			*st = Standing{Published: st.Published + 1, Size: size, PublishedAt: l.At, LastError: st.LastError, FailedAt: st.FailedAt}
		})
	}
	if ctx.Err() != nil {
		return nil
	}
	event, why := "", brief(err)
	if !p.st.Failing {
		event = "witness.failing"
	}
	return p.keep(ctx, event, map[string]string{"error": why}, func(st *Standing) {
		now := p.s.ledger.Clock().Now()
		st.NextAt = now.Add(min(firstRest<<min(st.Attempts, 20), longRest))
		st.Failing, st.Attempts, st.LastError, st.FailedAt = true, st.Attempts+1, why, now
	})
}

// keep writes the standing, with an audit event unless that is "".
func (p *publisher) keep(ctx context.Context, event string, detail any, change func(*Standing)) error {
	next := p.st
	change(&next)
	write := p.s.ledger.Append
	if event != "" {
		write = p.s.ledger.Update
	}
	err := write(ctx, core.Self(p.w.TenantID, "witness"), func(tx *audit.Tx) error {
		now, err := p.s.kind.Load(tx, p.w.Name)
		if err != nil {
			return err
		}
		if now == nil || now.AuditSeq != p.w.AuditSeq {
			return errOther
		}
		if event != "" {
			if _, err := tx.Record(audit.Entry{Type: event, Subject: "witness", ID: p.w.Name, Prev: now.AuditSeq, Detail: detail}); err != nil {
				return err
			}
		}
		return standings.Put(tx, record.Key(p.w.Name), next)
	})
	if err != nil {
		return fmt.Errorf("keep how witness %s goes: %w", p.w.Name, err)
	}
	p.st = next
	return nil
}

// brief is an error as it is kept.
func brief(err error) string {
	s := err.Error()
	return strings.ToValidUTF8(s[:min(len(s), maxReason)], "")
}
