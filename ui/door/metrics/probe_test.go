package metrics

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"swarmdeck/engine"
	"swarmdeck/expect"
)

func TestProbesNeedNoTokenAndAreToldNoReason(t *testing.T) {
	var why error
	h := handler(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, Options{
		Token: "a-token-of-sixteen", Ready: func(context.Context) error { return why }, Engines: func() []*engine.Engine { return nil },
	})
	for _, c := range []struct {
		path, host string
		why        error
		want       int
		text       string
	}{
		{"/livez", "localhost", nil, 200, "ok\n"},
		{"/readyz", "localhost", nil, 200, "ok\n"},
		{"/readyz", "localhost", errors.New("the database at db.example is gone"), 503, "not ready\n"},
		{"/livez", "localhost", errors.New("the database is gone"), 200, "ok\n"},
		{"/livez", "evil.example", nil, 403, ""},
		{"/metrics", "localhost", nil, 401, ""},
		{"/other", "localhost", nil, 401, ""},
	} {
		why = c.why
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		expect.True(t, w.Code == c.want && (c.text == "" || w.Body.String() == c.text), "%s at %s while %v: %d, %q", c.path, c.host, c.why, w.Code, w.Body)
	}
}
