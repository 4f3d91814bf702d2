package cad

import (
	"context"
	"sync"
)

// stand is whether an assignment is to stand still, and whether it does.
type stand struct {
	mu    sync.Mutex
	moved chan struct{} // closed and replaced whenever something here changes
	held  bool          // it is to stand still
	busy  bool          // an operation is under way, or an agent is
}

func newStand() *stand { return &stand{moved: make(chan struct{})} }

func (s *stand) change(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
	close(s.moved)
	s.moved = make(chan struct{})
}

// until waits for a condition, which is looked at with mu held; then is done
// before mu is given back.
func (s *stand) until(ctx context.Context, ok func() bool, then func()) error {
	for {
		s.mu.Lock()
		if ok() {
			then()
			s.mu.Unlock()
			return nil
		}
		moved := s.moved
		s.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// enter waits until it need not stand still, and is busy from then on.
func (s *stand) enter(ctx context.Context) error {
	return s.until(ctx, func() bool { return !s.held }, func() { s.busy = true })
}

func (s *stand) leave() { s.change(func() { s.busy = false }) }

// standing is Questions' view of it.
func (s *stand) standing() (held bool, moved <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, s.moved
}

// hold has it stand still from now on; an operation that has begun ends first.
func (s *stand) hold() { s.change(func() { s.held = true }) }

func (s *stand) resume() { s.change(func() { s.held = false }) }

func (s *stand) working() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy
}
