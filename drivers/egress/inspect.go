package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"swarmdeck/drivers/cell/ca"
	"swarmdeck/engine/egress"
)

// inspect reads what a client says in a tunnel as requests of HTTP/1.1, within
// TLS by a certificate of the cell's own authority, and carries each once it is
// decided. Nothing goes out before that, no name is looked up, and what is
// neither TLS nor HTTP goes nowhere. early is what the client has sent already.
func (p *Proxy) inspect(ctx context.Context, from Origin, authority *ca.Authority, to egress.Target, conn net.Conn, early []byte) {
	defer conn.Close()
	cut := func(code, why string) {
		if ctx.Err() == nil {
			p.decider().Cut(ctx, from, egress.Request{Target: to}, code, why+"; to leave it unread: swarmdeck egress allow "+to.String()+" --inspect=false")
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(handshake))
	if len(early) == 0 {
		early = make([]byte, maxHello)
		n, err := conn.Read(early)
		if early = early[:n]; isTimeout(err) {
			cut("silent", "the client says nothing that could be read: it waits for the host")
		}
		if n == 0 {
			return
		}
	}
	first, ok := p.greeting(ctx, from, to, conn, early)
	if !ok {
		return
	}
	scheme, inner := "http", net.Conn(&replayed{Conn: conn, first: first})
	if readHello(first).state == whole {
		leaf, err := authority.Leaf(to.Host)
		if err != nil {
			cut("fault", err.Error())
			return
		}
		secured := tls.Server(inner, &tls.Config{Certificates: []tls.Certificate{*leaf}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
		within, cancel := context.WithTimeout(ctx, handshake)
		err = secured.HandshakeContext(within)
		cancel()
		if err != nil {
			cut("tls_refused", refusedLeaf(err))
			return
		}
		scheme, inner = "https", secured
	}
	c := &client{Conn: inner, ctx: ctx, from: from, done: make(chan struct{}), inside: p.newCarrier(from, to, scheme)}
	defer c.inside.close()
	if p.incoming.put(c) {
		<-c.done
		c.busy.Lock() // a request may still be told of
		defer c.busy.Unlock()
	}
}

func isTimeout(err error) bool {
	var slow net.Error
	return errors.As(err, &slow) && slow.Timeout()
}

// refusedLeaf says why a client and the cell's certificate did not get on.
func refusedLeaf(err error) string {
	if said, ok := errors.AsType[*net.OpError](err); ok && said.Op == "remote error" {
		return fmt.Sprintf("the client refuses the certificate of its cell (%v): it pins the host's own, or has a list of authorities of its own", said.Err)
	}
	return fmt.Sprintf("TLS with the client failed (%.200v): it may pin the host's certificate, or speak no HTTP/1.1", err)
}

// replayed is a connection whose first bytes were read already.
type replayed struct {
	net.Conn
	first []byte
}

func (r *replayed) Read(b []byte) (int, error) {
	if len(r.first) == 0 {
		return r.Conn.Read(b)
	}
	n := copy(b, r.first)
	r.first = r.first[n:]
	return n, nil
}

// overrides are headers by which some servers take another method than that of
// the request.
var overrides = [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// webSocket is the method of a request after which anything may be said.
const webSocket = "WEBSOCKET"

// requestOf is what a request wants of a host. It takes away a wish to go on in
// another protocol than that of web sockets.
func requestOf(r *http.Request, to egress.Target) (egress.Request, error) {
	method := r.Method
	upgrade := r.Header.Get("Upgrade")
	r.Header.Del("Upgrade")
	switch {
	case strings.EqualFold(upgrade, "websocket"):
		method = webSocket
		r.Header.Set("Upgrade", upgrade)
	case slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method):
		for _, name := range overrides {
			if other := r.Header.Get(name); other != "" {
				method = other
			}
		}
	}
	return egress.NewRequest(to, method, r.URL.EscapedPath(), r.URL.RawQuery)
}

// inspected answers one request within a tunnel.
func (p *Proxy) inspected(w http.ResponseWriter, r *http.Request, c *client) {
	to := c.inside.to
	if named, err := targetOf(r.Host, int(to.Port)); err != nil || named != to {
		why := fmt.Sprintf("the request names the host %.100q, not %s", r.Host, to)
		p.decider().Cut(r.Context(), c.from, egress.Request{Target: to}, "host", why)
		http.Error(w, "swarmdeck: "+oneLine(why), http.StatusMisdirectedRequest)
		return
	}
	want, err := requestOf(r, to)
	if err != nil {
		http.Error(w, "swarmdeck: "+oneLine(err.Error()), http.StatusBadRequest)
		return
	}
	c.inside.serve(w, r, want)
}
