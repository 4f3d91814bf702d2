package mcp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
)

// Engines have the tenants of a database.
type Engines interface {
	// For gives the engine that works on a tenant, which may take it first. Its error
	// says which other engine has it.
	For(ctx context.Context, tenant string) (*engine.Engine, error)
	// Here gives the engine of a tenant that is worked on here already.
	Here(tenant string) (*engine.Engine, bool)
}

// engineTime is how long a request waits for the engine of its tenant: what a killed one
// had is taken by then.
const engineTime = 10 * time.Second

// Router serves clients over HTTP, each by the engine that has the tenant of its token.
// What another engine has is refused with 421 and a word on who that is.
type Router struct {
	engines   Engines
	tokens    *Tokens
	home      string
	opt       Options
	strangers slow

	mu      sync.Mutex
	servers map[place]*served
}

// place is a tenant at an engine.
type place struct {
	eng    *engine.Engine
	tenant string
}

// served is the server of a place.
type served struct {
	*Server
	handler http.Handler
}

// NewRouter makes a router; Close ends it. What has no good token is audited in the home
// tenant; with "" in that of every token, as far as they are worked on here.
func NewRouter(engines Engines, tokens *Tokens, home string, opt Options) *Router {
	return &Router{engines: engines, tokens: tokens, home: home, opt: opt, servers: map[place]*served{}}
}

// Close ends what the servers do by themselves.
func (r *Router) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for at, s := range r.servers {
		errs = append(errs, s.Close())
		delete(r.servers, at)
	}
	return errors.Join(errs...)
}

func (r *Router) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.URL.Path != Path {
		http.NotFound(w, q)
		return
	}
	scheme, token, _ := strings.Cut(q.Header.Get("Authorization"), " ")
	id, ok := r.tokens.find(strings.TrimSpace(token))
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		http.Error(w, "a bearer token is needed, and this is none", http.StatusUnauthorized)
		r.stranger(q)
		return
	}
	ctx, cancel := context.WithTimeout(q.Context(), engineTime)
	eng, err := r.engines.For(ctx, id.Tenant)
	cancel()
	if err != nil {
		misdirected(w, err)
		return
	}
	ctx, cancel = context.WithCancel(q.Context())
	defer cancel()
	go func() { // ends with the request
		select {
		case <-eng.Retired():
			cancel() // a stream of an engine whose tenant has moved says nothing any more
		case <-ctx.Done():
		}
	}()
	r.server(place{eng, id.Tenant}).handler.ServeHTTP(w, q.WithContext(ctx))
}

// misdirected says that a tenant is not to be had here.
func misdirected(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusMisdirectedRequest)
	e := core.AsError(err)
	_, _ = w.Write(core.MustEncode(map[string]any{"error": map[string]any{"code": e.Code, "message": clean(line(e.Message, 1024))}}))
}

// server is the one of a place. Those of engines that are past go.
func (r *Router) server(at place) *served {
	r.mu.Lock()
	defer r.mu.Unlock()
	for old, s := range r.servers {
		if core.IsOver(old.eng.Retired()) {
			_ = s.Close()
			delete(r.servers, old)
		}
	}
	s := r.servers[at]
	if s == nil {
		s = &served{Server: NewServer(at.eng, r.opt)}
		s.handler = s.Handler(r.tokens, at.tenant)
		r.servers[at] = s
	}
	return s
}

// stranger audits a request without a good token.
func (r *Router) stranger(q *http.Request) {
	missed, ok := r.strangers.now()
	if !ok {
		return
	}
	from, _, _ := net.SplitHostPort(q.RemoteAddr)
	for _, id := range r.tokens.strangers(r.home) {
		eng, here := r.engines.Here(id.Tenant)
		if !here {
			continue
		}
		cause := more(core.Errorf(core.Denied, "HTTP %d: %s %s from %s", http.StatusUnauthorized, q.Method, Path, from), missed)
		s := r.server(place{eng, id.Tenant})
		if err := s.refuse(q.Context(), id, "", cause); !errors.Is(err, cause) {
			s.opt.Log.Error("audit a refused request", "error", err)
		}
	}
}
