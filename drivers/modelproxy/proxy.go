package modelproxy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
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

// Proxy is the one listener of an engine. It begins with the first line that
// is opened. Its methods may be called from any goroutine.
type Proxy struct {
	transport http.RoundTripper
	held      atomic.Int64
	count     atomic.Uint64
	reading   chan struct{} // a token for each body that is being understood

	mu     sync.Mutex
	server *http.Server
	addr   string
	lines  map[[32]byte]*line // by the digest of the token
	closed bool
}

// New makes a proxy that does not listen yet. Upstream connections follow the
// engine's own HTTP_PROXY and NO_PROXY.
func New() *Proxy {
	return &Proxy{
		lines:   map[[32]byte]*line{},
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

// Listener is told what a model is about to be asked, an event of the type
// model_request: the request goes on when it returns. What it returns is told
// the answer, model_response, once.
type Listener func(asked fleet.Event) (answered func(fleet.Event))

// line is the way of one agent to one model API.
type line struct {
	p      *Proxy
	up     *url.URL
	listen Listener
	ctx    context.Context
	run    *run
}

// Open gives an agent its lines, and the variables for its environment that
// lead to them. They work until close is called, which ends the requests that
// are under way.
//
// A nil Proxy opens none.
func (p *Proxy) Open(to Upstreams, env map[string]string, l Listener) (vars map[string]string, closed func(), err error) {
	if p == nil {
		return nil, nil, core.Errorf(core.Unavailable, "%s: models are not recorded here", field).With("field", field)
	}
	if err := p.start(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	vars = map[string]string{}
	var keys [][32]byte
	run := p.run()
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, up := range to {
		token := make([]byte, 32)
		if _, err := rand.Read(token); err != nil {
			cancel()
			return nil, nil, fmt.Errorf("make a token: %w", err)
		}
		text := hex.EncodeToString(token)
		key := sha256.Sum256([]byte(text))
		p.lines[key] = &line{p: p, up: up, listen: l, ctx: ctx, run: run}
		keys = append(keys, key)
		vars[name] = "http://" + p.addr + "/" + text
	}
	noProxy(vars, env)
	return vars, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, key := range keys {
			delete(p.lines, key)
		}
	}, nil
}

// start listens, unless it does.
func (p *Proxy) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return errors.New("record models: the proxy is closed")
	case p.server != nil:
		return nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("record models: %w", err)
	}
	p.addr = listener.Addr().String()
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // of connections that broke: whoever asked is told
	}
	go func() { _ = p.server.Serve(listener) }()
	return nil
}

// Close ends all lines and the listener.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	server := p.server
	p.lines = map[[32]byte]*line{}
	p.mu.Unlock()
	if t, ok := p.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	if server == nil {
		return nil
	}
	return server.Close()
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	p.mu.Lock()
	l := p.lines[sha256.Sum256([]byte(token))]
	addr := p.addr
	p.mu.Unlock()
	switch {
	case l == nil || r.Host != addr:
		refuse(w, http.StatusNotFound, "there is nothing here")
	case r.Header.Get("Upgrade") != "":
		refuse(w, http.StatusNotImplemented, "connections that change their protocol are not recorded; use plain HTTP")
	default:
		select {
		case l.run.open <- struct{}{}:
			defer func() { <-l.run.open }()
			l.serve(w, r, "/"+rest)
		default:
			refuse(w, http.StatusServiceUnavailable, strconv.Itoa(maxOpen)+" requests are under way already")
		}
	}
}

// serve passes one request on.
func (l *line) serve(w http.ResponseWriter, r *http.Request, path string) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	r = r.WithContext(ctx)
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
				refuse(w, http.StatusBadGateway, "the model's API can't be reached: "+cause(err))
			}
		},
	}
	proxy.ServeHTTP(w, r)
}

// cause is an error without the address that it names, which is the agent's
// own affair.
func cause(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
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
