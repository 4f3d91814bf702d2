//go:build linux

package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"swarmdeck/drivers/otlp"
	"swarmdeck/engine"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/socket"
)

// tracing is how the engine's work is told to a collector. The zero value
// tells nothing.
type tracing struct {
	*otlp.Exporter
	host string
	err  error // why nothing is told although the environment names a collector
}

// trace tells a collector what an engine does, where OpenTelemetry's variables
// name one. A variable that means nothing here is no reason to do no work: it
// is for all programs of this user.
func (h *instance) trace(ctx context.Context, need command.Need, eng *engine.Engine) error {
	to, err := otlp.FromEnvironment(os.Getenv)
	if to == nil || err != nil {
		h.tracing.Store(&tracing{err: err})
		return nil
	}
	x, err := otlp.Follow(ctx, eng, to, programVersion(), socket.Instance(h.beside(need.Data)))
	if err != nil {
		return fmt.Errorf("trace the engine: %w", err)
	}
	h.tracing.Store(&tracing{Exporter: x, host: to.Host})
	h.closers = append(h.closers, x.Close)
	return nil
}

// programVersion is the version that this program was built as.
func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// tracings are those of several engines.
type tracings []*tracing

// say tells who starts a service where its traces go.
func (all tracings) say(w io.Writer) {
	for _, t := range all {
		switch {
		case t == nil:
			continue
		case t.err != nil:
			fmt.Fprintf(w, "swarmdeck: no traces: %v\n", t.err)
		case t.Exporter != nil:
			fmt.Fprintf(w, "sending traces to %s\n", t.host)
		default:
			continue
		}
		return // the others do the same
	}
}

// write writes what became of the spans in the text format of Prometheus.
func (all tracings) write(w io.Writer) {
	var f otlp.Figures
	some := false
	for _, t := range all {
		if t != nil && t.Exporter != nil {
			one := t.Figures()
			f.Exported, f.Rejected, f.Failures, f.Skipped = f.Exported+one.Exported, f.Rejected+one.Rejected, f.Failures+one.Failures, f.Skipped+one.Skipped
			some = true
		}
	}
	if !some {
		return
	}
	fmt.Fprint(w, "# HELP swarmdeck_trace_spans_total Spans by what became of them.\n# TYPE swarmdeck_trace_spans_total counter\n")
	fmt.Fprintf(w, "swarmdeck_trace_spans_total{result=\"exported\"} %d\nswarmdeck_trace_spans_total{result=\"rejected\"} %d\n", f.Exported, f.Rejected)
	fmt.Fprintf(w, "# HELP swarmdeck_trace_failures_total Requests to the collector that failed.\n# TYPE swarmdeck_trace_failures_total counter\nswarmdeck_trace_failures_total %d\n", f.Failures)
	fmt.Fprintf(w, "# HELP swarmdeck_trace_events_skipped_total Events that no span was made of because the collector was behind.\n# TYPE swarmdeck_trace_events_skipped_total counter\nswarmdeck_trace_events_skipped_total %d\n", f.Skipped)
}
