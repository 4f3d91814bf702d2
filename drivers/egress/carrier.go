package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"

	"swarmdeck/engine/egress"
)

// maxGranted bounds the answers that hold for one connection of a client.
const maxGranted = 100

// carrier takes the requests of one connection of a client to one host.
type carrier struct {
	p         *Proxy
	from      Origin
	to        egress.Target
	scheme    string // http or https
	transport *http.Transport

	mu      sync.Mutex
	closed  bool
	conns   map[*counting]struct{}      // to the host, open
	granted map[egress.Request]struct{} // what a person let through
}

// decidedKey is of what was decided in the context of a request.
type decidedKey struct{}

type decided struct {
	want    egress.Request
	verdict egress.Verdict
}

func (p *Proxy) newCarrier(from Origin, to egress.Target, scheme string) *carrier {
	c := &carrier{p: p, from: from, to: to, scheme: scheme, conns: map[*counting]struct{}{}, granted: map[egress.Request]struct{}{}}
	c.transport = &http.Transport{
		DisableCompression: true, MaxResponseHeaderBytes: 1 << 20, TLSHandshakeTimeout: handshake, IdleConnTimeout: idleClient,
		TLSClientConfig: &tls.Config{RootCAs: p.opt.Roots, ServerName: to.Host, MinVersion: tls.VersionTLS12},
		DialContext:     c.dial,
	}
	return c
}

// dial connects to the host, within a request that was decided.
func (c *carrier) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d, _ := ctx.Value(decidedKey{}).(decided)
	conn, err := c.p.reach(ctx, c.from, d.want, d.verdict)
	if err != nil {
		return nil, err
	}
	counted := &counting{Conn: conn}
	if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		counted.host = at.AddrPort().Addr().Unmap().String()
	}
	over := c.p.decider().Opened(c.from, c.to, func() (int64, int64) { return counted.sent.Load(), counted.received.Load() })
	counted.over = func() {
		over()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.conns, counted)
	}
	c.mu.Lock()
	closed := c.closed
	c.conns[counted] = struct{}{}
	c.mu.Unlock()
	if closed { // the request has gone meanwhile
		counted.Close()
		return nil, net.ErrClosed
	}
	return counted, nil
}

// close ends all connections to the host, and returns when they are told of.
func (c *carrier) close() {
	c.transport.CloseIdleConnections()
	c.mu.Lock()
	c.closed = true
	open := maps.Clone(c.conns)
	c.mu.Unlock()
	for conn := range open {
		conn.Close()
	}
}

// decide says whether a request may be sent. What a person lets through once is
// so for the connection: git, for one, asks twice for one push.
func (c *carrier) decide(ctx context.Context, want egress.Request) egress.Verdict {
	c.mu.Lock()
	_, granted := c.granted[want]
	open := maps.Clone(c.conns)
	c.mu.Unlock()
	for conn := range open { // it was dialled for another request
		at := want
		at.Host = conn.host
		if denied, _ := c.p.decider().Denied(c.from, at); denied {
			conn.Close()
		}
	}
	if granted {
		if denied, _ := c.p.decider().Denied(c.from, want); !denied {
			return egress.Verdict{Allowed: true}
		}
	}
	v := c.p.decider().Decide(ctx, c.from, want)
	if v.Allowed && v.Asked {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.granted) < maxGranted {
			c.granted[want] = struct{}{}
		}
	}
	return v
}

// serve decides about a request and carries it, or says why not.
func (c *carrier) serve(w http.ResponseWriter, r *http.Request, want egress.Request) {
	v := c.decide(r.Context(), want)
	if !v.Allowed {
		http.Error(w, oneLine(noRoute(want, v.Reason)), http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), decidedKey{}, decided{want, v}))
	var guarded sync.WaitGroup
	guarded.Go(func() { c.p.guard(ctx, c.from, want, cancel) })
	defer guarded.Wait()
	defer cancel()
	(&httputil.ReverseProxy{
		Transport: c.transport, ErrorLog: c.p.server.ErrorLog, FlushInterval: -1,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.URL.RawQuery = c.scheme, c.to.String(), pr.In.URL.RawQuery
			pr.Out.Host = pr.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { c.failed(w, want, err) },
	}).ServeHTTP(w, r.WithContext(ctx))
}

// failed answers a request that could not be carried.
func (c *carrier) failed(w http.ResponseWriter, want egress.Request, err error) {
	if no, ok := errors.AsType[*refused](err); ok {
		c.p.decider().Cut(context.Background(), c.from, want, "address", no.why)
		http.Error(w, oneLine(noRoute(egress.Request{Target: c.to}, no.why)), http.StatusForbidden)
		return
	}
	http.Error(w, oneLine(fmt.Sprintf("swarmdeck: %s can't be reached: %v", c.to, err)), http.StatusBadGateway)
}

// counting counts the bytes of a connection.
type counting struct {
	net.Conn
	host           string // its address, "" of what is no TCP
	sent, received atomic.Int64
	over           func() // called once, at the end
	once           sync.Once
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

func (c *counting) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.over)
	return err
}
