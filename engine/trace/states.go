package trace

import (
	"context"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/tree"
)

// keep begins to keep the states before a call, or at the end with "", as they are
// at this place of the record. They are taken in the order of the calls, beside what
// else goes on: await waits for them. begun says that the call has begun already.
func (o *run) keep(ctx context.Context, begun bool, call string) {
	at, err := o.r.Resources.Position(context.WithoutCancel(ctx), o.tenant)
	if err != nil {
		o.note(err)
		return
	}
	o.mu.Lock()
	during, before, done := begun || len(o.calls) > 0, o.kept, make(chan struct{})
	o.kept = done
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
		o.note(o.r.Resources.Keep(o.life, o.tenant, o.agent, at, during))
		marked.Wait()
	}()
}

// await waits until the states before all calls so far are kept, or their time is over.
func (o *run) await() {
	o.mu.Lock()
	kept := o.kept
	o.mu.Unlock()
	if kept != nil {
		<-kept
	}
}

// mark keeps the state of the agent's tree before a call. One that takes too long is
// told once, and left for the rest of the run.
func (o *run) mark(call string) {
	o.mu.Lock()
	left := o.left
	o.mu.Unlock()
	if left {
		return
	}
	limited, stop := context.WithTimeout(o.life, resource.Patience)
	defer stop()
	err := o.r.Trees.Mark(limited, o.tenant, o.agent, tree.MarkCall+call)
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
func (o *run) shown(since time.Time) (over func()) {
	what, ended := "the states of what "+o.agent+" may write", make(chan struct{})
	go func() {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		reported := false
		defer func() {
			if reported {
				o.r.Health.Clear(o.tenant, "states", what)
			}
		}()
		var dead <-chan struct{} // what is copied on ends with the run
		for going := ended; ; {
			select {
			case <-going:
				going, dead = nil, o.life.Done()
			case <-second.C:
			case <-dead:
				return
			}
			done, all := o.r.Resources.Copying(o.life, o.tenant, o.agent)
			if going == nil && (all == 0 || !reported) {
				return
			}
			how := "since " + since.UTC().Format(time.TimeOnly)
			if all > 0 {
				how += fmt.Sprintf(", %d of %d files are copied", done, all)
			}
			reported = true
			o.r.Health.Report(o.tenant, "states", what, fmt.Errorf("are being kept before its call, %s", how))
		}
	}()
	return func() { close(ended) }
}
