// Package metrics serves what an engine counts in the text format of
// Prometheus.
package metrics

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/view"
)

// Options of Serve.
type Options struct {
	Token   string // that figures are read with; "" asks for none
	Engines func() []*engine.Engine
	More    func(io.Writer) // adds other figures
	// Ready says why work can't be taken now; nil is that it can.
	Ready func(context.Context) error
}

// Serve serves the figures of engines, and probes, until ctx ends.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	srv := &http.Server{Handler: handler(l.Addr(), o), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve figures: %w", err)
	}
	return nil
}

// handler answers GET /metrics to who has the token, and to anyone GET /livez, which
// this process answers as long as it can, and GET /readyz, whether it can take work. A
// probe has no token, so it is told no reason.
func handler(at net.Addr, o Options) http.Handler {
	figured, mux := http.NewServeMux(), http.NewServeMux()
	figured.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		text, err := figures(r.Context(), o.Engines(), o.More)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(text)
	})
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		if o.Ready(ctx) != nil {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.Handle("/", guarded(at, o.Token, figured))
	return guarded(at, "", mux)
}

// readyTime bounds a look at whether work can be taken; probes wait a second or so.
const readyTime = time.Second

// figures writes each tenant's live world: its size is that of the living, not
// of the history.
func figures(ctx context.Context, engines []*engine.Engine, more func(io.Writer)) ([]byte, error) {
	var tenants []string
	var snaps []*view.Snapshot
	var troubles []health.Trouble
	for _, eng := range engines {
		here, err := eng.Store().Here(ctx)
		if err != nil {
			return nil, fmt.Errorf("list tenants: %w", err)
		}
		for _, t := range here {
			tenants, snaps = append(tenants, t), append(snaps, eng.Snapshot(t))
		}
		troubles = append(troubles, eng.Health.All()...)
	}
	var out bytes.Buffer
	family := func(name, kind, help string, of func(s *view.Snapshot, put func(labels string, v float64))) {
		fmt.Fprintf(&out, "# HELP swarmdeck_%s %s\n# TYPE swarmdeck_%s %s\n", name, help, name, kind)
		for i, s := range snaps {
			of(s, func(labels string, v float64) {
				fmt.Fprintf(&out, "swarmdeck_%s{tenant=%q%s} %g\n", name, tenants[i], labels, v)
			})
		}
	}
	family("tasks", "gauge", "Tasks by status, the finished ones included.", func(s *view.Snapshot, put func(string, float64)) {
		for _, status := range slices.Sorted(maps.Keys(s.Counts.ByStatus)) {
			put(fmt.Sprintf(",status=%q", status), float64(s.Counts.ByStatus[status]))
		}
	})
	family("agents", "gauge", "Agents by state.", func(s *view.Snapshot, put func(string, float64)) {
		states := map[string]int{}
		for _, a := range s.Agents {
			states[a.State()]++
		}
		for _, state := range slices.Sorted(maps.Keys(states)) {
			put(fmt.Sprintf(",state=%q", state), float64(states[state]))
		}
	})
	family("approvals_open", "gauge", "Approvals that wait for a person.", func(s *view.Snapshot, put func(string, float64)) {
		put("", float64(len(s.Approvals)))
	})
	family("emergency_stop", "gauge", "1 while the emergency stop is on.", func(s *view.Snapshot, put func(string, float64)) {
		on := 0.0
		if s.EStop.On {
			on = 1
		}
		put("", on)
	})
	degraded(&out, troubles)
	family("audit_events_total", "counter", "Events of the audit log.", func(s *view.Snapshot, put func(string, float64)) {
		put("", float64(s.AuditSeq))
	})
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	fmt.Fprintf(&out, "# HELP swarmdeck_goroutines Goroutines of the engine.\n# TYPE swarmdeck_goroutines gauge\nswarmdeck_goroutines %d\n", runtime.NumGoroutine())
	fmt.Fprintf(&out, "# HELP swarmdeck_heap_bytes Live heap of the engine.\n# TYPE swarmdeck_heap_bytes gauge\nswarmdeck_heap_bytes %d\n", mem.HeapAlloc)
	more(&out)
	return out.Bytes(), nil
}

// degraded writes how many troubles each part of a tenant has; "" is the tenant
// of those that concern all.
func degraded(out *bytes.Buffer, all []health.Trouble) {
	type part struct{ tenant, component string }
	count := map[part]int{}
	var parts []part
	for _, t := range all {
		p := part{t.Tenant, t.Component}
		if count[p]++; count[p] == 1 {
			parts = append(parts, p)
		}
	}
	fmt.Fprint(out, "# HELP swarmdeck_degraded Troubles now: records that can't be read, work that fails; without tenant those of the whole engine.\n# TYPE swarmdeck_degraded gauge\n")
	for _, p := range parts {
		fmt.Fprintf(out, "swarmdeck_degraded{tenant=%q,component=%q} %d\n", p.tenant, p.component, count[p])
	}
}

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
