package task

import (
	"sync"

	"swarmdeck/engine/audit"
)

// heads remembers the headers of live tasks as the last commit left them, so
// that the three transitions of a task decode none. A transaction that writes a
// header forgets it first, and its commit remembers the new one: what is
// remembered is what any writing transaction would read.
type heads struct {
	mu sync.Mutex
	m  map[headKey]*Task // never changed
}

type headKey struct {
	tenant string
	seq    uint64
}

// maxHeads bounds the memory: about 12 MB when full.
const maxHeads = 16 << 10

// put remembers a committed header; t must not be changed any more.
func (h *heads) put(t *Task, seq uint64) {
	key := headKey{t.TenantID, seq}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.Status.Terminal() { // another transaction of this commit may have put it
		delete(h.m, key)
		return
	}
	if h.m == nil || len(h.m) >= maxHeads {
		h.m = make(map[headKey]*Task, 256)
	}
	h.m[key] = t
}

// forget is called by a transaction before it writes a header.
func (h *heads) forget(tenant string, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.m, headKey{tenant, seq})
}

// committed is a header as of the last commit, nil when it is not remembered.
func (h *heads) committed(tenant string, seq uint64) *Task {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.m[headKey{tenant, seq}]
}

// load is a header as a transaction has it, nil when it is to be read.
func (h *heads) load(tx *audit.Tx, seq uint64) *Task {
	if tx.ReadOnly() { // it may be of an earlier commit
		return nil
	}
	return h.committed(tx.Tenant(), seq)
}
