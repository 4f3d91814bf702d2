package metrics

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestFiguresAreForWhoMayReadThem(t *testing.T) {
	here, everywhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4zero}
	for name, c := range map[string]struct {
		at                net.Addr
		token, host, auth string
		want              int
	}{
		"this machine":                {here, "", "127.0.0.1:9090", "", 200},
		"its name":                    {here, "", "localhost:9090", "", 200},
		"IPv6":                        {here, "", "[::1]:9090", "", 200},
		"a name that was made to":     {here, "", "evil.example:9090", "", 403},
		"such a name with a token":    {here, "a-token-of-sixteen", "evil.example", "Bearer a-token-of-sixteen", 403},
		"no token":                    {here, "a-token-of-sixteen", "localhost", "", 401},
		"another":                     {here, "a-token-of-sixteen", "localhost", "Bearer a-token-of-seventeen", 401},
		"the token":                   {here, "a-token-of-sixteen", "localhost", "Bearer a-token-of-sixteen", 200},
		"elsewhere by any name":       {everywhere, "", "deck.example.com", "", 200},
		"elsewhere without the token": {everywhere, "a-token-of-sixteen", "deck.example.com", "", 401},
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = c.host
		if c.auth != "" {
			r.Header.Set("Authorization", c.auth)
		}
		w := httptest.NewRecorder()
		guarded(c.at, c.token, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		expect.Is(t, w.Code, c.want, name)
	}
}

func TestATokenIsLongAndPrivate(t *testing.T) {
	for text, want := range map[string]string{"a-token-of-sixteen\n": "", "short": "16-512", "a token of sixteen": "16-512", strings.Repeat("x", 600): "16-512"} {
		path := filepath.Join(t.TempDir(), "token")
		expect.No(t, os.WriteFile(path, []byte(text), 0o600))
		got, err := Token(path)
		expect.Says(t, err, want, text)
		expect.True(t, want != "" || got == strings.TrimSpace(text), "%q: %q", text, got)
		expect.No(t, os.Chmod(path, 0o644))
		expect.Says(t, expect.Fault(Token(path)), "chmod 600", "readable by others")
	}
}
