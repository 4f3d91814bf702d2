package dag

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Emitted is what a stream of events came to.
type Emitted struct {
	Events uint64 `json:"events"` // that are here now
	New    uint64 `json:"new"`    // of these, that were not here before
}

// ReadEvents reads JSON lines, an event each; empty lines are passed over. It
// ends with the first mistake, which names its line.
func ReadEvents(in io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 0, 1<<16), MaxEvent+2) // its end, as some write it
		n := 0
		for lines.Scan() {
			n++
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) == 0 {
				continue
			}
			e, err := Parse(line)
			if err != nil {
				err = fmt.Errorf("line %d: %w", n, err)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = core.Errorf(core.InvalidInput, "line %d: longer than the %d bytes of an event", n+1, MaxEvent).With("field", "event")
		}
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// EmitStream takes in events as they come, in their order and batch by batch, of
// MaxBatch events or 4 MiB: each is all or none as with Emit, and on disk before
// told hears of it. The first mistake ends it; what came before its batch stays.
// To emit a stream again is to go on where it ended: what is here is left.
func (d *DAG) EmitStream(ctx context.Context, by core.Caller, events iter.Seq2[Event, error], told func(Emitted)) (done Emitted, err error) {
	var batch []Event
	size := 0
	flush := func() error {
		all, err := d.Emit(ctx, by, batch...)
		if err != nil {
			return err
		}
		for i := range all {
			if all[i].New {
				done.New++
			}
		}
		done.Events += uint64(len(all))
		clear(batch)
		batch, size = batch[:0], 0
		told(done)
		return ctx.Err()
	}
	for e, bad := range events {
		if bad != nil {
			err = bad
			break
		}
		batch = append(batch, e)
		if size += len(e.raw); len(batch) == MaxBatch || size >= batchBytes {
			if err = flush(); err != nil {
				break
			}
		}
	}
	if err == nil && len(batch) > 0 {
		err = flush()
	}
	if err != nil {
		return done, fmt.Errorf("after %d events: %w", done.Events, err)
	}
	return done, nil
}

// Source is what events are read from that is no record of ours.
type Source interface {
	// Read reads the events in their order. An import calls it twice: to look at
	// everything, then to take it in.
	Read(ctx context.Context, src string, each func(Event) error) error
}

// ImportEvents takes in what a source has. All of it is read once before any is
// taken: what can't be read takes in nothing. It is taken in as EmitStream does.
func (d *DAG) ImportEvents(ctx context.Context, by core.Caller, source, src string, told func(Emitted)) (Transferred, error) {
	done := Transferred{Format: source, Path: src}
	s := d.sources[source]
	if s == nil {
		return done, core.Invalid("format", source, strings.Join(slices.Sorted(maps.Keys(d.sources)), ", "))
	}
	if err := s.Read(ctx, src, func(Event) error { return ctx.Err() }); err != nil {
		return done, audit.Explain("look at "+src, err)
	}
	stop := errors.New("no more is wanted")
	got, err := d.EmitStream(ctx, by, func(yield func(Event, error) bool) {
		err := s.Read(ctx, src, func(e Event) error {
			if !yield(e, nil) {
				return stop
			}
			return nil
		})
		if err != nil && !errors.Is(err, stop) {
			yield(Event{}, err)
		}
	}, told)
	done.Events, done.New = got.Events, got.New
	return done, audit.Explain("import "+src, err)
}
