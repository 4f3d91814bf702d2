package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"swarmdeck/engine/dag"
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
	err := errors.Join(o.e.Resources.Begin(ctx, t.TenantID, a.Name), o.e.Trees.Mark(ctx, t.TenantID, a.Name, t.TaskID))
	seen, bad := o.began(ctx, a, t, message)
	if bad != nil {
		return nil, bad
	}
	return &observing{
		recording: seen, e: o.e, tenant: t.TenantID, agent: a.Name, open: map[string]bool{}, err: err,
		watch: o.e.watching(ctx, t.TenantID, a.Name),
	}, nil
}

// observing is one run.
type observing struct {
	*recording
	e             *Engine
	tenant, agent string

	looking sync.Mutex
	watch   *watch
	acting  []string       // calls that are carried out
	marks   sync.WaitGroup // states of the agent's tree that are being taken

	mu   sync.Mutex
	open map[string]bool // calls that may be having their effect
	err  error           // what was not kept
}

// wrote tells what changed on disk meanwhile: by the calls that are carried out and
// those named, or else by the run. Then one call more is carried out, or one less.
func (o *observing) wrote(ctx context.Context, begins, ends string, also ...string) {
	ctx = context.WithoutCancel(ctx) // it has happened
	o.looking.Lock()
	defer o.looking.Unlock()
	changed, more, failed := o.watch.next(ctx)
	for _, why := range failed {
		_ = o.run.Said(ctx, dag.ListFiles, dag.RoleTool, why)
	}
	_ = o.run.Changed(ctx, slices.Concat(o.acting, also), changed, more)
	if begins != "" && !slices.Contains(o.acting, begins) && len(o.acting) < maxActing {
		o.acting = append(o.acting, begins)
	}
	o.acting = slices.DeleteFunc(o.acting, func(call string) bool { return call == ends })
}

// maxActing bounds the calls of which it is known that they are carried out.
const maxActing = 1000

// Event implements fleet.Observed.
func (o *observing) Event(ctx context.Context, e fleet.Event) {
	switch e.Type {
	case "tool_request", "tool_call": // one that was not asked for may have begun
		o.keep(ctx, e.Type == "tool_call")
		o.marks.Go(func() { o.note(o.e.Trees.Mark(ctx, o.tenant, o.agent, e.CallID)) })
		o.calls(e, true)
	case "tool_result":
		o.calls(e, false)
	}
	unknown := !o.run.Known(callOf(e))
	o.recording.Event(ctx, e)
	switch {
	case e.Type == "tool_call":
		o.wrote(ctx, callOf(e), "")
	case e.Type == "tool_result" && unknown && e.Tool != "": // all is told of it at once
		o.wrote(ctx, "", callOf(e), callOf(e))
	case e.Type == "tool_result":
		o.wrote(ctx, "", callOf(e))
	}
}

// Answered implements fleet.Observed.
func (o *observing) Answered(ctx context.Context, e fleet.Event, a fleet.ToolAnswer) {
	o.marks.Wait() // taken while a person was asked, and before the effect
	if a.Decision != "approve" {
		o.calls(e, false)
		o.recording.Answered(ctx, e, a)
		return
	}
	o.recording.Answered(ctx, e, a)
	o.wrote(ctx, callOf(e), "")
}

// Ended implements fleet.Observed.
func (o *observing) Ended(ctx context.Context, out task.Outcome) error {
	o.keep(ctx, false)
	o.wrote(ctx, "", "")
	o.marks.Wait()
	overlap, err := o.e.Trees.Ended(context.WithoutCancel(ctx), o.tenant, o.agent)
	o.note(err)
	o.e.overlap(o.tenant, o.agent, overlap)
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(o.recording.Ended(ctx, out), o.err)
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
	o.note(o.e.Resources.Keep(ctx, o.tenant, o.agent, during))
}

// note keeps the first thing that was not kept.
func (o *observing) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil && o.err == nil {
		o.err = err
	}
}
