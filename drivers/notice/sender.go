// Package notice carries notices to a URL, signed by the Standard Webhooks
// scheme (standardwebhooks.com, spec 1.0.0), or to a command's stdin.
package notice

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/notice"
)

const maxComplaint = 300 // bytes of stderr that an error repeats

// run gives a message to a command: the JSON and a newline on stdin, its id in
// NOTICE_ID. Exit 0 says that it arrived.
func (s *Sender) run(ctx context.Context, n notice.Notice, m notice.Message) error {
	if s.opt.Supervisor == nil {
		return errors.New("no command can be started here")
	}
	complaint := ""
	lines := &pipe.Splitter{Max: maxComplaint, Emit: func(line []byte, _ int) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			complaint = ": " + pipe.Text(line)
		}
	}}
	exit, err := s.opt.Supervisor.Run(ctx, cell.Spec{
		Run: "notice-" + n.Name, Argv: n.Command, Dir: s.opt.Dir, Env: map[string]string{"NOTICE_ID": m.ID},
		Limits: cell.DefaultLimits(), Wall: cell.Wall{Profile: cell.Open},
	}, bytes.NewReader(append(bytes.Clone(m.Body), '\n')), nil, lines)
	if err != nil {
		return err
	}
	lines.Close()
	if exit.Code != 0 {
		return fmt.Errorf("the command %s%s", exit.Describe(), complaint)
	}
	return nil
}

// Options of New.
type Options struct {
	Supervisor *cell.Supervisor    // owns the commands; nil starts none
	Dir        string              // absolute; where commands run
	Getenv     func(string) string // finds the secrets
	Patience   time.Duration       // for one try, the whole of it; 0 means 10 s
	Now        func() time.Time    // nil means the system's
}

// Sender sends one message after the other wherever its notice says. It is
// safe for concurrent use.
type Sender struct {
	opt    Options
	client *http.Client
}

var _ notice.Sender = (*Sender)(nil)

// New makes a sender; Close it when done.
func New(opt Options) *Sender {
	opt.Patience = cmp.Or(opt.Patience, 10*time.Second)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Sender{opt: opt, client: newClient()}
}

// Close lets go of idle connections.
func (s *Sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

func (s *Sender) Send(ctx context.Context, n notice.Notice, m notice.Message) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opt.Patience, fmt.Errorf("no answer within %s", s.opt.Patience))
	defer cancel()
	if n.URL != "" {
		return s.post(ctx, n, m)
	}
	return s.run(ctx, n, m)
}

// Bounds of what a server may answer: nothing of it is of interest but the
// status and Retry-After.
const (
	maxAnswer  = 64 << 10
	maxHeaders = 16 << 10
)

// newClient is a client that follows no redirect: the address that was given
// is the one that is meant.
func newClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			MaxResponseHeaderBytes: maxHeaders,
			MaxIdleConns:           20,
			MaxIdleConnsPerHost:    1,
			MaxConnsPerHost:        8,
			IdleConnTimeout:        30 * time.Second,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
		},
	}
}

func (s *Sender) post(ctx context.Context, n notice.Notice, m notice.Message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL, bytes.NewReader(m.Body))
	if err != nil {
		return errors.New("the URL can't be used")
	}
	stamp := strconv.FormatInt(s.opt.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "swarmdeck")
	req.Header.Set("webhook-id", m.ID)
	req.Header.Set("webhook-timestamp", stamp)
	if n.SecretEnv != "" {
		key, err := secret(n.SecretEnv, s.opt.Getenv(n.SecretEnv))
		if err != nil {
			return err
		}
		req.Header.Set("webhook-signature", sign(key, m.ID, stamp, m.Body))
	}
	res, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("send to %s: %w", req.URL.Host, told(ctx, err))
	}
	defer res.Body.Close()
	// Read to its end where that is near, so that the connection can be used again.
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	return judged(req.URL.Host, res, s.opt.Now())
}

// told is the error without the URL, whose path may be as good as a password.
func told(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// judged is what a status means (Standard Webhooks, "Deliverability and
// reliability").
func judged(host string, res *http.Response, now time.Time) error {
	code := res.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	f := &notice.Failure{After: retryAfter(res.Header.Get("Retry-After"), now)}
	hint := ""
	switch {
	case code >= 300 && code < 400:
		hint = "; redirects are not followed"
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
	case code >= 400 && code < 500:
		f.Final = true
	}
	f.Err = fmt.Errorf("%s answered %d %s%s", host, code, http.StatusText(code), hint)
	return f
}

// retryAfter reads seconds or a date (RFC 9110 10.2.3); 0 for what is neither.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return time.Duration(min(n, 24*3600)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(now)), 24*time.Hour)
	}
	return 0
}

// secret is the key of a signing secret: whsec_ and base64 of 24-64 bytes.
// Nothing of it is ever repeated.
func secret(name, text string) ([]byte, error) {
	if text == "" {
		return nil, fmt.Errorf("the environment variable %s, which is to hold the signing secret, is not set where the engine runs", name)
	}
	rest, ok := strings.CutPrefix(text, "whsec_")
	key, err := base64.StdEncoding.DecodeString(rest)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return nil, fmt.Errorf("the environment variable %s holds no signing secret: want whsec_ and base64 of 24-64 bytes", name)
	}
	return key, nil
}

// sign is the webhook-signature: version, comma, base64 of the HMAC-SHA256
// over id.timestamp.body.
func sign(key []byte, id, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, stamp)
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
