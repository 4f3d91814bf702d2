package cell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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

// set changes who wants the cell frozen, makes it so, and says word.
func (i *initial) set(change func(), word string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
	want := i.paused || i.orphan || i.silent
	var err error
	if want {
		i.still.Store(true)
		err = i.freeze()
	} else if i.still.Load() {
		i.still.Store(false)
		i.thaw()
	}
	if word == "" {
		return
	}
	m := message{Kind: word}
	if err != nil {
		m.Error = err.Error()
	}
	_ = send(controlFile, m, -1)
}

// signal sends a signal to every process of the cell but this.
func (i *initial) signal(sig syscall.Signal) {
	if i.order.Spaces {
		_ = unix.Kill(-1, sig)
		return
	}
	for _, p := range descendants(os.Getpid()) {
		p.send(sig)
	}
}

// freezePatience is how long the kernel may take to stop a process.
const freezePatience = 1500 * time.Millisecond

// freeze stops all of the cell. In a name space of its own one call reaches
// every process, those that are just being made too; elsewhere it is repeated
// until no new ones appear.
func (i *initial) freeze() error {
	calm := 0
	for deadline := time.Now().Add(freezePatience); ; time.Sleep(time.Millisecond) {
		i.signal(unix.SIGSTOP)
		moving := i.moving()
		switch {
		case len(moving) > 0:
			calm = 0
		case calm == 1 || i.order.Spaces:
			return nil
		default:
			calm++
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not stopped: %s", describe(moving))
		}
	}
}

// moving are the processes that do not stand still.
func (i *initial) moving() []proc {
	if i.blind {
		return nil
	}
	all := descendants(os.Getpid())
	stopped := map[int]bool{}
	for _, p := range all {
		stopped[p.Parent] = stopped[p.Parent] || p.Stopped()
	}
	return slices.DeleteFunc(all, func(p proc) bool {
		return p.Dead() || frozen(p.PID) || p.State == 'D' && stopped[p.PID] && stopPending(p.PID)
	})
}

// thaw lets the cell go on: children first, so that a shell with job control
// does not take them for stopped jobs.
func (i *initial) thaw() {
	if i.blind {
		i.signal(unix.SIGCONT)
		return
	}
	all := descendants(os.Getpid())
	slices.Reverse(all)
	for _, p := range all {
		p.send(unix.SIGCONT)
	}
}
