package egress_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"swarmdeck/expect"
)

// BenchmarkInspect measures a transfer and a small request through a tunnel
// that is looked into, and one that is not, by turns.
func BenchmarkInspect(b *testing.B) {
	block := make([]byte, 1<<20)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/small" {
			return
		}
		for range chunk / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	b.Cleanup(server.Close)
	w := inspected(b, nil, server)
	w.rules.let("example.com:443 GET", false)
	plain := newWorld(b, nil, local(server.Listener.Addr().String()))
	plain.names.of["example.com"] = []string{"8.8.8.8"}
	plain.rules.let("example.com:443", false)
	read, unread := w.inCell("http"), plain.client("http", server)
	unread.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	took := func(c *http.Client, path string, want int64) time.Duration {
		began := time.Now()
		res := expect.Of(c.Get("https://example.com" + path))(b)
		defer res.Body.Close()
		if n, err := io.Copy(io.Discard, res.Body); n != want || err != nil {
			b.Fatalf("%d bytes, %v", n, err)
		}
		return time.Since(began)
	}
	measure := func(name, path string, want int64, anew bool, report func(b *testing.B, read, unread time.Duration)) {
		b.Run(name, func(b *testing.B) {
			var with, without time.Duration
			for b.Loop() {
				if anew {
					read.CloseIdleConnections()
					unread.CloseIdleConnections()
				}
				without += took(unread, path, want)
				with += took(read, path, want)
			}
			report(b, with, without)
		})
	}
	more := func(b *testing.B, with, without time.Duration) {
		b.ReportMetric((with-without).Seconds()*1000/float64(b.N), "ms-more")
	}
	measure("throughput", "/", chunk, false, func(b *testing.B, with, without time.Duration) {
		b.ReportMetric(float64(chunk)*float64(b.N)/1e6/with.Seconds(), "MB/s")
		b.ReportMetric(float64(chunk)*float64(b.N)/1e6/without.Seconds(), "unread-MB/s")
	})
	measure("request", "/small", 0, false, more)
	measure("connection", "/small", 0, true, more)
}
