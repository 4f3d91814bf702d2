package hold

import (
	"io"
	"net"
	"strings"
	"sync"

	"github.com/hashicorp/yamux"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/host/wire"
)

// runName names a run's cell, and runOf is the run again.
func runName(agent, run string) string { return "agent:" + agent + ":" + run }

func runOf(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// walled tells the engine what the wall of a run of its held.
func (k *holder) walled(h cell.Held) {
	k.mu.Lock()
	r := k.runs[runOf(h.Run)]
	k.mu.Unlock()
	if r != nil {
		r.tell(wire.Event{Kind: wire.Walled, Held: &h})
	}
}

// carry has the engine take a connection of a cell, over the link that is there now.
// Without one it breaks, and when that is lost: nothing waits for the next.
func (k *holder) carry(c cell.Conn) {
	defer sever(c.Conn) // unless it is over in order
	run := runOf(c.Run)
	k.mu.Lock()
	session := k.link
	k.mu.Unlock()
	if session == nil || !k.ways.Enter(run, wire.MaxWays/2, wire.MaxWaysOfRun) {
		return
	}
	defer k.ways.Leave(run)
	s, err := session.OpenStream()
	if err != nil {
		return
	}
	w := wire.Way{Run: run, Port: c.Port}
	w.PID, w.Process = c.Process()
	if w.Check() != nil {
		s.Close()
		return
	}
	join(c.Conn, s, w)
}

// join carries a connection over a stream until both directions are over, or either
// side breaks it off.
func join(conn net.Conn, s *yamux.Stream, w wire.Way) {
	t := wire.NewTunnel(s)
	defer t.Close()
	if t.Begin(w) != nil {
		return
	}
	broke := sync.OnceFunc(func() {
		sever(conn)
		t.Close()
	})
	up, down := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(up)
		if _, err := io.Copy(t, plain{conn}); err != nil || t.CloseWrite() != nil {
			broke()
		}
	}()
	go func() {
		defer close(down)
		_, err := io.Copy(plain{conn}, t)
		if half, is := conn.(*net.TCPConn); err != nil || !is || half.CloseWrite() != nil {
			broke()
			return
		}
		t.Gone() // also of what it still sends, the engine takes no more
	}()
	select {
	case <-down:
		conn.Close()
	case <-up:
	}
	<-up
	<-down
	conn.Close()
}

// plain is a connection without what copies past a stream's records.
type plain struct{ net.Conn }

// sever ends a connection so that who is at its other end sees that it broke.
func sever(conn net.Conn) {
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}
