package exec

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// pausePatience bounds Pause and Resume: the emergency stop answers within
// 2 s, whatever one process does.
const pausePatience = 2 * time.Second

// Pause stops every process of the run with SIGSTOP, which can't be caught.
// It returns nil once every thread of each one stands still, after looking
// twice; otherwise, within 2 s or at ctx's end, an error that names those
// which still move. It does not undo what it stopped then.
func (p *Process) Pause(ctx context.Context) error {
	p.mu.Lock()
	p.paused = true
	p.mu.Unlock()
	calm := 0
	return p.settle(ctx, "pause", func(tree []proc) (moving []proc) {
		stopped := map[int]bool{}
		for _, q := range tree {
			stopped[q.ppid] = stopped[q.ppid] || q.stopped()
		}
		for _, q := range tree {
			if q.dead() || frozen(q.pid) || q.state == 'D' && stopped[q.pid] && stopPending(q.pid) {
				continue
			}
			moving = append(moving, q)
			if !q.stopped() {
				q.send(unix.SIGSTOP)
			}
		}
		if len(moving) > 0 {
			calm = 0
			return moving
		}
		// What forked during the first look shows in the second.
		if calm++; calm < 2 {
			return tree
		}
		return nil
	})
}

// Resume continues every process of the run. Children go first, so that a
// shell with job control does not take them for stopped jobs.
func (p *Process) Resume(ctx context.Context) error {
	p.mu.Lock()
	p.paused = false
	p.mu.Unlock()
	first := true
	return p.settle(ctx, "resume", func(tree []proc) (still []proc) {
		slices.Reverse(tree)
		for _, q := range tree {
			if q.stopped() {
				still = append(still, q)
			}
			if first || q.stopped() {
				q.send(unix.SIGCONT) // drops a stop that is still pending too
			}
		}
		first = false
		return still
	})
}

// settle repeats a step over the run's tree until it reports none that
// remains to be done.
func (p *Process) settle(ctx context.Context, what string, step func([]proc) []proc) error {
	ctx, cancel := context.WithTimeout(ctx, pausePatience)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		p.mu.Lock()
		stopping := p.stopping
		p.mu.Unlock()
		if stopping || p.reaped() {
			return core.Errorf(core.Conflict, "%s run %s: it is ending", what, p.mark)
		}
		rest := step(p.tree())
		if len(rest) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s run %s: not in effect for process %s: %w", what, p.mark, describe(rest), ctx.Err())
		case <-time.After(wait):
		}
	}
}
