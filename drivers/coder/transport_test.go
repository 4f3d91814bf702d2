package coder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/coder/v2/codersdk"
	"github.com/coder/websocket"
	"github.com/google/uuid"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

const secret = "s3cr3t-token-0123456789"

// siteOf is a deployment that a handler plays.
func siteOf(t *testing.T, h http.HandlerFunc) (*site, *httptest.Server) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	t.Setenv("CODER_TEST_TOKEN", secret)
	s := expect.Of(newSite(settings{URL: srv.URL, TokenEnv: "CODER_TEST_TOKEN"}))(t)
	return s, srv
}

func read(t *testing.T, s *site) *core.Error {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	_, err := s.workspace(ctx, uuid.New())
	expect.Must(t, err != nil, "no error")
	expect.True(t, !strings.Contains(err.Error(), secret), "the error names the token: %v", err)
	return core.AsError(err)
}

func TestEachRefusalHasOneClearError(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		code   core.Code
		field  string
		want   string
	}{
		{400, `{"message":"Validation failed","validations":[{"field":"name","detail":"too long"}]}`, core.InvalidInput, "name", "name: too long"},
		{401, `{"message":"cookie coder_session_token; run coder login"}`, core.Unavailable, "token", "does not know it, or it has expired"},
		{403, `{"message":"Forbidden"}`, core.Unavailable, "token", "it may not do that: Forbidden"},
		{404, `{"message":"Resource not found"}`, core.NotFound, "", "Resource not found"},
		{410, `{"message":"Workspace was deleted"}`, core.NotFound, "", "Workspace was deleted"},
		{409, `{"message":"A workspace build is already active.","validations":[{"field":"name","detail":"taken"}]}`, core.Conflict, "name", "already active"},
		{500, `{"message":"Internal","detail":"failed to fetch preset"}`, core.Internal, "", "failed to fetch preset"},
		{502, `{"message":"Bad","detail":"upstream"}`, core.Unavailable, "", "answers 502: Bad (upstream)"},
		{503, "<html>\x1b[31mred\u202e" + strings.Repeat("x", 100_000), core.Unavailable, "", "answers 503"},
		{200, `{"id":`, core.Unavailable, "", "can't be reached"},
		{200, `[]`, core.Unavailable, "url", "does not answer like the Coder API"},
		{200, `not json`, core.Unavailable, "url", "does not answer like the Coder API"},
	} {
		s, _ := siteOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if strings.HasPrefix(c.body, "<") {
				w.Header().Set("Content-Type", "text/html")
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		})
		e := read(t, s)
		field, _ := e.Details["field"].(string)
		expect.True(t, e.Code == c.code && field == c.field && strings.Contains(e.Message, c.want) && len(e.Message) <= 2000,
			"%d %.60s: %s %q %q", c.status, c.body, e.Code, field, e.Message)
		expect.True(t, !strings.ContainsAny(e.Message, "\x1b\u202e\n"), "%d: hostile text in %q", c.status, e.Message)
	}
}

func TestARedirectNeverCarriesTheToken(t *testing.T) {
	var leaked atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked.Add(1)
		t.Errorf("a request came with %v", r.Header)
	}))
	defer thief.Close()
	for _, to := range []string{thief.URL, strings.Replace(thief.URL, "http:", "https:", 1), "http://localhost:1"} {
		s, _ := siteOf(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
		})
		e := read(t, s)
		expect.True(t, e.Code == core.Unavailable && e.Details["field"] == "url" && strings.Contains(e.Message, to), "%s: %q %v", to, e.Message, e.Details)
		_, err := s.client.Dial(context.Background(), "/api/v2/tailnet", &websocket.DialOptions{HTTPClient: s.client.HTTPClient})
		expect.True(t, err != nil, "a websocket was opened")
	}
	expect.True(t, leaked.Load() <= 0, "the other host was asked")
}

func TestTheTransportSendsNothingToOtherHosts(t *testing.T) {
	s, _ := siteOf(t, func(http.ResponseWriter, *http.Request) {})
	req := expect.Of(http.NewRequest(http.MethodGet, "http://127.0.0.1:1/", nil))(t)
	expect.Says(t, expect.Fault(s.http.RoundTrip(req)), "nothing is sent there", "sent")
}

func TestARedirectOnTheSameHostIsFollowed(t *testing.T) {
	s, _ := siteOf(t, func(w http.ResponseWriter, r *http.Request) {
		expect.Is(t, r.Header.Get(codersdk.SessionTokenHeader), secret, "no token")
		if !strings.HasSuffix(r.URL.Path, "/there") {
			http.Redirect(w, r, r.URL.Path+"/there", http.StatusTemporaryRedirect)
			return
		}
		answer(w, codersdk.Workspace{Name: "x"})
	})
	ws, err := s.workspace(context.Background(), uuid.New())
	expect.True(t, err == nil && ws.Name == "x", "%+v %v", ws, err)
}

func TestAWebPageIsNotTheAPI(t *testing.T) {
	s, _ := siteOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>log in</html>"))
	})
	e := read(t, s)
	expect.True(t, e.Details["field"] == "url" && strings.Contains(e.Message, "web page"), "%q %v", e.Message, e.Details)
}

func TestARefusedConnectionSaysSo(t *testing.T) {
	s, srv := siteOf(t, nil)
	srv.Close()
	e := read(t, s)
	expect.True(t, e.Code == core.Unavailable && strings.Contains(e.Message, "can't be reached"), "%s %q", e.Code, e.Message)
}

func TestASlowServerIsNotWaitedForForEver(t *testing.T) {
	s, _ := siteOf(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	expect.Says(t, expect.Fault(s.workspace(ctx, uuid.New())), "in time")
}

func TestARateLimitIsWaitedFor(t *testing.T) {
	var asked atomic.Int32
	s, _ := siteOf(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		var in map[string]string
		expect.True(t, json.NewDecoder(r.Body).Decode(&in) == nil && in["transition"] == "start", "the second request has %v", in)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("{}"))
	})
	began := time.Now()
	expect.No(t, s.build(context.Background(), uuid.New(), codersdk.WorkspaceTransitionStart, false))
	d := time.Since(began)
	expect.True(t, asked.Load() == 2 && d >= 900*time.Millisecond, "%d requests in %v", asked.Load(), d)
}

func TestALongRateLimitIsAnErrorAndSilence(t *testing.T) {
	var asked atomic.Int32
	s, _ := siteOf(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	for range 3 { // the others are refused without a request
		ctx, stop := context.WithTimeout(context.Background(), 20*time.Second) // shorter than the silence that is asked for
		_, err := s.workspace(ctx, uuid.New())
		stop()
		e := core.AsError(err)
		expect.True(t, e.Code == core.Unavailable && strings.Contains(e.Message, "rate limit"), "%s %q", e.Code, e.Message)
	}
	expect.Is(t, asked.Load(), 1)
}

func TestRetryAfterIsSecondsOrADateWithinBounds(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": time.Second, "7": 7 * time.Second, "-7": time.Second, "99999999999": maxRetryAfter, "999999": maxRetryAfter, "x": time.Second,
		now.Add(9 * time.Second).Format(http.TimeFormat): 9 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):      0,
		now.Add(time.Hour).Format(http.TimeFormat):       maxRetryAfter,
	} {
		expect.Is(t, retryAfter(http.Header{"Retry-After": {value}}, now), want, value)
	}
}

func TestAnEndlessAnswerIsCut(t *testing.T) {
	s, _ := siteOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"name":"`))
		piece := []byte(strings.Repeat("x", 1<<20))
		for range 64 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	expect.Has(t, read(t, s).Message, fmt.Sprintf("longer than %d MiB", maxBody>>20))
}
