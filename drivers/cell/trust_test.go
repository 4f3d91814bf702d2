package cell

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	proxy "swarmdeck/drivers/egress"
	"swarmdeck/engine/egress"
	"swarmdeck/expect"
)

// reading lets through what reads.
type reading struct{}

func (reading) Decide(_ context.Context, _ proxy.Origin, to egress.Request) egress.Verdict {
	return egress.Verdict{Allowed: to.Method == "GET", Reason: "no more than GET"}
}

func (reading) Denied(proxy.Origin, egress.Request) (bool, <-chan struct{})      { return false, nil }
func (reading) Opaque(proxy.Origin, egress.Target) bool                          { return false }
func (reading) Opened(proxy.Origin, egress.Target, func() (int64, int64)) func() { return func() {} }

func (reading) Cut(context.Context, proxy.Origin, egress.Request, string, string) {}

// one resolves every name to one public address.
type one struct{}

func (one) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
}

func TestAWorkerThatIsLookedIntoTrustsItsOwnAuthority(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Method, r.URL.Path) }))
	t.Cleanup(server.Close)
	opt := proxy.Options{Resolver: one{}, Roots: x509.NewCertPool(), Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}}
	opt.Roots.AddCert(server.Certificate())
	p := proxy.New(opt)
	p.Open(reading{})
	t.Cleanup(func() { _ = p.Close() })
	s, err := NewSupervisor(Options{Instance: "trust" + strconv.Itoa(os.Getpid()), Way: func(c Conn) {
		kind := proxy.HTTP
		if c.Port == PortSOCKS {
			kind = proxy.SOCKS
		}
		p.Serve(context.Background(), c.Conn, kind, proxy.Origin{Tenant: "t_acme", Run: c.Run}, c.Authority)
	}})
	expect.No(t, err)
	t.Cleanup(func() { _ = s.Close() })
	said := func(inspect bool, script string) string {
		t.Helper()
		c := start(t, s, Spec{Run: "r1", Argv: sh(script), Env: map[string]string{"PIP_CERT": "mine"}, Wall: Wall{Profile: Worker, Inspect: inspect}})
		c.Stdin.Close()
		go func() { _, _ = io.Copy(io.Discard, c.Stderr) }()
		out, _ := io.ReadAll(c.Stdout)
		return string(out)
	}
	for script, want := range map[string]string{
		"curl -sS https://example.com/a":                                         "GET/a",
		"curl -sS -X POST -d x https://example.com/a":                            "no more than GET",
		"echo $SSL_CERT_FILE $GIT_SSL_CAINFO $PIP_CERT":                          "/.trust.pem /.trust.pem mine",
		"unset SSL_CERT_FILE CURL_CA_BUNDLE; curl -sS https://example.com/store": "GET/store",
		"echo x >>/.trust.pem || echo fixed":                                     "fixed",
		"grep -l PRIVATE /.trust.pem || echo no key":                             "no key",
	} {
		expect.Has(t, said(true, script), want, script)
	}
	got := said(false, "echo $SSL_CERT_FILE; ls /.trust.pem || echo none")
	expect.True(t, strings.TrimSpace(got) == "none", "%q", got)
}

func TestOnlyAWorkerIsLookedInto(t *testing.T) {
	for _, profile := range []Profile{Reader, Open} {
		expect.Fails(t, CheckInspect("inspect", profile, true), profile)
	}
	expect.No(t, CheckInspect("inspect", Worker, true))
}
