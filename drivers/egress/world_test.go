package egress_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"swarmdeck/drivers/cell/ca"
	proxy "swarmdeck/drivers/egress"
	"swarmdeck/engine/egress"
	"swarmdeck/expect"
)

var ada = egress.Origin{Tenant: "t_acme", Agent: "ada", Run: "r1", Process: "curl"}

// rules is a Decider whose answers a test sets.
type rules struct {
	mu      sync.Mutex
	allow   map[string]egress.Verdict // by HOST:PORT
	denied  map[string]bool
	opaque  map[string]bool
	changed chan struct{}
	asked   []string
	cuts    []string
	used    map[string][2]int64
	over    chan string // told of each connection that is over
	cut     chan string // and of each that was cut
}

func newRules() *rules {
	return &rules{allow: map[string]egress.Verdict{}, denied: map[string]bool{}, opaque: map[string]bool{}, changed: make(chan struct{}), used: map[string][2]int64{}, over: make(chan string, 1000), cut: make(chan string, 1000)}
}

func (r *rules) let(to string, private bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allow[to] = egress.Verdict{Allowed: true, Private: private}
}

func (r *rules) deny(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied[to] = true
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *rules) Decide(_ context.Context, _ egress.Origin, to egress.Request) egress.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, to.String())
	if v, ok := r.allow[to.String()]; ok {
		return v
	}
	return egress.Verdict{Reason: "a test\r\nsays: no"}
}

func (r *rules) Denied(_ egress.Origin, to egress.Request) (bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied[to.String()], r.changed
}

func (r *rules) Opaque(_ egress.Origin, to egress.Target) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opaque[to.String()]
}

func (r *rules) Cut(_ context.Context, _ egress.Origin, to egress.Request, code, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	said := fmt.Sprintf("%s %s: %s", to, code, why)
	r.cuts = append(r.cuts, said)
	r.cut <- said
}

func (r *rules) Opened(_ egress.Origin, to egress.Target, count func() (int64, int64)) func() {
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		sent, received := count()
		sum := r.used[to.String()]
		r.used[to.String()] = [2]int64{sum[0] + sent, sum[1] + received}
		select {
		case r.over <- to.String():
		default: // a benchmark reads none
		}
	}
}

func (r *rules) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.cuts, "\n")
}

// waitCut is the next cut.
func (r *rules) waitCut() string { return <-r.cut }

// names resolves what a test says and counts the questions.
type names struct {
	mu    sync.Mutex
	of    map[string][]string
	asked int
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	var all []netip.Addr
	for _, text := range n.of[host] {
		all = append(all, netip.MustParseAddr(text))
	}
	if all == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return all, nil
}

// world is a proxy behind two listeners, as the init of a cell has them.
type world struct {
	t     testing.TB
	rules *rules
	names *names
	proxy *proxy.Proxy
	// authority of the cell; nil is one that is not looked into.
	authority *ca.Authority
	http      string // address
	socks     string
}

func newWorld(t testing.TB, decider proxy.Decider, dial func(context.Context, netip.AddrPort) (net.Conn, error), change ...func(*world, *proxy.Options)) *world {
	w := &world{t: t, names: &names{of: map[string][]string{}}}
	if decider == nil {
		w.rules = newRules()
		decider = w.rules
	}
	opt := proxy.Options{Resolver: w.names, Dial: dial, Own: func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("9.9.9.9")} }}
	for _, c := range change {
		c(w, &opt)
	}
	w.proxy = proxy.New(opt)
	w.proxy.Open(decider)
	t.Cleanup(func() { expect.Is(t, w.proxy.Close(), nil) })
	w.http, w.socks = w.listen(proxy.HTTP), w.listen(proxy.SOCKS)
	return w
}

func (w *world) listen(kind proxy.Kind) string {
	w.t.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(w.t)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(func() {
		cancel()
		l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.proxy.Serve(ctx, conn, kind, ada, w.authority) })
		}
	})
	return l.Addr().String()
}

// client is an ordinary client with the proxy in its environment.
func (w *world) client(scheme string, server *httptest.Server) *http.Client {
	at := &url.URL{Scheme: scheme, Host: w.http}
	if scheme != "http" {
		at.Host = w.socks
	}
	transport := &http.Transport{Proxy: http.ProxyURL(at), ForceAttemptHTTP2: true}
	if server != nil && server.TLS != nil {
		transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func get(c *http.Client, url string) (status int, body string, err error) {
	res, err := c.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), err
}

// port is the port of an address.
func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

func hello(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s %d", r.Method, r.Host, r.URL.Path, len(body))
}
