package keeper

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"swarmdeck/engine/core"
)

// An agent has one slot for the prompt that it works on and one for the process that
// works. Each runtime has types of its own for them. What is done with a slot takes
// its lock, which is the agent's.

// turn is a runtime's own, around a Turn.
type turn interface {
	comparable
	Base() *Turn
}

// process is a runtime's own.
type process interface {
	comparable
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// held is what is in a slot now; is says that there is something.
func held[T comparable](lock sync.Locker, slot *T) (now T, is bool) {
	var none T
	lock.Lock()
	defer lock.Unlock()
	return *slot, *slot != none
}

// Take puts a prompt into the slot, unless the agent can't take it: then it is over.
func Take[T turn](k *Keeper, lock sync.Locker, slot *T, t T) error {
	var none T
	var now *Turn
	lock.Lock()
	defer lock.Unlock()
	if *slot != none {
		now = (*slot).Base()
	}
	err := k.Takes(now)
	if err != nil {
		t.Base().Cancel()
		return err
	}
	*slot = t
	return nil
}

// Interrupt ends the prompt in the slot.
func Interrupt[T turn](lock sync.Locker, slot *T) {
	if t, is := held(lock, slot); is {
		t.Base().End(ByCancel, ByCancel.String())
	}
}

// Pause pauses an agent and the process in the slot. One without is paused by being
// told: what is begun then waits for Resume.
func Pause[P process](ctx context.Context, k *Keeper, lock sync.Locker, slot *P) error {
	var none P
	lock.Lock()
	if k.IsClosed() {
		lock.Unlock()
		return ErrClosed
	}
	k.Pause()
	p := *slot
	lock.Unlock()
	if p == none {
		return nil
	}
	return p.Pause(ctx)
}

// Resume lets the process in the slot go on, and then what waited for the agent.
func Resume[P process](ctx context.Context, k *Keeper, lock sync.Locker, slot *P) error {
	if p, is := held(lock, slot); is {
		if err := p.Resume(ctx); err != nil {
			return err
		}
	}
	lock.Lock()
	defer lock.Unlock()
	k.Resume()
	return nil
}

// UnlessOver forgives the conflict of pausing or resuming a process that is
// ending, once it has ended: then nothing of it runs.
func UnlessOver(ctx context.Context, ended <-chan struct{}, err error) error {
	if !errors.Is(err, core.Kind(core.Conflict)) {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the process to end: %w", ctx.Err())
	}
}

// Ended has a process stopped and waits until it has ended with nothing left of it.
func Ended(ctx context.Context, stop func() error, ended <-chan struct{}) error {
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
