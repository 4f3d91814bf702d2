package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/egress"
)

const tlsPort = 443

// tunnel carries bytes both ways until both are over, or ctx ends, or a rule
// denies the host. early is what the client has sent already. Both connections
// are closed then.
func (p *Proxy) tunnel(ctx context.Context, from Origin, to egress.Target, client, server net.Conn, early []byte) {
	var sent, received int64
	shut := func() {
		client.Close()
		server.Close()
	}
	defer func() {
		shut()
		p.decider().Used(from, to, sent, received)
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
		done := make(chan struct{})
		go func() {
			defer close(done)
			down()
		}()
		up(first)
		<-done
		return
	}
	done := make(chan struct{})
	go func() { // the server may speak first
		defer close(done)
		down()
	}()
	first, ok := p.greeting(ctx, from, to, client, early)
	if ok {
		up(first)
	} else {
		shut()
	}
	<-done
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
