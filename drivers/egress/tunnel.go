package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/egress"
)

const tlsPort = 443

// tunnel carries bytes both ways until both are over, or ctx ends, or a rule
// denies the host. early is what the client has sent already. Both connections
// are closed then.
func (p *Proxy) tunnel(ctx context.Context, from Origin, to egress.Target, client, server net.Conn, early []byte) {
	var sent, received int64
	m := &meter{server: server}
	over := p.decider().Opened(from, to, m.count)
	shut := func() {
		m.count() // nobody can tell once it is closed
		client.Close()
		server.Close()
	}
	defer func() {
		shut()
		m.set(sent, received)
		over()
	}()
	ctx, cancel := context.WithCancel(ctx)
	var guarded sync.WaitGroup
	guarded.Go(func() { p.guard(ctx, from, egress.Request{Target: to}, shut) })
	defer guarded.Wait()
	defer cancel()
	down := func() {
		n, err := io.Copy(client, server)
		received = n
		finish(client, err, shut)
	}
	up := func(first []byte) {
		n, err := server.Write(first)
		sent = int64(n)
		if err == nil {
			var more int64
			more, err = io.Copy(server, client) // splices where both are TCP
			sent += more
		}
		finish(server, err, shut)
	}
	if to.Port == tlsPort { // nothing flows before the greeting is checked
		first, ok := p.greeting(ctx, from, to, client, early)
		if !ok {
			return
		}
		var back sync.WaitGroup
		back.Go(down)
		up(first)
		back.Wait()
		return
	}
	var back sync.WaitGroup
	back.Go(down) // the server may speak first
	first, ok := p.greeting(ctx, from, to, client, early)
	if ok {
		up(first)
	} else {
		shut()
	}
	back.Wait()
}

// meter tells what went over a connection to a server so far, as the kernel
// counts it: it carries the bytes of a tunnel by itself.
type meter struct {
	server net.Conn

	mu             sync.Mutex
	sent, received int64
}

// count is nothing before the end of what is no TCP.
func (m *meter) count() (sent, received int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if tcp, ok := m.server.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
					m.sent, m.received = max(0, int64(info.Bytes_acked)-1), int64(info.Bytes_received) // the greeting counts as one
				}
			})
		}
	}
	return m.sent, m.received
}

// set says what went in all, once the server is closed.
func (m *meter) set(sent, received int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent, m.received = sent, received
}

// finish passes an end on: of one direction alone where it came in order.
func finish(dst net.Conn, err error, shut func()) {
	half, ok := dst.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		shut()
	}
}

// guard ends a connection when a rule denies its host.
func (p *Proxy) guard(ctx context.Context, from Origin, to egress.Request, cut func()) {
	for {
		denied, changed := p.decider().Denied(from, to)
		if denied {
			p.decider().Cut(context.WithoutCancel(ctx), from, to, "rule", "an egress rule denies it now")
			cut()
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// greeting reads what a client says first and holds the server name of a TLS
// greeting against the host. What it returns is to be sent on. On port 443
// nothing but TLS goes; on others what does not begin as TLS goes as it is.
func (p *Proxy) greeting(ctx context.Context, from Origin, to egress.Target, client net.Conn, data []byte) (_ []byte, ok bool) {
	must := to.Port == tlsPort
	cut := func(why string) {
		if ctx.Err() == nil {
			p.decider().Cut(ctx, from, egress.Request{Target: to}, "tls_name", why)
		}
	}
	begin := sync.OnceFunc(func() { _ = client.SetReadDeadline(time.Now().Add(handshake)) })
	if must {
		begin()
	}
	buf := make([]byte, 2*maxHello)
	for {
		h := readHello(data)
		switch {
		case h.state == damaged:
			cut("the TLS greeting can't be read")
			return nil, false
		case h.state == notTLS && must:
			cut("what the client says on port 443 is no TLS")
			return nil, false
		case h.state == notTLS:
			return data, true
		case h.state == whole:
			if why := misnamed(to, h.name); why != "" {
				cut(why)
				return nil, false
			}
			_ = client.SetReadDeadline(time.Time{})
			return data, true
		}
		if len(data) > 0 { // it is TLS, and patience begins
			begin()
		}
		n, err := io.ReadAtLeast(client, buf[:max(h.need-len(data), len(buf)/2)], h.need-len(data))
		data = append(data, buf[:n]...)
		if err != nil {
			if len(data) > 0 {
				cut("the TLS greeting is not whole")
			}
			// A client that only listens may close its side at once.
			return nil, len(data) == 0 && err == io.EOF && !must
		}
	}
}

// misnamed says why a TLS server name is not that of the host.
func misnamed(to egress.Target, name string) string {
	same := strings.EqualFold(strings.TrimSuffix(name, "."), to.Host)
	switch {
	case same, name == "" && to.Addr().IsValid(): // addresses have no server name
		return ""
	case name == "":
		return "the TLS greeting names no server"
	}
	return fmt.Sprintf("the TLS greeting names %.100q, not %s", name, to.Host)
}
