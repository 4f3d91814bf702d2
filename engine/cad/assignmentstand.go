package cad

import (
	"context"

	"swarmdeck/engine/core"
)

// stand is whether an assignment is to stand still, and whether it does.
type stand struct {
	core.Condition

	held bool // it is to stand still
	busy bool // an operation is under way, or an agent is
}

// enter waits until it need not stand still, and is busy from then on.
func (s *stand) enter(ctx context.Context) error {
	return s.Until(ctx, func() bool {
		s.busy = s.busy || !s.held
		return !s.held
	})
}

func (s *stand) leave() { s.Change(func() { s.busy = false }) }

// standing is Questions' view of it.
func (s *stand) standing() (held bool, moved <-chan struct{}) {
	moved = s.Look(func() { held = s.held })
	return held, moved
}

// hold has it stand still from now on; an operation that has begun ends first.
func (s *stand) hold() { s.Change(func() { s.held = true }) }

func (s *stand) resume() { s.Change(func() { s.held = false }) }

func (s *stand) working() (busy bool) {
	s.Look(func() { busy = s.busy })
	return busy
}
