package builtin

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
)

// Bounds of a request.
const (
	maxURL       = 8192
	maxRedirects = 5
	// A server that takes longer than this for one step is not answering; how
	// long it takes in all is bounded by the time-out of the try.
	dialTimeout   = 10 * time.Second
	answerTimeout = 30 * time.Second
	// maxHeaderBytes of an answer.
	maxHeaderBytes = 64 << 10
)

type httpParams struct {
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers" allow:"at most 50"`
	MaxBytes int               `json:"max_bytes" allow:"none or 1-1048576"`
}

// httpResult has the body as text, or in base64 when it is none.
type httpResult struct {
	Status     int               `json:"status"`
	URL        string            `json:"url"` // of the answer, after redirects
	Headers    map[string]string `json:"headers"`
	Body       *string           `json:"body,omitzero"`
	BodyBase64 string            `json:"body_base64,omitempty"`
}

func httpGet(ctx context.Context, call skill.Call, hold *skill.Hold) (core.Raw, error) {
	var p httpParams
	if err := read(call, &p); err != nil {
		return nil, err
	}
	most := cmp.Or(p.MaxBytes, defaultBytes)
	req, err := p.request(ctx)
	if err != nil {
		return nil, err
	}
	if err := hold.Wait(ctx); err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport(), CheckRedirect: follow}
	var resp *http.Response
	paused := hold.Idle(ctx, func() { resp, err = client.Do(req) })
	if err != nil {
		return nil, unavailable(err)
	}
	defer resp.Body.Close()
	if paused != nil {
		return nil, paused
	}
	body, err := readBody(ctx, hold, resp.Body, most)
	if err != nil {
		return nil, err
	}
	out := httpResult{Status: resp.StatusCode, URL: resp.Request.URL.Redacted(), Headers: map[string]string{}}
	for name, values := range resp.Header {
		out.Headers[valid(name)] = valid(strings.Join(values, ", "))
	}
	if s := string(body); utf8.ValidString(s) {
		out.Body = &s
	} else {
		out.BodyBase64 = base64.StdEncoding.EncodeToString(body)
	}
	return core.Encode(out)
}

// request checks everything before anything is sent.
func (p *httpParams) request(ctx context.Context) (*http.Request, error) {
	u, err := url.Parse(p.URL)
	if err != nil || len(p.URL) > maxURL || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, core.Invalid("url", p.URL, "an http or https address of at most 8192 bytes")
	}
	if err := checkHost(u); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return nil, core.Invalid("url", p.URL, "an http or https address")
	}
	req.Header.Set("User-Agent", "swarmdeck")
	for name, value := range p.Headers {
		if !isToken(name) || strings.EqualFold(name, "Host") {
			return nil, core.Invalid("headers", name, "names of letters, digits and -, but not Host")
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) || len(value) > maxURL {
			return nil, core.Invalid("headers."+name, value, "a value without control characters, at most 8192 bytes")
		}
		req.Header.Set(name, value)
	}
	return req, nil
}

// follow lets a redirect pass within its host, whose address is what was
// approved, and from http to https, never back to what can be listened to.
func follow(req *http.Request, via []*http.Request) error {
	last := via[len(via)-1].URL
	secured := last.Scheme == "http" && req.URL.Scheme == "https"
	switch {
	case len(via) > maxRedirects:
		return &skill.Failure{Code: "redirect_refused", Message: fmt.Sprintf("more than %d redirects", maxRedirects)}
	case req.URL.Host != last.Host || req.URL.Scheme != last.Scheme && !secured:
		return &skill.Failure{Code: "redirect_refused", Message: fmt.Sprintf(
			"it redirects from %s://%s to %s: ask for that address itself", last.Scheme, last.Host, req.URL.Redacted())}
	}
	return checkHost(req.URL)
}

// transport serves one request: what stays open for the next would outlive
// the skill.
func transport() http.RoundTripper {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, Control: checkDial}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  answerTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableKeepAlives:      true,
		ForceAttemptHTTP2:      true,
	}
}

// readBody reads up to most bytes; a longer body is refused, since half of a
// document is none.
func readBody(ctx context.Context, hold *skill.Hold, from io.Reader, most int) ([]byte, error) {
	var body []byte
	chunk := make([]byte, 32<<10)
	for {
		var n int
		var err error
		if paused := hold.Idle(ctx, func() { n, err = from.Read(chunk) }); paused != nil {
			return nil, paused
		}
		if body = append(body, chunk[:n]...); len(body) > most {
			return nil, tooLarge("the body", most)
		}
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, unavailable(fmt.Errorf("read the body: %w", err))
		}
	}
}

func tooLarge(what string, most int) error {
	return &skill.Failure{Code: "too_large", Message: fmt.Sprintf("%s is longer than max_bytes, %d", what, most)}
}

// unavailable is a failure of the network, which another try may not meet.
func unavailable(err error) error {
	if f, ok := errors.AsType[*skill.Failure](err); ok {
		return f
	}
	return core.Errorf(core.Unavailable, "%s", valid(err.Error()))
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// isToken reports whether a header may have this name (RFC 9110, 5.1).
func isToken(s string) bool {
	return s != "" && len(s) <= 200 && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// metadata are addresses outside of the link-local ranges at which a cloud
// gives its machines' credentials to whoever asks: Alibaba, Azure, Oracle, and
// Amazon's and Google's of IPv6.
func metadata() []netip.Addr {
	return []netip.Addr{
		netip.AddrFrom4([4]byte{100, 100, 100, 200}), netip.AddrFrom4([4]byte{168, 63, 129, 16}), netip.AddrFrom4([4]byte{192, 0, 0, 192}),
		netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
	}
}

// checkAddress refuses addresses that mean this machine's place in its network
// rather than a server: link-local ones and those of a cloud's metadata.
func checkAddress(a netip.Addr) error {
	for _, a := range meanings(a.WithZone("")) {
		refused := a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast()
		for _, m := range metadata() {
			refused = refused || a == m
		}
		if refused {
			return &skill.Failure{Code: "address_refused", Message: fmt.Sprintf("%s is a link-local address or that of a cloud's metadata, which no skill may ask", a)}
		}
	}
	return nil
}

// meanings are an address and the one of IPv4 that it may carry: mapped,
// compatible, NAT64 (RFC 6052) or 6to4 (RFC 3056).
func meanings(a netip.Addr) []netip.Addr {
	a = a.Unmap()
	if a.Is4() {
		return []netip.Addr{a}
	}
	b := a.As16()
	in := func(at int) netip.Addr { return netip.AddrFrom4([4]byte(b[at : at+4])) }
	switch {
	case [12]byte(b[:12]) == [12]byte{}, [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}:
		return []netip.Addr{a, in(12)}
	case b[0] == 0x20 && b[1] == 0x02:
		return []netip.Addr{a, in(2)}
	}
	return []netip.Addr{a}
}

// checkDial looks at the address that is dialled, after the name was resolved:
// what a name resolves to when it is asked twice may differ.
func checkDial(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	return checkAddress(a)
}

// checkHost looks at an address in a URL itself: a proxy would dial it for us.
func checkHost(u *url.URL) error {
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		return checkAddress(a)
	}
	return nil
}
