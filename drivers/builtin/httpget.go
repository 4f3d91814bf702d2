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
	"net/url"
	"strings"
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
