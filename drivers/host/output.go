package host

import (
	"fmt"
	"syscall"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/host/wire"
)

// stream is what has come of an output and is not passed on yet.
type stream struct {
	parts  []part
	next   int64 // place in the stream of what is to come
	size   int64 // of parts
	closed bool
}

// part is a piece of a stream, or a sign at its place.
type part struct {
	data []byte
	upTo int64 // place in the stream behind it
	eof  bool
	exit bool
}

// came takes a part of an output.
func (p *Process) came(d wire.Data) error {
	if err := d.Check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := &p.out[d.Stream]
	if skip := out.next - d.At; skip > 0 { // it came before
		if skip >= int64(len(d.Bytes)) {
			return nil
		}
		d.At, d.Bytes = d.At+skip, d.Bytes[skip:]
	}
	if out.closed || out.size+int64(len(d.Bytes)) > 2*wire.Window {
		return fmt.Errorf("%w: output past its bounds", wire.ErrFrame)
	}
	if d.At > out.next && p.start.Whole {
		go p.lose("is lost: its host had no room for what it said")
		return nil
	}
	end := d.At + int64(len(d.Bytes))
	if gap := d.At - out.next; gap > 0 {
		d.Bytes = append(fmt.Appendf(nil, "\n[%d bytes are left out here: the host had no room for more while its link was away]\n", gap), d.Bytes...)
	}
	out.next = end
	out.size += int64(len(d.Bytes))
	out.parts = append(out.parts, part{data: d.Bytes, upTo: end})
	p.turn.Broadcast()
	return nil
}

// pass gives one output to its user.
func (p *Process) pass(n int) {
	defer p.theirs[n+1].Close()
	for {
		p.mu.Lock()
		out := &p.out[n]
		for len(out.parts) == 0 && !p.isOver {
			p.turn.Wait()
		}
		if len(out.parts) == 0 {
			p.mu.Unlock()
			return
		}
		x := out.parts[0]
		p.mu.Unlock()
		if x.data != nil {
			_, _ = p.theirs[n+1].Write(x.data) // who reads it no more wants no more
		}
		p.mu.Lock()
		out.parts = out.parts[1:]
		if x.data != nil {
			out.size -= int64(len(x.data))
			p.seen.Out[n] = x.upTo
			p.ring()
		}
		p.finish()
		p.mu.Unlock()
		if x.eof {
			p.theirs[n+1].Close()
		}
	}
}

// finish closes done once all is passed on that came before the exit; mu is held.
func (p *Process) finish() {
	if !p.ended {
		return
	}
	for n := range p.out {
		for _, x := range p.out[n].parts {
			if x.exit {
				return
			}
		}
	}
	p.close()
}

// close closes done; mu is held.
func (p *Process) close() {
	if !p.Ended() {
		p.exit.Duration = time.Since(p.began)
		close(p.done)
	}
}

// happened takes an event, once.
func (p *Process) happened(e wire.Event) error {
	if err := e.Check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Seq <= p.seen.Events:
		return nil
	case e.Seq != p.seen.Events+1:
		return fmt.Errorf("%w: event %d after event %d", wire.ErrFrame, e.Seq, p.seen.Events)
	}
	p.seen.Events = e.Seq
	p.ring()
	switch e.Kind {
	case wire.Started:
		if !p.sure {
			p.sure, p.pid, p.lacks = true, e.PID, e.Lacks
			p.begun <- nil
		}
	case wire.Failed:
		if !p.sure {
			p.sure = true
			p.begun <- e.Err()
			p.exit = cell.Exit{Code: 127, Why: "could not be started: " + e.Err().Error()}
			p.out[0].parts, p.out[1].parts = []part{{eof: true}}, []part{{eof: true}}
			p.close()
		}
	case wire.Answer:
		if w := p.waits[e.Item]; w != nil {
			delete(p.waits, e.Item)
			w <- e.Err()
		}
	case wire.Looked:
		p.looked = e
	case wire.Walled:
		if held := p.l.pool.opt.Held; held != nil && e.Held != nil && p.held < maxHeld {
			p.held++
			h := *e.Held
			h.Run, h.Whose = p.run, p.whose
			p.mu.Unlock()
			held(h)
			p.mu.Lock()
		}
	case wire.EOF:
		if out := &p.out[e.Stream]; !out.closed {
			out.closed = true
			out.parts = append(out.parts, part{eof: true})
		}
	case wire.Exited:
		if !p.ended {
			p.ended = true
			p.exit = cell.Exit{Code: e.Code, Signal: syscall.Signal(e.Signal), Overran: e.Overran}
			if e.Lease {
				p.exit.Why = "was ended on its host: the lease was over"
			}
			p.unread = e.Read < p.sent
			for n := range p.out {
				if out := &p.out[n]; len(out.parts) > 0 {
					out.parts = append(out.parts, part{exit: true})
				}
			}
			p.finish()
		}
	}
	p.turn.Broadcast()
	return nil
}

// maxHeld is how often a host is believed that the wall of a run has held something.
const maxHeld = 100
