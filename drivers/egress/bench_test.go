package egress_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"swarmdeck/expect"
)

const chunk = 64 << 20 // bytes of one transfer

// source is a server that sends a chunk to each client and ends.
func source(b *testing.B) string {
	b.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(b)
	b.Cleanup(func() { l.Close() })
	go func() {
		block := make([]byte, 1<<20)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				first := make([]byte, 1)
				if _, err := conn.Read(first); err != nil || first[0] != 'b' {
					conn.Write(first)
					return
				}
				for range chunk / len(block) {
					if _, err := conn.Write(block); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// BenchmarkProxy measures a transfer and a connection with one byte each way,
// through the proxy and directly, by turns.
func BenchmarkProxy(b *testing.B) {
	at := source(b)
	w := newWorld(b, nil, func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", at)
	})
	w.rules.let("8.8.8.8:80", false)
	direct := func() net.Conn {
		conn := expect.Of(net.Dial("tcp", at))(b)
		return conn
	}
	proxied := func() net.Conn {
		conn := expect.Of(net.Dial("tcp", w.socks))(b)
		reply := make([]byte, 12)
		expect.Of(io.WriteString(conn, "\x05\x01\x00\x05\x01\x00\x01\x08\x08\x08\x08\x00\x50"))(b)
		if _, err := io.ReadFull(conn, reply); err != nil || reply[3] != 0 {
			b.Fatalf("% x %v", reply, err)
		}
		return conn
	}
	took := func(open func() net.Conn, first string, want int64) time.Duration {
		began := time.Now()
		conn := open()
		defer conn.Close()
		expect.Of(io.WriteString(conn, first))(b)
		if n, err := io.Copy(io.Discard, conn); n != want {
			b.Fatalf("%d bytes, %v", n, err)
		}
		return time.Since(began)
	}
	b.Run("throughput", func(b *testing.B) {
		var through, plain time.Duration
		for b.Loop() {
			plain += took(direct, "b", chunk)
			through += took(proxied, "b", chunk)
		}
		b.ReportMetric(float64(chunk)*float64(b.N)/1e6/through.Seconds(), "MB/s")
		b.ReportMetric(float64(chunk)*float64(b.N)/1e6/plain.Seconds(), "direct-MB/s")
		b.ReportMetric(plain.Seconds()/through.Seconds(), "ratio")
	})
	b.Run("connection", func(b *testing.B) {
		var through, plain time.Duration
		for b.Loop() {
			plain += took(direct, "c", 1)
			through += took(proxied, "c", 1)
		}
		b.ReportMetric((through-plain).Seconds()*1000/float64(b.N), "ms-more")
		b.ReportMetric(through.Seconds()/plain.Seconds(), "ratio")
	})
}
