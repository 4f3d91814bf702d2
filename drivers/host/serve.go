package host

import (
	"fmt"
	"time"

	"github.com/hashicorp/yamux"

	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/engine/core"
)

// attend keeps a stream to the run's keeper until it is over.
func (p *Process) attend() {
	var last *yamux.Session
	for {
		s := p.l.linked(p, last)
		if s == nil {
			return
		}
		if err := p.serve(s); err != nil {
			s.Close() // a link on which one run can't be followed is none
		}
		last = s
	}
}

// serve is one stream.
func (p *Process) serve(s *yamux.Session) error {
	stream, err := s.OpenStream()
	if err != nil {
		return err
	}
	defer stream.Close()
	c := wire.New(stream, wire.MaxFromHost)
	open := wire.Open{Run: p.id}
	p.l.mu.Lock()
	boot := p.l.boot
	p.l.mu.Unlock()
	p.mu.Lock()
	open.Seen = p.seen
	if !p.sure && (p.boot == "" || p.boot == boot) {
		p.boot, open.Start = boot, p.start
	}
	p.mu.Unlock()
	if err := c.Send(wire.FromEngine{Open: &open}); err != nil {
		return err
	}
	_ = stream.SetReadDeadline(time.Now().Add(stepTime))
	var f wire.FromHost
	if err := c.Read(&f); err != nil {
		return err
	}
	_ = stream.SetReadDeadline(time.Time{})
	switch {
	case f.Opened == nil:
		return wire.ErrFrame
	case f.Opened.Error != "":
		p.lose("is lost: " + desk.Text(f.Opened.Error, maxReason))
		return nil
	}
	if err := p.taken(*f.Opened); err != nil {
		return err
	}
	end, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		p.send(c, end)
	}()
	defer func() {
		close(end)
		stream.Close() // a write that is stuck ends with it
		<-gone
	}()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-p.over:
			time.Sleep(50 * time.Millisecond) // for its last word to go
			stream.Close()
		case <-stop:
		}
	}()
	for {
		var f wire.FromHost
		if err := c.Read(&f); err != nil {
			if core.IsOver(p.over) {
				return nil
			}
			return err
		}
		switch {
		case f.Event != nil:
			err = p.happened(*f.Event)
		case f.Data != nil:
			err = p.came(*f.Data)
		case f.Ack != nil:
			err = p.taken(*f.Ack)
		}
		if err != nil {
			return err
		}
	}
}

// send sends what the keeper has not got, and what it may let go of.
func (p *Process) send(c *wire.Conn, end <-chan struct{}) {
	last, told := uint64(0), wire.Seen{}
	p.mu.Lock()
	told = p.seen
	p.mu.Unlock()
	for {
		p.mu.Lock()
		todo := core.Where(p.items, func(i wire.Item) bool { return i.Seq > last })
		seen := p.seen
		over := p.isOver
		p.mu.Unlock()
		for _, i := range todo {
			if c.Send(wire.FromEngine{Item: &i}) != nil {
				return
			}
			last = i.Seq
		}
		if seen != told {
			if told = seen; c.Send(wire.FromEngine{Ack: &seen}) != nil {
				return
			}
		}
		if over {
			_ = c.Send(wire.FromEngine{Item: &wire.Item{Seq: last + 1, Kind: wire.Forget}})
			return
		}
		select {
		case <-p.bell:
		case <-p.over:
		case <-end:
			return
		}
	}
}

// taken lets go of what the keeper has.
func (p *Process) taken(t wire.Taken) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.Items > p.next || t.Wrote < 0 || t.Wrote > p.sent {
		return fmt.Errorf("%w: it has more than it was given", wire.ErrFrame)
	}
	for len(p.items) > 0 && p.items[0].Seq <= t.Items {
		p.items = p.items[1:]
	}
	p.wrote = max(p.wrote, t.Wrote)
	p.turn.Broadcast()
	return nil
}
