package modelproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"
	"sync/atomic"

	"swarmdeck/drivers/sse"
	"swarmdeck/engine/core"
)

// run is what the lines of an agent's run have in common.
type run struct {
	open chan struct{} // a token for each request
	all  *atomic.Int64 // bytes that are held, of all agents
	held atomic.Int64  // and of this one
}

func (p *Proxy) run() *run { return &run{open: make(chan struct{}, maxOpen), all: &p.held} }

// hold is what one body takes of its run's share.
type hold struct {
	of *run
	n  int64
}

// grow makes it hold a body of that size, if there is room for that.
func (h *hold) grow(size int) bool {
	n := int64(size-small) - h.n
	if n <= 0 {
		return true
	}
	if h.of.held.Add(n) > maxShare {
		h.of.held.Add(-n)
		return false
	}
	if h.of.all.Add(n) > maxHeld {
		h.of.held.Add(-n)
		h.of.all.Add(-n)
		return false
	}
	h.n += n
	return true
}

// drop gives all of it back.
func (h *hold) drop() {
	if h.n > 0 {
		h.of.held.Add(-h.n)
		h.of.all.Add(-h.n)
		h.n = 0
	}
}

// events finds those of a stream. One that is longer than a whole answer may be,
// or for which there is no room, is missed.
func (h *hold) events(event func(name string, data []byte), missed func(size int)) *sse.Events {
	return &sse.Events{Most: maxWhole, Room: h.grow, Free: h.drop, Missed: missed, Event: func(name string, data []byte) {
		if len(data) > 0 {
			event(name, data)
		}
	}}
}

// capture keeps a body up to its bound, and counts all of it.
type capture struct {
	most int
	sum  hash.Hash // of all

	mu   sync.Mutex
	hold hold
	size int64
	data []byte
	lost bool
}

func (r *run) capture(most int) *capture {
	return &capture{most: most, sum: sha256.New(), hold: hold{of: r}}
}

func (c *capture) write(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += int64(len(b))
	c.sum.Write(b)
	if n := len(c.data) + len(b); c.lost || n > c.most || !c.hold.grow(n) {
		c.lose()
		return
	}
	c.data = append(c.data, b...)
}

// lose gives back what was kept; mu is held.
func (c *capture) lose() {
	c.hold.drop()
	c.data, c.lost = nil, true
}

// plain is a body that came in that encoding, or why it is not known.
func (c *capture) plain(encoding string) (data []byte, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case encoding != "" && encoding != "identity":
		return nil, "encoded as " + core.ClipTo(encoding, 40)
	case c.lost:
		return nil, "too long to be kept"
	}
	return c.data, ""
}

// instead stands for a body that can't be kept.
func (c *capture) instead(why string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("(%d bytes, sha256 %s, %s)", c.size, hex.EncodeToString(c.sum.Sum(nil)), why)
}

// drop gives back what was kept.
func (c *capture) drop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose()
}
