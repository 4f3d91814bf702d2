package cell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/core"
)

// pausePatience bounds Pause and Resume: the emergency stop answers within
// 2 s, whatever one process does.
const pausePatience = 2 * time.Second

// Pause makes every process of the run stand still, by its cgroup or else by a
// signal that can't be caught. It returns nil once all do; otherwise, within 2 s
// or at ctx's end, an error that names those which still move. It does not undo
// what it stopped then.
func (p *Process) Pause(ctx context.Context) error {
	p.mu.Lock()
	p.paused = true
	p.mu.Unlock()
	return p.settle(ctx, "pause", true)
}

// Resume lets every process of the run go on.
func (p *Process) Resume(ctx context.Context) error {
	p.mu.Lock()
	p.paused = false
	p.mu.Unlock()
	return p.settle(ctx, "resume", false)
}

func (p *Process) settle(ctx context.Context, what string, still bool) error {
	ctx, cancel := context.WithTimeout(ctx, pausePatience)
	defer cancel()
	over := func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.stopping || p.Ended() {
			return core.Errorf(core.Conflict, "%s run %s: it is ending", what, p.run)
		}
		return nil
	}
	if err := over(); err != nil {
		return err
	}
	err := ctx.Err()
	if err == nil {
		err = p.freeze(ctx, still)
	}
	if err == nil {
		return over()
	}
	if ended := over(); ended != nil {
		return ended
	}
	return fmt.Errorf("%s run %s: not in effect: %w", what, p.run, err)
}

// freeze makes the run stand still or go on, one call at a time.
func (p *Process) freeze(ctx context.Context, still bool) error {
	select {
	case p.freezing <- struct{}{}:
		defer func() { <-p.freezing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.group != nil {
		select {
		case <-p.apart:
			return p.group.freeze(ctx, still)
		case <-p.gone:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w, want := wish{Kind: wishResume}, saidResumed
	if still {
		w, want = wish{Kind: wishPause}, saidPaused
	}
	p.tell(w)
	for {
		select {
		case m := <-p.settled:
			switch {
			case m.Kind != want: // to an earlier wish, which nobody waited for
			case m.Error != "":
				return errors.New(m.Error)
			default:
				return nil
			}
		case <-p.gone:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
