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
		since := time.Now()
		var marked sync.WaitGroup
		if call != "" {
			marked.Go(func() { o.mark(call) })
		}
		o.note(o.r.Resources.Keep(o.life, o.tenant, o.agent, at, during))
		marked.Wait()
		go o.copiedOn(since)
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

// copiedOn shows that states are still being copied, which calls no longer wait for, until
// they are there.
func (o *run) copiedOn(since time.Time) {
	what, second := "the states of what "+o.agent+" may write", time.NewTicker(time.Second)
	defer second.Stop()
	for reported := false; ; reported = true {
		done, all := o.r.Resources.Copying(o.life, o.tenant, o.agent)
		if all == 0 || o.life.Err() != nil {
			if reported {
				o.r.Health.Clear(o.tenant, "states", what)
			}
			return
		}
		o.r.Health.Report(o.tenant, "states", what, fmt.Errorf("are being kept before its call, since %s, %d of %d files are copied",
			since.UTC().Format(time.TimeOnly), done, all))
		select {
		case <-second.C:
		case <-o.life.Done():
		}
	}
}
