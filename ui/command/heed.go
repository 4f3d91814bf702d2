package command

import (
	"context"
	"errors"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/health"
	"swarmdeck/store"
)

// How long a line waits for a disk that is full, or a database that does not answer, and
// then for what it began to end: it answers within 10 s.
const (
	stuckPatience = 6 * time.Second
	stuckEnd      = time.Second
)

// heed does what a line is about until that has ended, or can't as the state can't be
// reached or, where it waits for work, written: that is then why the line ends. What it
// began is left to itself.
func heed(c *call, do func() error) error {
	if c.env.Stuck == nil {
		return do()
	}
	ctx, end := context.WithCancelCause(c.ctx)
	defer end(nil)
	c.ctx = ctx
	done := make(chan error, 1)
	go func() { done <- health.Caught(do) }()
	tick := time.NewTicker(stuckPatience / 20)
	defer tick.Stop()
	for began := time.Now(); ; {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		since, why := c.env.Stuck()
		if why == nil || min(time.Since(began), time.Since(since)) < stuckPatience || errors.Is(why, store.ErrFull) && !c.waits.Load() {
			continue
		}
		end(why)
		select {
		case <-done:
		case <-time.After(stuckEnd):
		}
		return audit.AsFull(why)
	}
}
