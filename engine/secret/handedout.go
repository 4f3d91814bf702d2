package secret

import (
	"maps"
	"sync"
	"sync/atomic"
)

// handedOut remembers the values that were opened for somebody, so that the
// program's own log can be kept free of them.
type handedOut struct {
	mu     sync.Mutex
	values map[string]string // "TENANT/NAME"; what one was before it was set anew is "TENANT/NAME (old)"
	mask   atomic.Pointer[Mask]
}

// add takes opened values over.
func (g *handedOut) add(tenant string, values map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := maps.Clone(g.values)
	if next == nil {
		next = map[string]string{}
	}
	for name, value := range values {
		at := tenant + "/" + name
		if was, ok := next[at]; ok && was != value {
			next[at+" (old)"] = was
		}
		next[at] = value
	}
	if maps.Equal(next, g.values) {
		return
	}
	g.values = next
	g.mask.Store(NewMask(next))
}

// Masked is text without the values that were opened since the start.
func (s *Secrets) Masked(text string) string { return s.out.mask.Load().String(text) }
