package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tree"
)

// observer records what agents do, and keeps the states of what they work on
// before each tool call, so that a fork finds them as they were.
type observer struct {
	recorder
	e *Engine
}

var (
	_ fleet.Observer   = observer{}
	_ fleet.Overhearer = observer{}
)

// Began implements fleet.Observer. Without the states a run is recorded all
// the same: what is lacking is told at its end.
func (o observer) Began(ctx context.Context, a fleet.Agent, t task.Task, message string) (fleet.Observed, error) {
	err := errors.Join(o.e.Resources.Begin(ctx, t.TenantID, a.Name), o.e.Trees.Mark(ctx, t.TenantID, a.Name, tree.MarkTask+t.TaskID))
	seen, bad := o.began(ctx, a, t, message)
	if bad != nil {
		return nil, bad
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	return &observing{
		recording: seen, e: o.e, life: life, stop: stop, tenant: t.TenantID, agent: a.Name, open: map[string]bool{}, err: err,
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
	acting  []string        // calls that are carried out
	life    context.Context // of what is kept: until its end
	stop    context.CancelFunc

	mu   sync.Mutex
	open map[string]bool // calls that may be having their effect
	turn chan struct{}   // closed when all states so far are kept, or will not be; nil before the first
	left bool            // states of its tree are not taken any more
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
		o.run.Said(dag.ListFiles, dag.RoleTool, why)
	}
	o.run.Changed(slices.Concat(o.acting, also), changed, more)
	paths := core.Map(changed, func(f dag.File) string { return f.Path })
	overlap, looked, err := o.e.Trees.Wrote(ctx, o.tenant, o.agent, paths)
	if looked {
		o.e.overlap(o.tenant, o.agent, overlap)
	}
	o.note(err)
	if begins != "" && !slices.Contains(o.acting, begins) && len(o.acting) < maxActing {
		o.acting = append(o.acting, begins)
	}
	o.acting = slices.DeleteFunc(o.acting, func(call string) bool { return call == ends })
}

// maxActing bounds the calls of which it is known that they are carried out.
const maxActing = 1000

func (o *observing) Event(ctx context.Context, e fleet.Event) {
	switch e.Type {
	case "tool_request", "tool_call": // one that was not asked for may have begun
		o.keep(ctx, e.Type == "tool_call", e.CallID)
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

func (o *observing) Answered(ctx context.Context, e fleet.Event, a fleet.ToolAnswer) {
	if a.Decision != "approve" {
		o.calls(e, false)
		o.recording.Answered(ctx, e, a)
		return
	}
	o.kept() // while somebody was asked, and before the effect
	o.recording.Answered(ctx, e, a)
	o.wrote(ctx, callOf(e), "")
}

func (o *observing) Ended(ctx context.Context, out task.Outcome) error {
	defer o.stop()
	o.keep(ctx, false, "")
	o.kept()
	o.wrote(ctx, "", "")
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

// keep begins to keep the states before a call, or at the end with "", as they are
// at this place of the record. They are taken in the order of the calls, beside what
// else goes on: kept waits for them.
func (o *observing) keep(ctx context.Context, begun bool, call string) {
	at, err := o.e.Resources.Position(context.WithoutCancel(ctx), o.tenant)
	if err != nil {
		o.note(err)
		return
	}
	o.mu.Lock()
	during, before, done := begun || len(o.open) > 0, o.turn, make(chan struct{})
	o.turn = done
	o.mu.Unlock()
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		defer o.shown(time.Now())()
		var marked sync.WaitGroup
		if call != "" {
			marked.Go(func() { o.mark(call) })
		}
		o.note(o.e.Resources.Keep(o.life, o.tenant, o.agent, at, during))
		marked.Wait()
	}()
}

// kept waits until the states before all calls so far are kept, or their time is over.
func (o *observing) kept() {
	o.mu.Lock()
	turn := o.turn
	o.mu.Unlock()
	if turn != nil {
		<-turn
	}
}

// mark keeps the state of the agent's tree before a call. One that takes too long is
// told once, and left for the rest of the run.
func (o *observing) mark(call string) {
	o.mu.Lock()
	left := o.left
	o.mu.Unlock()
	if left {
		return
	}
	limited, stop := context.WithTimeout(o.life, resource.Patience)
	defer stop()
	err := o.e.Trees.Mark(limited, o.tenant, o.agent, tree.MarkCall+call)
	if limited.Err() != nil && o.life.Err() == nil {
		err = core.Errorf(core.Unavailable, "the tree of %s is not kept before each call any more: it takes longer than %v", o.agent, resource.Patience)
		o.mu.Lock()
		o.left = true
		o.mu.Unlock()
	}
	o.note(err)
}

// shown shows that states are being kept where that takes longer than a second, until
// what it returns is called, and while one is copied on after that.
func (o *observing) shown(since time.Time) (over func()) {
	what := "the states of what " + o.agent + " may write"
	ended, told := make(chan struct{}), make(chan struct{})
	go func() {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		reported := false
		tell := func(done, all int) {
			how := "since " + since.UTC().Format(time.TimeOnly)
			if all > 0 {
				how += fmt.Sprintf(", %d of %d files are copied", done, all)
			}
			reported = true
			o.e.Health.Report(o.tenant, "states", what, fmt.Errorf("are being kept before its call, %s", how))
		}
		copying := func() (done, all int) { return o.e.Resources.Copying(o.life, o.tenant, o.agent) }
		defer func() {
			if reported {
				o.e.Health.Clear(o.tenant, "states", what)
			}
		}()
		for waited := true; waited; {
			select {
			case <-ended:
				waited = false
			case <-second.C:
				tell(copying())
			}
		}
		close(told)
		for reported {
			done, all := copying()
			if all == 0 {
				return
			}
			tell(done, all)
			select {
			case <-o.life.Done():
				return
			case <-second.C:
			}
		}
	}()
	return func() {
		close(ended)
		<-told
	}
}

// note keeps the first thing that was not kept.
func (o *observing) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil && o.err == nil {
		o.err = err
	}
}
