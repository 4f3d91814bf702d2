package serve

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// Refusal is why a connection was not let in.
type Refusal string

// The refusals.
const (
	NoKey    Refusal = "no_key"   // it proved no key that opens anything
	NoSSH    Refusal = "no_ssh"   // it did not speak the protocol, or went away early
	TooMany  Refusal = "too_many" // there are too many connections
	TooOften Refusal = "too_often"
)

// guard bounds connections.
type guard struct {
	lim     Limits
	waits   time.Duration // of one that was let in, for its first session
	refused func(why Refusal, from string)

	mu      sync.Mutex
	ended   bool
	open    map[*guarded]struct{}
	pending int
	peers   int // of open: connections of engines, which take no place of others
	hosts   map[string]*host
	keys    map[string]int // connections by the fingerprint that they proved
	words   chan struct{}  // places of those who are told why they are turned away
}

// host is what is known of one address.
type host struct {
	open, pending int
	fails         float64 // those of the last minute, less as time goes by
	at            time.Time
}

const (
	maxHosts = 4096
	maxWords = 16
)

func newGuard(lim Limits, waits time.Duration, refused func(Refusal, string)) *guard {
	if refused == nil {
		refused = func(Refusal, string) {}
	}
	return &guard{
		lim: lim, waits: waits, refused: refused, open: map[*guarded]struct{}{}, hosts: map[string]*host{}, keys: map[string]int{}, words: make(chan struct{}, maxWords),
	}
}

type pendingKey struct{}

// connect takes a connection, or nil when there are too many. It is called on
// the connection's own goroutine.
func (g *guard) connect(ctx ssh.Context, conn net.Conn) net.Conn {
	from := origin(conn.RemoteAddr())
	c, why, text := g.take(conn, from)
	if c == nil {
		if why != "" {
			g.refused(why, from)
			g.turnAway(conn, text)
		}
		return nil
	}
	ctx.SetValue(pendingKey{}, c)
	return c
}

func (g *guard) take(conn net.Conn, from string) (_ *guarded, why Refusal, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	h := g.host(from, now)
	switch {
	case g.ended:
		return nil, "", ""
	case h.fails >= float64(g.lim.Failures):
		return nil, TooOften, "too many connections from " + from + " proved no key; try again in a minute"
	case h.open >= g.lim.PerAddress, h.pending >= maxPending/2:
		return nil, TooMany, fmt.Sprintf("too many connections from %s; end one of them, or try again later", from)
	case len(g.open)-g.peers >= g.lim.Connections, g.pending >= maxPending:
		return nil, TooMany, "too many connections; try again later"
	}
	c := &guarded{Conn: conn, g: g, from: from, waits: true}
	c.late = time.AfterFunc(greeting, func() { _ = c.Close() })
	g.open[c] = struct{}{}
	g.pending++
	h.open++
	h.pending++
	return c, "", ""
}

// host finds what is known of an address, as of now. Those of whom nothing
// matters any more are forgotten. The caller holds mu.
func (g *guard) host(from string, now time.Time) *host {
	if len(g.hosts) >= maxHosts {
		maps.DeleteFunc(g.hosts, func(_ string, h *host) bool { return h.open == 0 })
	}
	h := g.hosts[from]
	if h == nil {
		h = &host{at: now}
		g.hosts[from] = h
	}
	h.fails = max(0, h.fails-now.Sub(h.at).Minutes()*float64(g.lim.Failures))
	h.at = now
	return h
}

// pendingOf is the connection of a context, nil for one that was not taken.
func pendingOf(ctx ssh.Context) *guarded {
	c, _ := ctx.Value(pendingKey{}).(*guarded)
	return c
}

// letIn frees the place of one that has begun its first session.
func (g *guard) letIn(ctx ssh.Context) {
	c := pendingOf(ctx)
	if c == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.waits && !c.closed && c.late.Stop() {
		c.begun()
	}
}

// hold takes a place among the connections of a key that was proved. That of
// an engine has one for each session.
func (g *guard) hold(ctx ssh.Context, key string, peer bool) error {
	c := pendingOf(ctx)
	if c == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c.letGo()
	most := g.lim.PerKey + spare
	if peer {
		most = g.lim.Sessions + spare
	}
	if g.keys[key] >= most && !c.closed {
		c.crowded = true
		return crowded(fmt.Sprintf("your key has %d connections open, as many as one may; end one, or try again later", most))
	}
	if !c.closed {
		c.key = key
		g.keys[key]++
		c.setPeer(peer)
	}
	return nil
}

// setPeer moves the connection of an engine from the places of others; the caller
// holds mu.
func (c *guarded) setPeer(is bool) {
	if !is || c.peer {
		return
	}
	c.peer = true
	c.g.peers++
	h := c.g.hosts[c.from]
	h.open--
	if c.waits {
		h.pending--
		c.g.pending--
	}
}

// failed notes why a connection came to nothing. One whose key has too many is
// told of elsewhere: it is known whose it was.
func (g *guard) failed(conn net.Conn, err error) {
	why := NoSSH
	var auth *gossh.ServerAuthError
	if errors.As(err, &auth) {
		why = NoKey
		if errors.As(errors.Join(auth.Errors...), new(crowded)) {
			return
		}
	}
	g.refused(why, origin(conn.RemoteAddr()))
}

// end closes every connection; no other is taken.
func (g *guard) end() {
	g.mu.Lock()
	g.ended = true
	all := make([]*guarded, 0, len(g.open))
	for c := range g.open {
		all = append(all, c)
	}
	g.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// guarded gives its place back when it is closed.
type guarded struct {
	net.Conn
	g       *guard
	from    string
	key     string // that it proved; "" before
	late    *time.Timer
	waits   bool // for a first session
	peer    bool // an engine's
	crowded bool // its key had too many, which is no failure of its address
	closed  bool
}

// wait closes the connection unless it gets on within d.
func (c *guarded) wait(d time.Duration) {
	if c == nil {
		return
	}
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	if c.waits && !c.closed {
		c.late.Reset(d)
	}
}

// begun frees the place among those that have not; the caller holds mu.
func (c *guarded) begun() {
	c.waits = false
	if !c.peer {
		c.g.pending--
		c.g.hosts[c.from].pending--
	}
}

// letGo frees the place among those of its key; the caller holds mu.
func (c *guarded) letGo() {
	if c.key == "" {
		return
	}
	if c.g.keys[c.key]--; c.g.keys[c.key] == 0 {
		delete(c.g.keys, c.key)
	}
	c.key = ""
}

func (c *guarded) Close() error {
	c.g.mu.Lock()
	if !c.closed {
		c.closed = true
		c.letGo()
		delete(c.g.open, c)
		c.late.Stop()
		waits := c.waits
		if waits {
			c.begun()
		}
		if c.peer {
			c.g.peers--
		} else {
			h := c.g.hosts[c.from]
			if h.open--; waits && !c.crowded {
				h.fails++
			}
		}
	}
	c.g.mu.Unlock()
	return c.Conn.Close()
}

// origin is the part of an address that its owner can't change at will: an
// IPv4 address, or the /64 of an IPv6 one.
func origin(addr net.Addr) string {
	if addr == nil {
		return ""
	}
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return addr.String()
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	net, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return net.String()
}

// turnAway tells a client why it is not heard, as far as that costs little:
// few at a time, and none for long.
func (g *guard) turnAway(conn net.Conn, text string) {
	select {
	case g.words <- struct{}{}:
	default:
		return
	}
	defer func() { <-g.words }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write(disconnect(text)); err != nil {
		return
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // and read on, else what was written is lost with the connection
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, 64<<10))
	}
}

// disconnect is a version line and the message that ends a connection, for
// who has not begun to exchange keys (RFC 4253 sections 4.2, 6 and 11.1).
func disconnect(text string) []byte {
	const tooMany = 12 // SSH_DISCONNECT_TOO_MANY_CONNECTIONS
	payload := gossh.Marshal(struct {
		Reason uint32 `sshtype:"1"`
		Text   string
		Lang   string
	}{tooMany, "swarmdeck: " + text, ""})
	pad := 8 - (5+len(payload))%8
	if pad < 4 {
		pad += 8
	}
	packet := gossh.Marshal(struct {
		Length uint32
		Pad    byte
		Rest   []byte `ssh:"rest"`
	}{uint32(1 + len(payload) + pad), byte(pad), append(payload, make([]byte, pad)...)})
	return append([]byte("SSH-2.0-"+version+"\r\n"), packet...)
}
