package task

import (
	"hash/maphash"
	"sync"

	"swarmdeck/engine/audit"
)

// heads remembers decoded headers of live tasks by the hash of the bytes they
// came from, so that the three transitions of a task decode it at most once. A
// header that changed, in this commit or before, has other bytes: a stale
// entry is never used.
type heads struct {
	seed maphash.Seed
	mu   sync.Mutex
	m    map[headKey]head
}

type headKey struct {
	tenant string
	seq    uint64
}

type head struct {
	sum  uint64
	task *Task // never changed
}

// maxHeads bounds the memory: about 12 MB when full.
const maxHeads = 16 << 10

// sum is what put wants of a header.
func (h *heads) sum(raw []byte) uint64 { return maphash.Bytes(h.seed, raw) }

// put remembers a committed header; t must not be changed any more.
func (h *heads) put(t *Task, seq, sum uint64) {
	key := headKey{t.TenantID, seq}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.Status.Terminal() {
		delete(h.m, key)
		return
	}
	if h.m == nil || len(h.m) >= maxHeads {
		h.m = make(map[headKey]head, 256)
	}
	h.m[key] = head{sum, t}
}

// committed returns the header as of the last commit, if it is remembered.
func (h *heads) committed(tenant string, seq uint64) (Task, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.m[headKey{tenant, seq}]
	if !ok {
		return Task{}, false
	}
	return *e.task, true
}

// load reads a header inside a transaction, if it is remembered and the same
// is stored there.
func (h *heads) load(tx *audit.Tx, seq uint64, t *Task) bool {
	h.mu.Lock()
	e, ok := h.m[headKey{tx.Tenant(), seq}]
	h.mu.Unlock()
	if !ok {
		return false
	}
	raw, err := tx.Get(bTask, keyIn(tx, seq))
	if err != nil || h.sum(raw) != e.sum {
		return false
	}
	*t = *e.task
	return true
}
