package core

import (
	"context"
	"sync"
)

// Condition guards state that others wait for to change. Its zero value is
// ready. The functions that it is given run one at a time and must not call it.
type Condition struct {
	mu    sync.Mutex
	moved chan struct{} // closed at the next change; nil while nobody asked for it
}

// Change does something to the state and wakes whoever waits.
func (c *Condition) Change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
}

// Look reads the state. The channel is closed at the next change.
func (c *Condition) Look(at func()) (moved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at()
	if c.moved == nil {
		c.moved = make(chan struct{})
	}
	return c.moved
}

// Until waits until ok answers true; its error is the cause of ctx's end before
// that. As it answers true, ok may take what it waited for: that wakes nobody.
func (c *Condition) Until(ctx context.Context, ok func() bool) error {
	for {
		met := false
		moved := c.Look(func() { met = ok() })
		if met {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
