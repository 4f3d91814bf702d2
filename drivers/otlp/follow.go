// Package otlp tells an OpenTelemetry collector what the engine did, as spans:
//
//	task KIND                  a task's life, from its dispatch to its end
//	├ queue                    a wait for a worker, before each attempt
//	├ decide GATE              a word of the judge (no duration)
//	├ approval                 from the question to its answer or its end
//	└ run KIND                 an attempt
//	  ├ invoke_agent NAME      an agent's turn
//	  │ ├ chat MODEL           a request to a model, where the runtime shows them
//	  │ └ execute_tool TOOL    a tool call
//	  ├ skill NAME             a skill's run; the steps of a composite below it
//	  └ task KIND              what the work dispatched
//
// The trace is the task's own trace_id. A span's id follows from what it is
// about (core.SpanID), so that a program gets its parent in TRACEPARENT, an
// MCP server in _meta, an ACP agent in _meta and an exec agent in its task line,
// and what they trace joins in.
//
// Nothing in the engine knows of this package. It reads the audit log behind
// the engine: the log is the queue, so that the engine never waits and nothing
// is held in memory but one batch. When a collector can't be reached the batch
// is tried again; who falls behind by more than MaxBehind events skips them
// and counts them. Spans are told when they end: what ended while no engine
// with a collector ran is not told.
//
// No span has a prompt, an input, an argument, an output, a reason or a title:
// names, kinds, codes, counts and times only. Where Settings.Content asks for it,
// requests to models and tool calls have what the record has of them.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
)

// MaxBehind is how many audit events a tenant's log may grow while they can't
// be told; of more, the older half is skipped.
const MaxBehind = 200_000

const (
	lookAt   = 256             // events that are looked at in one go
	farewell = 2 * time.Second // for what is left at the end
)

// Exporter follows one engine.
type Exporter struct {
	eng  *engine.Engine
	send *sender
	to   *Settings

	stop    context.CancelFunc
	done    chan struct{}
	cursors map[string]uint64 // seq of the last event told, by tenant

	figures struct{ exported, rejected, skipped, failures atomic.Int64 }
	mu      sync.Mutex
	last    string // the newest failure
	failing bool
}

// Figures count what became of the spans since the start.
type Figures struct {
	Exported int64 // spans taken by the collector
	Rejected int64 // spans that it would not take
	Skipped  int64 // audit events that were not looked at, because it was behind
	Failures int64 // requests that failed, each try
	Last     string
}

// Follow tells a collector what the engine does from now on, until Close.
func Follow(ctx context.Context, eng *engine.Engine, to *Settings, version, instance string) (*Exporter, error) {
	tenants, err := eng.Store().Tenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tenants: %w", err)
	}
	x := &Exporter{eng: eng, to: to, send: newSender(to, version, instance), done: make(chan struct{}), cursors: map[string]uint64{}}
	for _, t := range tenants {
		x.cursors[t] = eng.Snapshot(t).AuditSeq
	}
	ctx, x.stop = context.WithCancel(context.WithoutCancel(ctx))
	bell := eng.Watch(ctx)
	go func() {
		defer close(x.done)
		x.follow(ctx, bell)
	}()
	return x, nil
}

// Figures are the counts as they are now.
func (x *Exporter) Figures() Figures {
	x.mu.Lock()
	defer x.mu.Unlock()
	return Figures{x.figures.exported.Load(), x.figures.rejected.Load(), x.figures.skipped.Load(), x.figures.failures.Load(), x.last}
}

// Close tells what is left, for two seconds at most, unless the collector was
// lost before.
func (x *Exporter) Close() error {
	x.stop()
	<-x.done
	x.mu.Lock()
	failing := x.failing
	x.mu.Unlock()
	if !failing {
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		_ = x.all(ctx, true) // what can't be told now is not told
	}
	x.send.client.CloseIdleConnections()
	return nil
}

func (x *Exporter) follow(ctx context.Context, bell <-chan struct{}) {
	for range bell {
		if core.Within(ctx.Done(), x.to.Delay) {
			return
		}
		if err := x.all(ctx, false); ctx.Err() != nil {
			return
		} else if err != nil { // the store can't be read: the next bell tries again
			x.failed(err)
		}
	}
}

// all tells everything that has happened since the last time.
func (x *Exporter) all(ctx context.Context, once bool) error {
	tenants, err := x.eng.Store().Tenants(ctx)
	if err != nil {
		return fmt.Errorf("list the tenants: %w", err)
	}
	for _, t := range tenants {
		for more := true; more; {
			if more, err = x.some(ctx, t, once); err != nil {
				return err
			}
		}
	}
	return nil
}

// some tells a batch of a tenant, and reports whether there is more.
func (x *Exporter) some(ctx context.Context, tenant string, once bool) (more bool, err error) {
	at := x.cursors[tenant]
	if head := x.eng.Snapshot(tenant).AuditSeq; head > at+MaxBehind {
		to := head - MaxBehind/2
		x.figures.skipped.Add(int64(to - at)) //nolint:gosec // a count of events
		at = to
	}
	d := &deriver{eng: x.eng, tenant: tenant, told: x.to.told, content: x.to.Content, lives: map[string]*life{}}
	upto := at
	for len(d.spans) < x.to.Batch {
		events, seen, err := x.eng.Audit.Pick(ctx, tenant, upto, lookAt, wanted)
		if err != nil {
			return false, err
		}
		for i := range events {
			if err := d.take(ctx, &events[i]); ctx.Err() != nil {
				return false, ctx.Err()
			} else if err != nil { // what can't be read now won't be later
				x.failed(fmt.Errorf("make spans of %s: %w", events[i].EventID, err))
			}
		}
		if seen == upto {
			break
		}
		upto = seen
	}
	for spans := d.spans; len(spans) > 0; {
		n := min(len(spans), x.to.Batch)
		if err := x.deliver(ctx, spans[:n], once); err != nil {
			return false, err
		}
		spans = spans[n:]
	}
	x.cursors[tenant] = upto
	return upto > at, nil
}

// deliver sends a batch until the collector has it or will not have it.
func (x *Exporter) deliver(ctx context.Context, batch []*tracepb.Span, once bool) error {
	for tries := 0; ; tries++ {
		rejected, err := x.send.send(ctx, batch)
		if err == nil {
			x.figures.rejected.Add(rejected)
			x.figures.exported.Add(max(0, int64(len(batch))-rejected))
			x.mark(false)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		x.failed(err)
		x.mark(true)
		if errors.As(err, new(refused)) {
			x.figures.rejected.Add(int64(len(batch)))
			return nil
		}
		if once {
			return err
		}
		if core.Within(ctx.Done(), wait(err, tries)) {
			return ctx.Err()
		}
	}
}

// mark notes whether the collector can be reached.
func (x *Exporter) mark(failing bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failing = failing
}

func (x *Exporter) failed(err error) {
	x.figures.failures.Add(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last = err.Error()
}
