package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestWhoWaitsSeesEveryChangeItWaitsFor(t *testing.T) {
	var c core.Condition
	free, turns := true, 0
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := c.Until(t.Context(), func() bool {
				if !free {
					return false
				}
				free = false // one at a time takes it
				return true
			}); err != nil {
				t.Error(err)
			}
			c.Change(func() { free, turns = true, turns+1 })
		})
	}
	all.Wait()
	c.Look(func() {
		expect.True(t, turns == 50 && free, "%d turns, free %v", turns, free)
	})
}

func TestLookTellsOfTheNextChange(t *testing.T) {
	var c core.Condition
	a := c.Look(func() {})
	b := c.Look(func() {})
	select {
	case <-a:
		t.Error("told of a change before there was one")
	default:
	}
	c.Change(func() {})
	<-a
	<-b
	select {
	case <-c.Look(func() {}):
		t.Error("told of a change that is over")
	default:
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c core.Condition
		late := errors.New("late")
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Hour, late)
		defer stop()
		expect.Err(t, c.Until(ctx, func() bool { return false }), late)
		expect.No(t, c.Until(ctx, func() bool { return true }), "what holds already needs no waiting:")
	})
}
