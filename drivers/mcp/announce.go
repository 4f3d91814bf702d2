package mcp

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/core"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Listener is told what servers say of their resources.
type Listener interface {
	// Announced takes in that the list of a server's resources has changed, or
	// that those at uris have.
	Announced(ctx context.Context, tenant, server string, list bool, uris []string) error
}

const (
	// announcePause gathers what a server announces. One that goes on and on is
	// heard less and less, down to once in longestPause.
	announcePause = time.Second
	longestPause  = time.Minute
	announceTime  = 10 * time.Second // that the listener has
	maxAnnounced  = 16               // addresses gathered; from then on the whole list counts as changed
	maxAddress    = 4096             // bytes of one
)

// announced gathers what one server announces.
type announced struct {
	l *link

	mu    sync.Mutex
	list  bool
	uris  map[string]bool
	begun bool // it will be told
	pause time.Duration
	told  time.Time
}

func (a *announced) listChanged(context.Context, *mcp.ResourceListChangedRequest) { a.add("") }

func (a *announced) updated(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
	uri := ""
	if r.Params != nil && len(r.Params.URI) <= maxAddress {
		uri = clean(r.Params.URI)
	}
	a.add(uri)
}

// add notes a change of one address, or with "" of the list.
func (a *announced) add(uri string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case uri == "" || len(a.uris) == maxAnnounced && !a.uris[uri]:
		a.list = true
	case a.uris == nil:
		a.uris = map[string]bool{uri: true}
	default:
		a.uris[uri] = true
	}
	if !a.begun {
		if a.begun = true; time.Since(a.told) > 2*a.pause {
			a.pause = announcePause
		} else {
			a.pause = min(2*a.pause, longestPause)
		}
		go a.tell(a.pause)
	}
}

// tell waits a while and passes on what came until then. What can't be taken
// now is told with the next.
func (a *announced) tell(pause time.Duration) {
	if core.Within(a.l.life.Done(), pause) {
		return
	}
	a.mu.Lock()
	list, uris := a.list, a.uris
	a.list, a.uris, a.begun, a.told = false, nil, false, time.Now()
	a.mu.Unlock()
	heard := a.l.c.listener()
	if heard == nil {
		return
	}
	ctx, stop := context.WithTimeout(a.l.life, announceTime)
	defer stop()
	all := slices.Sorted(maps.Keys(uris))
	if heard.Announced(ctx, a.l.spec.TenantID, a.l.spec.Name, list, all) == nil {
		return
	}
	if list {
		a.add("")
	}
	for _, uri := range all {
		a.add(uri)
	}
}
