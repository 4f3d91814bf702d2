package acp

import (
	"sync"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/core"
)

// item is one thing that came for a session: an update, a request, or a mark
// that tells when everything before it has been dealt with.
type item struct {
	update  core.Raw
	request *jsonrpc.Request
	mark    chan struct{}
}

func (it item) size() int {
	n := 64 + len(it.update) // each costs something
	if it.request != nil {
		n += len(it.request.Params)
	}
	return n
}

// maxInbox bounds, in bytes, what waits for a log that falls behind. Past it
// the process is not read from, which slows it; nothing is lost.
const (
	maxInbox      = 32 << 20
	maxInboxItems = 50_000
)

// inbox keeps what came for a session in its order.
type inbox struct {
	mu     sync.Mutex
	moved  *sync.Cond
	items  []item
	bytes  int
	closed bool
}

func newInbox() *inbox {
	b := &inbox{}
	b.moved = sync.NewCond(&b.mu)
	return b
}

// put adds an item; it waits only past the bounds. False when it is closed.
func (b *inbox) put(it item) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.closed && (b.bytes > maxInbox || len(b.items) >= maxInboxItems) {
		b.moved.Wait()
	}
	if b.closed {
		return false
	}
	b.items = append(b.items, it)
	b.bytes += it.size()
	b.moved.Broadcast()
	return true
}

// take waits for the next item; false when the inbox is closed and empty.
func (b *inbox) take() (item, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.items) == 0 && !b.closed {
		b.moved.Wait()
	}
	if len(b.items) == 0 {
		return item{}, false
	}
	it := b.items[0]
	b.items = b.items[1:]
	b.bytes -= it.size()
	b.moved.Broadcast()
	return it, true
}

// close lets take empty it and then end.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.moved.Broadcast()
}
