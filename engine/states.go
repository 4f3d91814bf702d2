package engine

import (
	"context"
	"errors"
	"sync"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

// observer records what agents do, and keeps the states of what they work on
// before each tool call, so that a fork finds them as they were.
type observer struct {
	recorder
	e *Engine
}

var _ fleet.Observer = observer{}

// Began implements fleet.Observer. Without the states a run is recorded all
// the same: what is lacking is told at its end.
func (o observer) Began(ctx context.Context, a fleet.Agent, t task.Task, message string) (fleet.Observed, error) {
	err := o.e.Resources.Begin(ctx, t.TenantID, a.Name)
	seen, bad := o.recorder.Began(ctx, a, t, message)
	if bad != nil {
		return nil, bad
	}
	return &observing{Observed: seen, e: o.e, tenant: t.TenantID, agent: a.Name, open: map[string]bool{}, err: err}, nil
}

// observing is one run.
type observing struct {
	fleet.Observed
	e             *Engine
	tenant, agent string

	mu   sync.Mutex
	open map[string]bool // calls that may be having their effect
	err  error           // what was not kept
}

// Event implements fleet.Observed.
func (o *observing) Event(ctx context.Context, e fleet.Event) {
	switch e.Type {
	case "tool_request", "tool_call": // one that was not asked for may have begun
		o.keep(ctx, e.Type == "tool_call")
		o.calls(e, true)
	case "tool_result":
		o.calls(e, false)
	}
	o.Observed.Event(ctx, e)
}

// Answered implements fleet.Observed.
func (o *observing) Answered(ctx context.Context, e fleet.Event, a fleet.ToolAnswer) {
	if a.Decision != "approve" {
		o.calls(e, false)
	}
	o.Observed.Answered(ctx, e, a)
}

// Ended implements fleet.Observed.
func (o *observing) Ended(ctx context.Context, out task.Outcome) error {
	o.keep(ctx, false)
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(o.Observed.Ended(ctx, out), o.err)
}

func (o *observing) calls(e fleet.Event, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if open {
		o.open[callOf(e)] = true
	} else {
		delete(o.open, callOf(e))
	}
}

func (o *observing) keep(ctx context.Context, begun bool) {
	o.mu.Lock()
	during := begun || len(o.open) > 0
	o.mu.Unlock()
	err := o.e.Resources.Keep(ctx, o.tenant, o.agent, during)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil && o.err == nil {
		o.err = err
	}
}
