package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"swarmdeck/drivers/cell/ca"
	proxy "swarmdeck/drivers/egress"
	"swarmdeck/engine/egress"
	"swarmdeck/expect"
)

// inspected is a world whose one cell has an authority of its own, and whose
// names all lead to one server.
func inspected(t testing.TB, decider proxy.Decider, server *httptest.Server) *world {
	t.Helper()
	w := newWorld(t, decider, local(server.Listener.Addr().String()), func(w *world, opt *proxy.Options) {
		w.authority = expect.Of(ca.New())(t)
		opt.Roots = x509.NewCertPool()
		if server.TLS != nil {
			opt.Roots.AddCert(server.Certificate())
		}
	})
	for _, host := range []string{"example.com", "www.example.com"} { // what the server's certificate is for
		w.names.of[host] = []string{"8.8.8.8"}
	}
	return w
}

// inCell is a client that trusts what its cell trusts.
func (w *world) inCell(scheme string) *http.Client {
	at := &url.URL{Scheme: scheme, Host: w.http}
	if scheme != "http" {
		at.Host = w.socks
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(w.authority.Certificate())
	transport := &http.Transport{Proxy: http.ProxyURL(at), ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: trust}}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func send(t *testing.T, c *http.Client, method, url, body string, header ...string) (int, string) {
	t.Helper()
	r := expect.Of(http.NewRequest(method, url, strings.NewReader(body)))(t)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	data := expect.Of(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(data)
}

func TestEachRequestIsDecidedByMethodAndPath(t *testing.T) {
	for _, scheme := range []string{"http", "socks5h"} {
		t.Run(scheme, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(hello))
			t.Cleanup(server.Close)
			w := inspected(t, nil, server)
			w.rules.let("example.com:443 GET", false)
			c := w.inCell(scheme)
			if status, body := send(t, c, "GET", "https://example.com/a%2fb?q=1;2", ""); status != 200 || body != "GET example.com /a/b 0" {
				t.Errorf("%d %s", status, body)
			}
			status, body := send(t, c, "POST", "https://example.com/v1", "words")
			if status != 403 || !strings.Contains(body, "swarmdeck: no route to example.com:443 for POST /v1: a test  says: no; ask with: swarmdeck egress allow example.com:443 --method POST") {
				t.Errorf("%d %s", status, body)
			}
			status, body = send(t, c, "GET", "https://example.com/again", "")
			expect.True(t, status == 200, "%d %s", status, body)
			status, body = send(t, c, "GET", "https://example.com/", "", "X-HTTP-Method-Override", "DELETE")
			expect.True(t, status == 403 && strings.Contains(body, "for DELETE /"), "a header names another method: %d %s", status, body)
			status, body = send(t, c, "get", "https://example.com/", "")
			expect.True(t, status == 400, "%d %s", status, body)
			c.CloseIdleConnections()
			<-w.rules.over
			used := w.rules.used["example.com:443"]
			expect.True(t, used[0] >= 300 && used[1] >= 300, "%v", used)
		})
	}
}

func TestNothingGoesOutBeforeARequestIsAllowed(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(hello))
	t.Cleanup(server.Close)
	w := inspected(t, nil, server)
	status, _ := send(t, w.inCell("http"), "GET", "https://www.example.com/", "")
	expect.True(t, status == 403 && w.names.asked == 0, "%d, %d names were looked up", status, w.names.asked)
}

func TestPlainRequestsAreDecidedInTheSameWay(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(hello))
	t.Cleanup(server.Close)
	w := inspected(t, nil, server)
	w.rules.let("example.com:80 GET", false)
	for name, c := range map[string]*http.Client{"absolute": w.inCell("http"), "tunnel": w.inCell("socks5h")} {
		status, body := send(t, c, "GET", "http://example.com/x", "")
		expect.True(t, status == 200 && body == "GET example.com /x 0", "%s: %d %s", name, status, body)
		status, body = send(t, c, "PUT", "http://example.com/x", "y")
		expect.True(t, status == 403 && strings.Contains(body, "for PUT /x"), "%s: %d %s", name, status, body)
	}
}

func TestTheHostsServerIsVerified(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	w := inspected(t, nil, server)
	w.names.of["other.test"] = []string{"8.8.8.8"}
	w.rules.let("other.test:443 GET", false)
	status, body := send(t, w.inCell("http"), "GET", "https://other.test/", "")
	expect.True(t, status == 502 && strings.Contains(body, "certificate is valid for example.com"), "%d %s", status, body)
}

func TestAClientThatPinsFailsAndTheLogSaysWhy(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(hello))
	t.Cleanup(server.Close)
	w := inspected(t, nil, server)
	w.rules.let("example.com:443", false)
	_, _, err := get(w.client("http", server), "https://example.com/")
	expect.Says(t, err, "certificate")
	if said := w.rules.waitCut(); !strings.Contains(said, "tls_refused: the client refuses the certificate of its cell") || !strings.Contains(said, "swarmdeck egress allow example.com:443 --inspect=false") {
		t.Error(said)
	}
	// Its host is left unread by a rule.
	w.rules.mu.Lock()
	w.rules.opaque["example.com:443"] = true
	w.rules.mu.Unlock()
	status, body, err := get(w.client("http", server), "https://example.com/")
	expect.True(t, err == nil && status == 200, "%v %v %v", status, body, err)
}

func TestWhatCanNotBeReadGoesNowhere(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(hello))
	t.Cleanup(server.Close)
	w := inspected(t, nil, server)
	w.rules.let("example.com:443 GET", false)
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(w.authority.Certificate())
	dial := func(conf *tls.Config) *tls.Conn {
		conn := expect.Of(net.Dial("tcp", w.http))(t)
		t.Cleanup(func() { conn.Close() })
		io.WriteString(conn, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
		line := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
		expect.Of(io.ReadFull(conn, line))(t)
		conf.RootCAs = trust
		return tls.Client(conn, conf)
	}
	// Another name in the greeting, and a protocol that is not HTTP/1.1.
	expect.Fails(t, dial(&tls.Config{ServerName: "www.example.com"}).Handshake(), "another name")
	expect.Has(t, w.rules.waitCut(), "tls_name")
	expect.Fails(t, dial(&tls.Config{ServerName: "example.com", NextProtos: []string{"h2"}}).Handshake(), "another protocol")
	expect.Has(t, w.rules.waitCut(), "tls_refused: TLS with the client failed")
	// Another host in the request.
	for _, request := range []string{"GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n", "GET https://www.example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n"} {
		conn := dial(&tls.Config{ServerName: "example.com"})
		io.WriteString(conn, request)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		expect.True(t, err == nil && res.StatusCode == http.StatusMisdirectedRequest, "%v %v", res, err)
		expect.Has(t, w.rules.waitCut(), `names the host "www.example.com"`)
	}
}

func TestAnUpgradedConnectionIsATunnelOnceItIsAllowed(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		io.Copy(conn, buf)
	}))
	t.Cleanup(server.Close)
	w := inspected(t, nil, server)
	w.rules.let("example.com:443 WEBSOCKET", false)
	r, _ := http.NewRequest("GET", "https://example.com/ws", nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	res, err := w.inCell("http").Do(r)
	expect.Must(t, err == nil && res.StatusCode == http.StatusSwitchingProtocols, "%v %v", res, err)
	both := res.Body.(io.ReadWriteCloser)
	defer both.Close()
	io.WriteString(both, "over and back")
	back := make([]byte, len("over and back"))
	_, err = io.ReadFull(both, back)
	expect.True(t, err == nil && string(back) == "over and back", "%q %v", back, err)
	w.rules.deny("example.com:443 WEBSOCKET")
	n, _ := both.Read(back)
	expect.True(t, n == 0, "a rule that denies ends it")
}

func TestNoOtherProtocolFollowsARequest(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q %q", r.Header.Get("Upgrade"), r.Header.Get("HTTP2-Settings"))
	}))
	t.Cleanup(server.Close)
	w := inspected(t, nil, server)
	w.rules.let("example.com:443 GET", false)
	c := w.inCell("http")
	status, body := send(t, c, "GET", "https://example.com/", "", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABk")
	expect.True(t, status == 200 && body == `"" ""`, "%d %s", status, body)
	status, body = send(t, c, "GET", "https://example.com/", "", "Connection", "Upgrade", "Upgrade", "websocket")
	expect.True(t, status == 403 && strings.Contains(body, "for WEBSOCKET /"), "a web socket is more than a GET: %d %s", status, body)
}

// once lets one request through, and is told whether that is an answer.
type once struct {
	*rules
	left int
}

func (o *once) Decide(_ context.Context, _ egress.Origin, to egress.Request) egress.Verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left--
	return egress.Verdict{Allowed: o.left >= 0, Asked: true, Reason: "once is once"}
}

func TestAnAnswerHoldsForTheConnection(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(hello))
	t.Cleanup(server.Close)
	o := &once{newRules(), 1}
	w := inspected(t, o, server)
	c := w.inCell("http")
	for _, at := range []struct {
		path string
		want int
	}{{"/a", 200}, {"/a", 200}, {"/b", 403}, {"/a", 200}} {
		status, body := send(t, c, "GET", "https://example.com"+at.path, "")
		expect.True(t, status == at.want, "%s: %d %s", at.path, status, body)
	}
	c.CloseIdleConnections()
	status, _ := send(t, c, "GET", "https://example.com/a", "")
	expect.True(t, status == 403, "another connection: %d", status)
	o.deny("example.com:443 GET")
}
