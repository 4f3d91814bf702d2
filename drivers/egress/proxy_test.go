package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"swarmdeck/engine/egress"
	"swarmdeck/expect"
)

// local dials the test's server whatever address was checked.
func local(addr string) func(context.Context, netip.AddrPort) (net.Conn, error) {
	return func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
}

func TestClientsOfEachKindReachAnAllowedHostAndNoOther(t *testing.T) {
	secure, plain := httptest.NewTLSServer(http.HandlerFunc(hello)), httptest.NewServer(http.HandlerFunc(hello))
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	for _, scheme := range []string{"http", "socks5", "socks5h"} {
		for _, server := range []*httptest.Server{secure, plain} {
			w := newWorld(t, nil, nil)
			at := "example.com:" + port(server.Listener.Addr().String())
			w.names.of["example.com"] = []string{"127.0.0.1"}
			w.rules.let(at, true)
			protocol, _, _ := strings.Cut(server.URL, "://")
			client := w.client(scheme, server)
			status, body, err := get(client, protocol+"://"+at+"/a?b")
			expect.True(t, err == nil && status == 200 && body == "GET "+at+" /a 0", "%s %s: %d %q %v", scheme, protocol, status, body, err)
			client.CloseIdleConnections()
			<-w.rules.over
			sum := w.rules.used[at]
			expect.True(t, sum[0] >= 10 && sum[1] >= 10, "%s %s: bytes %v", scheme, protocol, sum)
			status, body, err = get(client, protocol+"://other.example:1/")
			switch {
			case scheme == "http" && protocol == "http":
				if status != 403 || !strings.HasPrefix(body, "swarmdeck: no route to other.example:1: a test  says: no; ask with: swarmdeck egress allow other.example:1") {
					t.Errorf("%d %q %v", status, body, err)
				}
			case err == nil:
				t.Errorf("%s %s: a refused host answered %d", scheme, protocol, status)
			case scheme == "http" && !strings.Contains(err.Error(), "swarmdeck: no route to other.example:1: a test  says: no"):
				t.Errorf("the client can't tell why: %v", err)
			case scheme != "http" && !strings.Contains(err.Error(), "not allowed by ruleset"):
				t.Errorf("the client can't tell why: %v", err)
			}
			expect.Is(t, w.names.asked, 1, "names were looked up; a refused one tells a name server nothing")
		}
	}
}

func TestAnAddressIsCheckedAndDialledAsOneValue(t *testing.T) {
	var dialled []netip.AddrPort
	w := newWorld(t, nil, func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
		dialled = append(dialled, to)
		return nil, fmt.Errorf("nobody at %s", to)
	})
	for host, addrs := range map[string][]string{
		"in.example": {"10.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", "64:ff9b::a00:1"}, "own.example": {"9.9.9.9"}, "mixed.example": {"127.0.0.1", "8.8.8.8"}, "ruled.example": {"8.8.4.4"},
	} {
		w.names.of[host] = addrs
		w.rules.let(host+":80", false)
	}
	w.rules.deny("8.8.4.4:80")
	client := w.client("http", nil)
	for host, want := range map[string]string{
		"in.example": "which a rule with --private must allow", "own.example": "9.9.9.9 is this machine's own", "mixed.example": "nobody at 8.8.8.8:80", "ruled.example": "an egress rule denies its address 8.8.4.4", "gone.example": "a test",
	} {
		_, body, err := get(client, "http://"+host+"/")
		expect.True(t, err == nil && strings.Contains(body, want), "%s: %q %v", host, body, err)
	}
	expect.True(t, len(dialled) == 1 && dialled[0].String() == "8.8.8.8:80", "dialled %v", dialled)
	if n := strings.Count(w.rules.said(), " address: "); n != 3 {
		t.Errorf("told:\n%s", w.rules.said())
	}
	w.rules.let("gone.example:80", false)
	status, body, _ := get(client, "http://gone.example/")
	expect.True(t, status == 502 && strings.Contains(body, "no such host"), "%d %q", status, body)
}

func TestTheTLSNameIsThatOfTheAllowedHost(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(hello))
	t.Cleanup(server.Close)
	w := newWorld(t, nil, local(server.Listener.Addr().String()))
	for _, to := range []string{"example.com:443", "example.com:8443", "8.8.8.8:443"} {
		w.rules.let(to, false)
	}
	w.names.of["example.com"] = []string{"93.184.216.34"}
	dial := func(to string) net.Conn {
		t.Helper()
		conn := expect.Of(net.Dial("tcp", w.http))(t)
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
		res, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
		expect.Must(t, err == nil && res.StatusCode == 200, "%s: %v %v", to, res, err)
		return conn
	}
	for _, c := range []struct {
		to, name string
		pieces   int // bytes of a write
		fine     bool
	}{
		{"example.com:443", "example.com", 0, true},
		{"example.com:443", "Example.COM", 0, true},
		{"example.com:443", "example.com", 1, true},
		{"example.com:443", "example.com", 7, true},
		{"example.com:443", "evil.example", 0, false},
		{"example.com:443", "evil.example", 3, false},
		{"example.com:443", "sub.example.com", 0, false},
		{"example.com:443", "", 0, false},
		{"example.com:8443", "evil.example", 0, false},
		{"example.com:8443", "example.com", 0, true},
		{"8.8.8.8:443", "", 0, true},
		{"8.8.8.8:443", "evil.example", 0, false},
	} {
		conn := dial(c.to)
		if c.pieces > 0 {
			conn = &chopped{conn, c.pieces}
		}
		err := tls.Client(conn, &tls.Config{ServerName: c.name, InsecureSkipVerify: true}).Handshake()
		expect.Is(t, err == nil, c.fine, c.to, "as", c.name, err)
		conn.Close()
		<-w.rules.over
	}
	if n := strings.Count(w.rules.said(), " tls_name: "); n != 6 {
		t.Errorf("%d cuts:\n%s", n, w.rules.said())
	}
	for to, first := range map[string]string{
		"example.com:443":  "GET / HTTP/1.1\r\n\r\n",
		"example.com:8443": "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
	} {
		conn := dial(to)
		io.WriteString(conn, first)
		n, err := io.Copy(io.Discard, conn)
		expect.True(t, n == 0, "%s: %d bytes came back, %v", to, n, err)
		<-w.rules.over
	}
	if !strings.Contains(w.rules.said(), "is no TLS") || !strings.Contains(w.rules.said(), "can't be read") {
		t.Errorf("told:\n%s", w.rules.said())
	}
}

// chopped writes in pieces.
type chopped struct {
	net.Conn
	n int
}

func (c *chopped) Write(b []byte) (int, error) {
	for at := 0; at < len(b); at += c.n {
		if _, err := c.Conn.Write(b[at:min(len(b), at+c.n)]); err != nil {
			return at, err
		}
	}
	return len(b), nil
}

// echo is a server that speaks first, then repeats what it hears and its end.
func echo(t *testing.T) string {
	t.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.WriteString(conn, "hi\n")
				io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

func TestAServerMaySpeakFirstAndEachSideEndsForItself(t *testing.T) {
	w := newWorld(t, nil, local(echo(t)))
	w.rules.let("8.8.8.8:22", false)
	conn := w.tunnel("8.8.8.8:22")
	line := make([]byte, 3)
	_, err := io.ReadFull(conn, line)
	expect.Must(t, err == nil && string(line) == "hi\n", "%q %v", line, err)
	io.WriteString(conn, "SSH-2.0-x\r\n")
	conn.CloseWrite()
	rest, err := io.ReadAll(conn)
	expect.True(t, err == nil && string(rest) == "SSH-2.0-x\r\n", "%q %v", rest, err)
	<-w.rules.over
	expect.Is(t, w.rules.used["8.8.8.8:22"], [2]int64{11, 14}, "bytes")
}

// tunnel opens one by CONNECT.
func (w *world) tunnel(to string) *net.TCPConn {
	w.t.Helper()
	conn := expect.Of(net.Dial("tcp", w.http))(w.t)
	w.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\n\r\n", to)
	answer := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	_, err := io.ReadFull(conn, answer)
	expect.Must(w.t, err == nil && strings.HasPrefix(string(answer), "HTTP/1.1 200 "), "%q %v", answer, err)
	return conn.(*net.TCPConn)
}

func TestADenyCutsAnOpenTunnel(t *testing.T) {
	w := newWorld(t, nil, local(echo(t)))
	w.rules.let("8.8.8.8:22", false)
	conn := w.tunnel("8.8.8.8:22")
	expect.Of(io.ReadFull(conn, make([]byte, 3)))(t)
	w.rules.deny("8.8.8.8:22")
	_, err := io.Copy(io.Discard, conn)
	expect.True(t, err == nil || strings.Contains(err.Error(), "reset"), "%v", err)
	<-w.rules.over
	expect.Has(t, w.rules.said(), "8.8.8.8:22 rule: an egress rule denies it now")
}

func TestCloseEndsWhatIsOpen(t *testing.T) {
	w := newWorld(t, nil, local(echo(t)))
	w.rules.let("8.8.8.8:22", false)
	conn := w.tunnel("8.8.8.8:22")
	expect.Of(io.ReadFull(conn, make([]byte, 3)))(t)
	expect.No(t, w.proxy.Close())
	got := w.rules.used["8.8.8.8:22"]
	expect.True(t, got[1] == 3, "the decider was not told before Close returned: %v", got)
	late := expect.Of(net.Dial("tcp", w.http))(t)
	defer late.Close()
	n, _ := io.Copy(io.Discard, late)
	expect.True(t, n == 0, "a closed proxy answered")
}

func TestWhatIsNoProxyRequestIsRefused(t *testing.T) {
	w := newWorld(t, nil, nil)
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n":                                               "400",
		"GET https://x.example/ HTTP/1.1\r\nHost: x\r\n\r\n":                              "400",
		"GET http://u:p@x.example/ HTTP/1.1\r\nHost: x\r\n\r\n":                           "400",
		"GET http://x.example:99999/ HTTP/1.1\r\nHost: x\r\n\r\n":                         "400",
		"GET http://127.1/ HTTP/1.1\r\nHost: x\r\n\r\n":                                   "400",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n":                                           "400",
		"CONNECT x.example HTTP/1.1\r\n\r\n":                                              "400",
		"CONNECT [::1 HTTP/1.1\r\n\r\n":                                                   "400",
		"CONNECT x.example:443 HTTP/1.1\r\n\r\n":                                          "403",
		"GET http://x.example/ HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 100<<10): "431",
		"\x16\x03\x01\r\n\r\n":                                                            "400",
	} {
		conn := expect.Of(net.Dial("tcp", w.http))(t)
		go io.WriteString(conn, request)
		head := make([]byte, 12)
		_, err := io.ReadFull(conn, head)
		expect.True(t, err == nil && strings.HasPrefix(string(head), "HTTP/1.1 "+want), "%.60q: %q %v", request, head, err)
		conn.Close()
	}
	expect.Is(t, len(w.rules.asked), 1, "asked about", w.rules.asked)
}

func TestSOCKSAnswersInItsOwnWords(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.rules.let("gone.example:80", false)
	name := func(host string) string { return "\x03" + string(rune(len(host))) + host + "\x00\x50" }
	for request, want := range map[string]byte{
		"\x05\x01\x00" + "\x05\x01\x00" + name("x.example"):              2,
		"\x05\x02\x02\x00" + "\x05\x01\x00" + name("x\x00.example"):      2,
		"\x05\x01\x00" + "\x05\x01\x00" + "\x01\x7f\x00\x00\x01\x00\x50": 2,
		"\x05\x01\x00" + "\x05\x01\x00" + name("gone.example"):           4,
		"\x05\x01\x00" + "\x05\x02\x00" + name("x.example"):              7,
		"\x05\x01\x00" + "\x05\x03\x00" + name("x.example"):              7,
		"\x05\x01\x00" + "\x05\x01\x00" + "\x05aaaa\x00\x50":             8,
	} {
		conn := expect.Of(net.Dial("tcp", w.socks))(t)
		io.WriteString(conn, request)
		reply := make([]byte, 12)
		_, err := io.ReadFull(conn, reply)
		expect.True(t, err == nil && string(reply[:2]) == "\x05\x00" && reply[3] == want, "%q: % x %v", request, reply, err)
		conn.Close()
	}
	for request, want := range map[string]string{"\x04\x01": "", "\x05\x01\x02": "\x05\xff", "GET / HTTP/1.1": ""} {
		conn := expect.Of(net.Dial("tcp", w.socks))(t)
		io.WriteString(conn, request)
		conn.(*net.TCPConn).CloseWrite()
		got, _ := io.ReadAll(conn)
		expect.True(t, string(got) == want, "%q: %q", request, got)
		conn.Close()
	}
}

func TestOneRunHoldsOnlySoManyConnections(t *testing.T) {
	w := newWorld(t, nil, nil)
	var all []net.Conn
	for range 256 {
		conn := expect.Of(net.Dial("tcp", w.socks))(t)
		defer conn.Close()
		io.WriteString(conn, "\x05\x01\x00")
		if _, err := io.ReadFull(conn, make([]byte, 2)); err != nil { // it is served
			t.Fatal(err)
		}
		all = append(all, conn)
	}
	more := expect.Of(net.Dial("tcp", w.socks))(t)
	defer more.Close()
	n, _ := io.Copy(io.Discard, more)
	expect.True(t, n == 0 && len(all) == 256, "one more was served")
}

// waiting decides only when the connection is given up.
type waiting struct {
	*rules
	began, gone chan struct{}
}

func (w waiting) Decide(ctx context.Context, _ egress.Origin, _ egress.Request) egress.Verdict {
	close(w.began)
	<-ctx.Done()
	close(w.gone)
	return egress.Verdict{Reason: "it went"}
}

func TestAClientThatGoesIsAskedAboutNoMore(t *testing.T) {
	d := waiting{newRules(), make(chan struct{}), make(chan struct{})}
	w := newWorld(t, d, nil)
	conn := expect.Of(net.Dial("tcp", w.http))(t)
	io.WriteString(conn, "CONNECT x.example:443 HTTP/1.1\r\n\r\n")
	<-d.began
	conn.Close()
	<-d.gone
}
