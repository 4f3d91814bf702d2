package metrics

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"swarmdeck/engine/core"
)

// Bounds of a token.
const (
	minToken = 16
	maxToken = 512
)

// Token reads the bearer token of a file; "" names none.
func Token(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the token of the figures: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		return "", core.Errorf(core.Denied, "metrics-token: %s can be read by others (%v): chmod 600 it", path, info.Mode().Perm()).With("field", "metrics-token")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxToken+3))
	if err != nil {
		return "", fmt.Errorf("read the token of the figures: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if n := len(token); n < minToken || n > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", core.Errorf(core.InvalidInput, "metrics-token: what %s holds is not allowed; allowed: %d-%d printable characters", path, minToken, maxToken).With("field", "metrics-token")
	}
	return token, nil
}

// guarded lets in who has the token, if there is one. At an address of this
// machine alone a name that is not this machine's is refused: a page of another
// site, whose name was made to lead here, would read along.
func guarded(at net.Addr, token string, to http.Handler) http.Handler {
	own := false
	if tcp, ok := at.(*net.TCPAddr); ok {
		own = tcp.IP.IsLoopback()
	}
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		switch {
		case own && !loopback(r.Host):
			http.Error(w, "this address is known by localhost and its number alone", http.StatusForbidden)
		case token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 0:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
		default:
			to.ServeHTTP(w, r)
		}
	})
}

// loopback reports whether a host, with or without a port, is this machine's own.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
