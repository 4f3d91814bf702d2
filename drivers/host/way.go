package host

import (
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/host/wire"
)

// Way is a connection out of a cell on a host. Whose it is this side knows; PID and
// Process, who opened it, are the host's word.
type Way struct {
	net.Conn
	Port    int    // cell.PortHTTP or cell.PortSOCKS
	Run     string // as in cell.Spec
	Whose   cell.Whose
	Profile cell.Profile
	PID     int
	Process string
}

// far is the connection at this side. Its Close ends it for the host too.
type far struct {
	*yamux.Stream
	t     *wire.Tunnel
	ended sync.Once
}

// Read implements net.Conn. Once the host has said all and gone, it is closed.
func (f *far) Read(b []byte) (int, error) {
	n, err := f.t.Read(b)
	if errors.Is(err, io.EOF) {
		f.ended.Do(func() {
			go func() {
				f.t.Gone()
				f.Close()
			}()
		})
	}
	return n, err
}

func (f *far) Write(b []byte) (int, error) { return f.t.Write(b) }

// CloseWrite says that nothing else comes.
func (f *far) CloseWrite() error { return f.t.CloseWrite() }

func (f *far) Close() error {
	err := f.t.Close()
	_ = f.SetDeadline(time.Unix(1, 0)) // who reads or writes wakes up
	return err
}

// carry takes the connections of a link's runs that want out, until the session ends.
// They are served at once or not at all.
func (l *link) carry(session *yamux.Session) {
	room := make(chan struct{}, wire.MaxWays)
	for {
		s, err := session.AcceptStream()
		if err != nil {
			return
		}
		l.mu.Lock()
		most := 2*wire.MaxWays + len(l.runs)
		l.mu.Unlock()
		select {
		case room <- struct{}{}:
			go func() {
				defer func() { <-room }()
				l.way(s)
			}()
		default:
			s.Close()
		}
		if session.NumStreams() > most { // no keeper has so many
			session.Close()
			return
		}
	}
}

// way serves one connection.
func (l *link) way(s *yamux.Stream) {
	f := &far{Stream: s, t: wire.NewTunnel(s)}
	defer f.Close()
	_ = s.SetReadDeadline(time.Now().Add(stepTime))
	w, err := f.t.Begun()
	if err != nil {
		return
	}
	_ = s.SetReadDeadline(time.Time{})
	p := l.enter(w.Run, f)
	if p == nil {
		return
	}
	defer p.leave(f)
	if w.Port == cell.PortHTTP || w.Port == cell.PortSOCKS {
		if take := l.pool.opt.Way; take != nil && p.profile == cell.Worker {
			take(Way{Conn: f, Port: w.Port, Run: p.run, Whose: p.whose, Profile: p.profile, PID: w.PID, Process: w.Process})
		}
		return
	}
	for _, port := range p.start.Ports {
		if port == w.Port {
			cell.Join(f, port)
		}
	}
}

// enter notes a connection of one of the link's runs, by the run's id; nil is that it
// can't have one.
func (l *link) enter(run string, f *far) *Process {
	l.mu.Lock()
	p := l.runs[run]
	l.mu.Unlock()
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isOver || len(p.ways) >= wire.MaxWaysOfRun {
		return nil
	}
	if p.ways == nil {
		p.ways = map[*far]struct{}{}
	}
	p.ways[f] = struct{}{}
	return p
}

func (p *Process) leave(f *far) {
	p.mu.Lock()
	delete(p.ways, f)
	last := len(p.ways) == 0 && p.isOver
	p.mu.Unlock()
	if last {
		p.l.pool.gone(p)
	}
}

// closeWays breaks off its connections once it is over; mu is held. It reports whether
// there were none.
func (p *Process) closeWays() (none bool) {
	for f := range p.ways {
		go f.Close()
	}
	return len(p.ways) == 0
}

// named names the runs of one agent.
type named struct{ tenant, run string }

// came is told of a run that begins.
func (p *Pool) came(r *Process) {
	p.named.Enter(named{r.whose.Tenant, r.run}, math.MaxInt, math.MaxInt)
}

// gone is told once of a run that is over with its connections, and tells of the last
// of its name.
func (p *Pool) gone(r *Process) {
	if last := p.named.Leave(named{r.whose.Tenant, r.run}); last && p.opt.Over != nil {
		p.opt.Over(r.whose, r.run)
	}
}
