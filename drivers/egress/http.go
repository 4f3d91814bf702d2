package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"swarmdeck/drivers/cell/ca"
	"swarmdeck/engine/egress"
)

// client is an accepted connection on its way through the HTTP server.
type client struct {
	net.Conn
	ctx  context.Context // of Serve
	from Origin
	// authority is the cell's, whose requests are looked into; nil without that.
	authority *ca.Authority
	inside    *carrier // of the tunnel that it is within; nil outside
	once      sync.Once
	done      chan struct{} // closed when the connection is over
	busy      sync.Mutex    // held while a request is carried
}

func (c *client) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.done) })
	return err
}

// incoming is the listener of the HTTP server: what Serve was given.
type incoming struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func (l *incoming) put(c net.Conn) bool {
	select {
	case l.conns <- c:
		return true
	case <-l.over:
		return false
	}
}

func (l *incoming) shut() { l.once.Do(func() { close(l.over) }) }

func (l *incoming) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

func (l *incoming) Close() error {
	l.shut()
	return nil
}

func (l *incoming) Addr() net.Addr { return &net.TCPAddr{} }

type clientKey struct{}

func (p *Proxy) newServer() *http.Server {
	s := &http.Server{
		Handler: p, ReadHeaderTimeout: handshake, IdleTimeout: idleClient, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0), Protocols: new(http.Protocols), DisableGeneralOptionsHandler: true,
		ConnContext: func(_ context.Context, c net.Conn) context.Context {
			return context.WithValue(c.(*client).ctx, clientKey{}, c)
		},
	}
	s.Protocols.SetHTTP1(true)
	return s
}

// ServeHTTP answers one request of a client.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(clientKey{}).(*client)
	c.busy.Lock()
	defer c.busy.Unlock()
	switch {
	case c.inside != nil:
		p.inspected(w, r, c)
	case r.Method == http.MethodConnect:
		p.connect(w, r, c)
	default:
		p.forward(w, r, c)
	}
}

// targetOf reads HOST:PORT, or HOST where a port is the usual one.
func targetOf(text string, usual int) (egress.Target, error) {
	host, port := text, usual
	if h, digits, err := net.SplitHostPort(text); err == nil {
		host = h
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil {
			return egress.Target{}, fmt.Errorf("the port %.10q is no number of 1-65535", digits)
		}
		port = int(n)
	}
	return egress.NewTarget(host, port)
}

// connect carries a tunnel.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request, c *client) {
	to, err := targetOf(r.Host, 0)
	if err != nil {
		p.answer(w, http.StatusBadRequest, "swarmdeck: "+err.Error())
		return
	}
	look := c.authority != nil && !p.decider().Opaque(c.from, to)
	var server net.Conn
	if !look {
		conn, status, said := p.open(r.Context(), c.from, to)
		if conn == nil {
			p.answer(w, status, said)
			return
		}
		defer conn.Close()
		server = conn
	}
	_, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	early := make([]byte, buffered.Reader.Buffered())
	if _, err := io.ReadFull(buffered, early); err != nil {
		return
	}
	if _, err := io.WriteString(c.Conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if look {
		p.inspect(c.ctx, c.from, c.authority, to, c.Conn, early)
		return
	}
	p.tunnel(c.ctx, c.from, to, c.Conn, server, early)
}

// open decides about a host and connects to it, or says what the client is
// told instead.
func (p *Proxy) open(ctx context.Context, from Origin, to egress.Target) (_ net.Conn, status int, said string) {
	want := egress.Request{Target: to}
	v := p.decider().Decide(ctx, from, want)
	if !v.Allowed {
		return nil, http.StatusForbidden, noRoute(want, v.Reason)
	}
	conn, err := p.reach(ctx, from, want, v)
	var no *refused
	switch {
	case err == nil:
		return conn, 0, ""
	case errors.As(err, &no):
		p.decider().Cut(ctx, from, want, "address", no.why)
		return nil, http.StatusForbidden, noRoute(want, no.why)
	}
	return nil, http.StatusBadGateway, fmt.Sprintf("swarmdeck: %s can't be reached: %v", to, err)
}

// answer refuses a CONNECT. The reason stands in the status line too: most
// clients show that and throw the body away.
func (p *Proxy) answer(w http.ResponseWriter, status int, said string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	said = oneLine(said)
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, said, len(said)+1, said)
}

// oneLine is text for a status line: a reason is a person's or a resolver's.
func oneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return ' '
		}
		return c
	}, s)
	return s[:min(len(s), 1000)]
}

// forward carries a plain request. Each is decided for itself.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, c *client) {
	if r.URL.Scheme != "http" || r.URL.Host == "" || r.URL.User != nil {
		http.Error(w, "swarmdeck: this is a proxy; want CONNECT HOST:PORT or an absolute http URI without a user", http.StatusBadRequest)
		return
	}
	to, err := targetOf(r.URL.Host, 80)
	if err != nil {
		http.Error(w, "swarmdeck: "+oneLine(err.Error()), http.StatusBadRequest)
		return
	}
	want := egress.Request{Target: to}
	if c.authority != nil && !p.decider().Opaque(c.from, to) {
		if want, err = requestOf(r, to); err != nil {
			http.Error(w, "swarmdeck: "+oneLine(err.Error()), http.StatusBadRequest)
			return
		}
	}
	r.Host = r.URL.Host
	one := p.newCarrier(c.from, to, "http")
	defer one.close()
	one.serve(w, r, want)
}
