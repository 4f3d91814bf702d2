package coder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/coder/v2/codersdk"

	"swarmdeck/engine/core"
)

const (
	// maxBody bounds one answer; a page of fifty workspaces is far below it.
	maxBody = 32 << 20
	// maxEvent bounds one event: a workspace with many statuses has some hundred
	// kilobytes, a screen of an agent less.
	maxEvent = 8 << 20
	// maxRetryAfter bounds how long a server may ask for silence.
	maxRetryAfter = 2 * time.Minute
	apiPath       = "/api/v2/"
)

// transport is the only way to a deployment. It alone knows the token and
// adds it to requests to its own host; others it does not send. After a 429
// nothing is sent until the time that the server has named.
type transport struct {
	base  http.RoundTripper
	home  *url.URL
	token func() (string, error)

	mu    sync.Mutex
	until time.Time
}

func newTransport(home *url.URL, token func() (string, error)) *transport {
	return &transport{home: home, token: token, base: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute, // the first call to an agent takes 5 s, a message longer
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   32,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 20 * time.Second, PingTimeout: 10 * time.Second},
	}}
}

// client is an http.Client over the transport. It has no timeout, which would
// end the streams, and no cookie jar.
func (t *transport) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if t.own(req.URL) {
			return nil
		}
		return elsewhere(req.URL)
	}}
}

func (t *transport) own(u *url.URL) bool { return u.Scheme == t.home.Scheme && u.Host == t.home.Host }

func elsewhere(u *url.URL) error {
	return core.Errorf(core.Unavailable, "url: the server redirects to %s; nothing is sent there, name that address if it is the right one",
		core.OneLine(u.Scheme+"://"+u.Host, 200)).With("field", "url")
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.send(req)
	if err != nil && req.Body != nil {
		_ = req.Body.Close()
	}
	return resp, err
}

func (t *transport) send(req *http.Request) (*http.Response, error) {
	if !t.own(req.URL) {
		return nil, elsewhere(req.URL)
	}
	token, err := t.token()
	if err != nil {
		return nil, err
	}
	for tries := 0; ; tries++ {
		if err := t.wait(req.Context()); err != nil {
			return nil, err
		}
		r := req.Clone(req.Context())
		r.Header.Set(codersdk.SessionTokenHeader, token)
		if tries > 0 && req.GetBody != nil {
			if r.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err := t.base.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusTooManyRequests {
			t.postpone(retryAfter(resp.Header, time.Now()))
			if tries == 0 && (req.Body == nil || req.GetBody != nil) {
				_, _ = io.CopyN(io.Discard, resp.Body, 4096)
				_ = resp.Body.Close()
				continue
			}
		}
		return guard(req, resp)
	}
}

// wait holds a request back while the server wants silence. One that would be
// too late is refused at once.
func (t *transport) wait(ctx context.Context) error {
	t.mu.Lock()
	left := time.Until(t.until)
	t.mu.Unlock()
	if left <= 0 {
		return ctx.Err()
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < left {
		return core.Errorf(core.Unavailable, "the server's rate limit is reached; it takes requests again in %v", left.Round(time.Second)).
			With("retry_after_s", int(left.Seconds()+1))
	}
	core.Within(ctx.Done(), left)
	return ctx.Err()
}

func (t *transport) postpone(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until := time.Now().Add(d); until.After(t.until) {
		t.until = until
	}
}

// retryAfter reads the header (RFC 9110, 10.2.3): seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	d := time.Second
	if n, err := strconv.Atoi(value); err == nil && n >= 0 {
		d = time.Duration(min(n, int(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

// guard bounds an answer, and refuses a web page in the API's place.
func guard(req *http.Request, resp *http.Response) (*http.Response, error) {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, nil
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/html" && strings.HasPrefix(req.URL.Path, apiPath) && resp.StatusCode < 300 {
		_ = resp.Body.Close()
		return nil, core.Errorf(core.Unavailable, "url: this address answers with a web page, not with the Coder API").With("field", "url")
	}
	if kind != "text/event-stream" {
		resp.Body = &bounded{resp.Body, maxBody}
	}
	return resp, nil
}

// bounded fails a body that is too long.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d MiB", maxBody>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// closeIdle lets go of connections that nobody uses.
func (t *transport) closeIdle() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// explain turns any failure of a call into one error that says what was
// attempted, what is wrong and which field is to be looked at.
func explain(what string, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*core.Error](err); ok { // ours, from the transport
		return fmt.Errorf("%s: %w", what, known)
	}
	if answer, ok := codersdk.AsError(err); ok {
		return fmt.Errorf("%s: %w", what, answered(answer))
	}
	return fmt.Errorf("%s: %w", what, broken(err))
}

// answered is the table of the server's refusals.
func answered(e *codersdk.Error) *core.Error {
	text := core.OneLine(e.Message, 300)
	if d := core.OneLine(e.Detail, 300); d != "" && d != text {
		text += " (" + d + ")"
	}
	field, allowed := "", ""
	for _, v := range e.Validations {
		field, allowed = core.OneLine(v.Field, 64), core.OneLine(v.Detail, 200)
		text += "; " + field + ": " + allowed
	}
	with := func(code core.Code, field, format string, args ...any) *core.Error {
		err := core.Errorf(code, format, args...).With("status", e.StatusCode())
		if field != "" {
			err = err.With("field", field)
		}
		return err
	}
	switch e.StatusCode() {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return with(core.InvalidInput, field, "the server refuses it: %s", text)
	case http.StatusUnauthorized:
		return with(core.Unavailable, "token", "token: the server does not know it, or it has expired")
	case http.StatusForbidden:
		return with(core.Unavailable, "token", "token: it may not do that: %s", text)
	case http.StatusNotFound, http.StatusGone:
		return with(core.NotFound, field, "it is not there, or not for this token: %s", text)
	case http.StatusConflict:
		return with(core.Conflict, field, "%s", text)
	case http.StatusTooManyRequests:
		return with(core.Unavailable, "", "the server's rate limit is reached")
	case http.StatusInternalServerError:
		return with(core.Internal, field, "the server failed: %s", text)
	}
	return with(core.Unavailable, field, "the server answers %d: %s", e.StatusCode(), text)
}

// broken is a call without an answer that can be read.
func broken(err error) *core.Error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	var failed *url.Error
	switch {
	case errors.As(err, &syntax), errors.As(err, &wrong):
		return core.Errorf(core.Unavailable, "url: this address does not answer like the Coder API").With("field", "url")
	case errors.Is(err, context.DeadlineExceeded):
		return core.Errorf(core.Unavailable, "the server does not answer in time")
	case errors.As(err, &failed):
		err = failed.Err // without the address, which may be long
	}
	return core.Errorf(core.Unavailable, "the server can't be reached: %s", core.OneLine(err.Error(), 300))
}

// gone reports that a thing is not there any more, or never was.
func gone(err error) bool { return errors.Is(err, core.Kind(core.NotFound)) }

// busy is the refusal of an agent that works (AgentBusyError).
func busy(name, why string) error {
	return core.Errorf(core.Conflict, "agent %s works: %s; only an idle agent takes a task", name, why).
		With("error", "AgentBusyError").With("field", "agent").With("value", name)
}
