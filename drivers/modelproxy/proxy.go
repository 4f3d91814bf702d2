// Package modelproxy records what agents say to their models. It listens on
// the loopback alone, at a port for each agent, passes each request on to the
// agent's real model API under a path that nobody else can guess, and tells whoever keeps the agent
// what was asked and what was answered.
//
// It streams both ways as things come. Two moments alone are held: the last
// byte of a request until the request is on record, since the model may act on
// it then, and the end of an answer until the answer is, since the agent may. In
// a stream that begins with the first call of a tool that comes whole.
//
// It understands chat completions and responses (OpenAI), messages (Anthropic)
// and generateContent (Gemini), streamed or whole. What else an agent sends
// there, such as lists of models, is passed on unseen. What is kept is bounded:
// of a body past that, or an encoded one, there are only its size and digest, of
// a long part of an answer its beginning too, and of a long event of a stream
// its size alone. Headers and queries are never kept, and the credentials
// in them are blotted out where a body repeats them.
//
// The credential of a model is not the agent's: its environment holds a random
// placeholder, new for each process, and the proxy puts the credential in where
// a request on that agent's line shows it. Nothing of this outlives the engine,
// and no agent's process does.
package modelproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of what passes at once.
const (
	maxOpen  = 32        // requests of one agent's run, on all its lines: its record closes 64 after a crash
	maxHeld  = 256 << 20 // bytes of bodies that are looked at, of all agents; the first 64 KiB of each are free
	maxShare = 32 << 20  // and of one agent's run, on all its lines
	maxAsked = 8 << 20   // bytes of one request that are looked at
	maxWhole = 4 << 20   // bytes of one answer that is no stream
	maxItems = 20_000    // values of the JSON that is understood at once, at any depth
	maxRead  = 2         // bodies that are being understood: it takes many times their size
	small    = 64 << 10  // bytes of a body that is always kept, and of a piece of a stream that waits for no turn
)

// Proxy has the lines of an engine's agents. Its methods may be called from any
// goroutine.
type Proxy struct {
	transport http.RoundTripper
	held      atomic.Int64
	count     atomic.Uint64
	reading   chan struct{} // a token for each body that is being understood

	mu     sync.Mutex
	open   map[*Lines]struct{}
	closed bool
}

// New makes a proxy without lines. Upstream connections follow the
// engine's own HTTP_PROXY and NO_PROXY.
func New() *Proxy {
	return &Proxy{
		open:    map[*Lines]struct{}{},
		reading: make(chan struct{}, maxRead),
		transport: &http.Transport{
			Proxy:              http.ProxyFromEnvironment,
			DialContext:        (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:  true,
			DisableCompression: true,
			IdleConnTimeout:    90 * time.Second, MaxIdleConnsPerHost: 8, TLSHandshakeTimeout: 15 * time.Second,
		},
	}
}

func (p *Proxy) nextID() string { return fmt.Sprintf("model-%d", p.count.Add(1)) }

// Close ends all lines.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	all := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, l := range all {
		l.Close()
	}
	if t, ok := p.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	return nil
}

// serve passes one request on.
func (l *line) serve(w http.ResponseWriter, r *http.Request, path string) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	g := l.grant.Load()
	r, ok := g.put(r.WithContext(ctx))
	if !ok {
		refuse(w, http.StatusForbidden, notGiven)
		l.refused(path)
		return
	}
	x := l.exchange(r, path)
	if x != nil {
		defer x.close()
	}
	proxy := httputil.ReverseProxy{
		Transport: l.p.transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.Host = l.up.Scheme, l.up.Host, l.up.Host
			raw := strings.TrimSuffix(l.up.EscapedPath(), "/") + path
			pr.Out.URL.RawPath = raw
			if plain, err := url.PathUnescape(raw); err == nil {
				pr.Out.URL.Path = plain
			}
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery
			pr.Out.Header.Set("Accept-Encoding", "identity") // it has to be read on the way
		},
		ModifyResponse: func(res *http.Response) error {
			if err := g.hide(res); err != nil {
				return err
			}
			if x != nil {
				x.answers(res)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if x != nil {
				x.failed(err)
			}
			if r.Context().Err() == nil {
				refuse(w, http.StatusBadGateway, "the model's API gave no answer: "+cause(err))
			}
		},
	}
	proxy.ServeHTTP(w, r)
}

// climbs reports a path, below an address, that leads out of it.
func climbs(escaped string) bool {
	depth := 0
	for _, name := range strings.FieldsFunc(unescaped(escaped), func(r rune) bool { return r == '/' || r == '\\' }) {
		switch name {
		case ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return true
		}
	}
	return false
}

// cause is an error without the address that it names, which is the agent's
// own affair.
func cause(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return err.Error()
}

// refuse answers in the form that clients of all these APIs understand.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"code":%d,"type":"model_proxy","message":%q}}`, status, message)
}
