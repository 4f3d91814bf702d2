// Package egress is the only way out of a cell: a proxy for HTTP (CONNECT and
// plain requests) and SOCKS5. It asks a Decider for each connection, resolves
// names itself, dials exactly an address that it checked, and holds the name
// in a TLS greeting against the host that was allowed.
//
// What it promises ends there: an allowed host can be told anything, and what
// begins TLS only after other words (STARTTLS) is not looked into. For a cell
// that has an authority of its own it ends TLS itself and asks about each request.
package egress

import (
	"cmp"
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/drivers/cell/ca"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
)

// Origin is who wants a connection.
type Origin = egress.Origin

// Decider decides about connections, and is told of them.
type Decider interface {
	// Decide may block while a person is asked.
	Decide(ctx context.Context, from Origin, to egress.Request) egress.Verdict
	// Denied reports whether a rule denies a host or address now; changed is
	// closed when that may be otherwise.
	Denied(from Origin, to egress.Request) (denied bool, changed <-chan struct{})
	// Opaque reports whether a rule keeps a host from being looked into.
	Opaque(from Origin, to egress.Target) bool
	// Cut is told of what was allowed and refused or ended all the same: code is
	// one word for the kind of reason.
	Cut(ctx context.Context, from Origin, to egress.Request, code, why string)
	// Opened is told of a connection to a host. count tells its bytes so far, to
	// the host and from it, at any time; over is called once it is over.
	Opened(from Origin, to egress.Target, count func() (sent, received int64)) (over func())
}

var _ Decider = (*egress.Service)(nil)

// Resolver looks a name up; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Kind is the protocol that a client speaks.
type Kind int

// The kinds.
const (
	HTTP  Kind = iota // CONNECT, and requests with an absolute http URI
	SOCKS             // version 5, CONNECT only, without authentication
)

// Limits, so that no client holds or fills the engine.
const (
	handshake  = 30 * time.Second // for a request line and headers, a SOCKS request, a TLS greeting
	dialing    = 10 * time.Second // for one address
	maxHeader  = 64 << 10         // bytes of a request's headers
	maxAddrs   = 16               // addresses of a name that are tried
	maxPerRun  = 256              // connections of one run at once
	maxAtOnce  = 4096             // connections in all
	idleClient = 2 * time.Minute  // between two plain requests on one connection
)

// Options of New.
type Options struct {
	Resolver Resolver // nil means the system's
	// Dial connects to an address that was checked; nil means TCP.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// Roots verify the servers of connections that are looked into; nil means
	// the system's.
	Roots *x509.CertPool
	// Own lists the addresses of this machine, which count as loopback; nil
	// means those of its interfaces.
	Own func() []netip.Addr
}

// Proxy carries connections. It is safe for concurrent use.
type Proxy struct {
	opt      Options
	decides  atomic.Pointer[Decider]
	all      sync.WaitGroup  // of Serve
	life     context.Context // of all connections
	end      context.CancelFunc
	served   chan struct{} // closed when the server has ended
	server   *http.Server
	incoming *incoming

	entering sync.Mutex // held while somebody enters, and by Close
	conns    core.Counts[runKey]
}

type runKey struct{ tenant, run string }

// New makes a proxy. Open begins it, and Close ends it then.
func New(opt Options) *Proxy {
	opt.Resolver = cmp.Or[Resolver](opt.Resolver, system{})
	if opt.Dial == nil {
		d := &net.Dialer{Timeout: dialing}
		opt.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", to.String())
		}
	}
	if opt.Own == nil {
		opt.Own = ownAddrs
	}
	p := &Proxy{opt: opt, incoming: &incoming{conns: make(chan net.Conn), over: make(chan struct{})}, served: make(chan struct{})}
	p.life, p.end = context.WithCancel(context.Background())
	p.server = p.newServer()
	return p
}

// Open names who decides, once. Until then nothing is let through.
func (p *Proxy) Open(d Decider) {
	go func() {
		defer close(p.served)
		_ = p.server.Serve(p.incoming) // until Close
	}()
	p.decides.Store(&d)
}

func (p *Proxy) decider() Decider { return *p.decides.Load() }

// Close ends all connections, and returns when the decider knows of all.
func (p *Proxy) Close() error {
	p.entering.Lock() // whoever entered is waited for, and nobody enters after
	p.end()
	p.entering.Unlock()
	err := p.server.Close()
	p.incoming.shut()
	<-p.served
	p.all.Wait()
	return err
}

// Serve carries one accepted connection and returns when it is over; it then
// is closed. ctx ends it. What a cell with an authority says is looked into; nil
// is a cell without.
func (p *Proxy) Serve(ctx context.Context, conn net.Conn, kind Kind, from Origin, authority *ca.Authority) {
	defer conn.Close()
	if p.decides.Load() == nil || !p.enter(from) {
		return // the client sees an end; there are too many to be polite to each
	}
	defer p.conns.Leave(runKey{from.Tenant, from.Run})
	defer p.all.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if kind == SOCKS {
		p.socks(ctx, conn, from, authority)
		return
	}
	c := &client{Conn: conn, ctx: ctx, from: from, authority: authority, done: make(chan struct{})}
	if p.incoming.put(c) {
		<-c.done
		c.busy.Lock() // a request may still be told of
		defer c.busy.Unlock()
	}
}

func (p *Proxy) enter(from Origin) bool {
	p.entering.Lock()
	defer p.entering.Unlock()
	if p.life.Err() != nil || !p.conns.Enter(runKey{from.Tenant, from.Run}, maxAtOnce, maxPerRun) {
		return false
	}
	p.all.Add(1)
	return true
}

// noRoute is what a client that is refused gets to read.
func noRoute(to egress.Request, reason string) string {
	what, how := to.Target.String(), to.Target.String()
	if to.Method != "" {
		what, how = what+" for "+to.Method+" "+to.Shown(), how+" --method "+to.Method
	}
	return "swarmdeck: no route to " + what + ": " + reason + "; ask with: swarmdeck egress allow " + how
}
