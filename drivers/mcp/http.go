package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
)

// Path is where the protocol is served.
const Path = "/mcp"

// stateless is the first version of the protocol without sessions. Handlers of
// the SDK serve either those before it or those from it on.
const stateless = "2026-07-28"

// sessionTime is how long a session without a request is kept.
const sessionTime = 10 * time.Minute

// extraIdentity is where a token's identity lies in the SDK's TokenInfo.
const extraIdentity = "swarmdeck/identity"

// Handler serves clients that show one of the tokens. What has no good token is
// audited in the home tenant; with "" in that of every token.
func (s *Server) Handler(tokens *Tokens, home string) http.Handler {
	who := func(r mcp.Request) (Identity, error) {
		if extra := r.GetExtra(); extra != nil && extra.TokenInfo != nil {
			if id, ok := extra.TokenInfo.Extra[extraIdentity].(Identity); ok {
				return id, nil
			}
		}
		return Identity{}, errors.New("a request without an identity")
	}
	server := func(r *http.Request) *mcp.Server {
		id, ok := auth.TokenInfoFromContext(r.Context()).Extra[extraIdentity].(Identity)
		if !ok {
			return nil
		}
		return s.of(id.Tenant, who)
	}
	sessions := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Logger: s.opt.Log, SessionTimeout: sessionTime, MaxRequestBodyBytes: maxMessage,
	})
	single := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Logger: s.opt.Log, Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxMessage,
	})
	route := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= stateless {
			single.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	})
	verify := func(_ context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
		id, ok := tokens.find(token)
		if !ok || id.Kind == core.Agent && !s.eng.Fleet.Known(id.Tenant, id.Name) {
			return nil, auth.ErrInvalidToken
		}
		if seen, ok := r.Context().Value(seenKey{}).(*seen); ok {
			seen.id = id
		}
		return &auth.TokenInfo{UserID: id.String(), Extra: map[string]any{extraIdentity: id}}, nil
	}
	protected := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(route)
	mux := http.NewServeMux()
	mux.Handle(Path, s.watched(protected, tokens, home))
	return mux
}

// seen is what becomes of one HTTP request.
type seen struct {
	http.ResponseWriter
	id     Identity // zero until its token was good
	status int
}

type seenKey struct{}

func (w *seen) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Flush lets events out.
func (w *seen) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *seen) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// watched audits the requests that are refused before they are calls: without
// a good token, too large, malformed.
func (s *Server) watched(next http.Handler, tokens *Tokens, home string) http.Handler {
	var strangers slow
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		watch := &seen{ResponseWriter: w}
		next.ServeHTTP(watch, r.WithContext(context.WithValue(r.Context(), seenKey{}, watch)))
		if watch.status < 400 || watch.status == http.StatusNotFound || watch.status == http.StatusMethodNotAllowed {
			return // a session that has ended, a GET without one: clients try these
		}
		code := core.InvalidInput
		if watch.status == http.StatusUnauthorized || watch.status == http.StatusForbidden {
			code = core.Denied
		}
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		cause := core.Errorf(code, "HTTP %d: %s %s from %s", watch.status, r.Method, Path, from)
		ids := []Identity{watch.id}
		if watch.id == (Identity{}) {
			missed, ok := strangers.now()
			if !ok {
				return
			}
			cause = more(cause, missed)
			ids = tokens.strangers(home)
		}
		for _, id := range ids {
			if err := s.refuse(r.Context(), id, "", cause); err != nil && !errors.Is(err, cause) {
				s.opt.Log.Error("audit a refused request", "error", err)
			}
		}
	})
}

// strangers are in whose name who has no good token is audited: in the home tenant, with ""
// in that of every token.
func (t *Tokens) strangers(home string) []Identity {
	homes := []string{home}
	if home == "" {
		homes = t.Tenants()
	}
	return core.Map(homes, func(tenant string) Identity { return Identity{Tenant: tenant, Name: "unknown", Kind: core.Agent} })
}

// slow lets one event a second through and counts the others: who has no token
// must not be able to fill the log.
type slow struct {
	mu     sync.Mutex
	last   time.Time
	missed int
}

func (s *slow) now() (missed int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.last) < time.Second {
		s.missed++
		return 0, false
	}
	missed, s.last, s.missed = s.missed, time.Now(), 0
	return missed, true
}

// more tells of what was missed before.
func more(cause *core.Error, missed int) *core.Error {
	if missed > 0 {
		cause.Message += fmt.Sprintf(", and %d more before", missed)
	}
	return cause
}

// Serve answers on a listener until ctx ends. Calls that are under way then get
// a moment to end.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	web := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if web.Shutdown(patience) != nil {
			_ = web.Close() // streams of events never end by themselves
		}
	})
	err := web.Serve(l)
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve MCP on %s: %w", l.Addr(), err)
}
