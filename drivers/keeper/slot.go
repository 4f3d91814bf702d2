package keeper

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"swarmdeck/engine/core"
)

// An agent has one slot for the prompt that it works on. Each runtime has a type of its
// own for that. What is done with the slot takes its lock, which is the agent's.

// turn is a runtime's own, around a Turn.
type turn interface {
	comparable
	Base() *Turn
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
	var none T
	lock.Lock()
	t := *slot
	lock.Unlock()
	if t != none {
		t.Base().End(ByCancel, ByCancel.String())
	}
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
