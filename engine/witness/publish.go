package witness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
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

// Bounds of what is read back.
const (
	maxLine = 128 << 10 // bytes of a line
	maxFile = 4 << 30   // bytes of a file
)

// Line is one checkpoint as a file keeps it and a command gets it: a JSON
// object that ends with a line break. A note alone would not tell where the
// next one begins once a line is cut short.
type Line struct {
	At         time.Time `json:"at"` // when it was published
	Checkpoint string    `json:"checkpoint"`
}

// Encode is the line with its line break.
func (l Line) Encode() []byte { return append(core.MustEncode(l), '\n') }

// begin is how each line begins.
const begin = `{"at":"`

// Read reads the checkpoints of a file back, whoever wrote it. A line that was
// cut short by a crash is passed over; any other that is none ends it with an
// error that names the line.
func Read(r io.Reader) iter.Seq2[audit.Kept, error] {
	return func(yield func(audit.Kept, error) bool) {
		limited := &io.LimitedReader{R: r, N: maxFile}
		lines := bufio.NewScanner(limited)
		lines.Buffer(nil, maxLine)
		n := 0
		for lines.Scan() {
			n++
			line := lines.Bytes()
			if len(line) == 0 {
				continue
			}
			var l Line
			if err := core.Decode(line, &l); err != nil {
				if cut(line) {
					continue
				}
				yield(audit.Kept{}, core.Errorf(core.InvalidInput, "witness: line %d is no checkpoint: want {\"at\":TIME,\"checkpoint\":NOTE}", n).With("field", "witness"))
				return
			}
			if !yield(audit.Kept{Where: fmt.Sprintf("line %d", n), Note: []byte(l.Checkpoint)}, nil) {
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(audit.Kept{}, core.Errorf(core.InvalidInput, "witness: line %d is longer than %d bytes", n+1, maxLine).With("field", "witness"))
		case err != nil:
			yield(audit.Kept{}, fmt.Errorf("witness: %w", err))
		case limited.N == 0:
			yield(audit.Kept{}, core.Errorf(core.InvalidInput, "witness: larger than %d bytes", int64(maxFile)).With("field", "witness"))
		}
	}
}

// cut reports a line that lacks its end. No checkpoint has a } in it.
func cut(line []byte) bool {
	return (bytes.HasPrefix(line, []byte(begin)) || bytes.HasPrefix([]byte(begin), line)) && !bytes.Contains(line, []byte("}"))
}
