// Package link makes a slow connection out of a fast one, for tests: bytes
// arrive a fixed time after they were sent and no faster than the rate.
package link

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Shape is what a link is like, in each direction.
type Shape struct {
	Delay time.Duration // one way; half of a round trip
	Rate  int           // bytes a second; 0 is as fast as may be
	// Queue is how many bytes wait where it is narrow before the sender is held
	// back; 0 means 16 KiB.
	Queue int
}

// Link passes connections on to a server.
type Link struct {
	shape  Shape
	target string
	l      net.Listener
	up     atomic.Int64
	down   atomic.Int64
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	open map[*net.TCPConn]bool
}

// New begins a link to a server's address, until Close.
func New(target string, s Shape) (*Link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if s.Queue == 0 {
		s.Queue = 16 << 10
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Link{shape: s, target: target, l: l, ctx: ctx, cancel: cancel, open: map[*net.TCPConn]bool{}}
	k.wg.Go(k.accept)
	return k, nil
}

// Addr is where clients connect to.
func (k *Link) Addr() string { return k.l.Addr().String() }

// Up and Down count what went to the server and came from it.
func (k *Link) Up() int64   { return k.up.Load() }
func (k *Link) Down() int64 { return k.down.Load() }

// Cut breaks every connection as a network does that goes away: what was under
// way is lost. New ones may be made.
func (k *Link) Cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.open {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// Close ends the link and every connection.
func (k *Link) Close() {
	k.cancel()
	_ = k.l.Close()
	k.Cut()
	k.wg.Wait()
}

func (k *Link) accept() {
	for {
		in, err := k.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", k.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		a, b := in.(*net.TCPConn), out.(*net.TCPConn)
		k.mu.Lock()
		k.open[a], k.open[b] = true, true
		k.mu.Unlock()
		var both sync.WaitGroup
		both.Go(func() { k.pass(b, a, &k.up) })
		both.Go(func() { k.pass(a, b, &k.down) })
		k.wg.Go(func() {
			both.Wait()
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.open, a)
			delete(k.open, b)
		})
	}
}

// chunk arrives at a time.
type chunk struct {
	data []byte
	at   time.Time
}

// pass carries one direction.
func (k *Link) pass(to, from *net.TCPConn, count *atomic.Int64) {
	_ = from.SetReadBuffer(8 << 10) // what waits, waits in the link
	way := make(chan chunk, 4096)
	var end sync.WaitGroup
	end.Go(func() {
		defer to.CloseWrite()
		for c := range way {
			k.sleep(time.Until(c.at))
			if _, err := to.Write(c.data); err != nil {
				_ = from.Close()
			}
			count.Add(int64(len(c.data)))
		}
	})
	defer end.Wait()
	defer close(way)
	buf := make([]byte, 1400)
	var free time.Time // when the narrow place is
	for {
		n, err := from.Read(buf)
		if n > 0 {
			now := time.Now()
			if free.Before(now) {
				free = now
			}
			free = free.Add(k.takes(n))
			way <- chunk{append([]byte(nil), buf[:n]...), free.Add(k.shape.Delay)}
			k.sleep(time.Until(free) - k.takes(k.shape.Queue))
		}
		if err != nil {
			if err != io.EOF {
				_ = to.Close()
			}
			return
		}
	}
}

// takes is how long n bytes take through the narrow place.
func (k *Link) takes(n int) time.Duration {
	if k.shape.Rate == 0 {
		return 0
	}
	return time.Duration(n) * time.Second / time.Duration(k.shape.Rate)
}

func (k *Link) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-k.ctx.Done():
	}
}
