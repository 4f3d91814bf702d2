package host

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/hashicorp/yamux"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/engine/core"
	"swarmdeck/engine/host"
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

// collect takes over what so many runs of a former engine have left there.
func (l *link) collect(ctx context.Context, c *wire.Conn, n int) error {
	for n > 0 {
		var f wire.Control
		if err := c.ReadAny(&f); err != nil {
			return err
		}
		var answer wire.Control
		switch {
		case f.Beat > 0:
			answer = l.pool.answer(f.Beat)
		case f.Kept != nil:
			n--
			if err := f.Kept.Check(); err != nil {
				return fmt.Errorf("%w: %w", wire.ErrFrame, err)
			}
			if l.pool.opt.Kept != nil && l.pool.opt.Kept(ctx, l.at.tenant, l.at.name, l.kept(f.Kept)) != nil {
				continue
			}
			answer.Took = f.Kept.Run
		default:
			continue
		}
		if err := c.Send(answer); err != nil {
			return err
		}
	}
	return nil
}

// kept is what the keeper has of a run, as cells of this machine have it.
func (l *link) kept(k *wire.Kept) cell.Kept {
	ago := func(ms int64) time.Time { return time.Now().Add(-time.Duration(ms) * time.Millisecond) }
	all := cell.Kept{
		Name: k.Run[:min(len(k.Run), 12)], Run: "host " + l.at.name + "/agent:" + k.Agent,
		Whose: cell.Whose{Tenant: l.at.tenant, Agent: k.Agent}, Lost: ago(k.LostMS), Ended: ago(k.EndedMS), How: cell.EndedThere,
		Stdout: k.Stdout, Stderr: k.Stderr, Cut: k.Cut,
	}
	for _, task := range k.Tasks {
		all.Tasks = append(all.Tasks, desk.Text(task, wire.MaxID))
	}
	if k.Itself {
		all.How, all.Code, all.Signal = cell.EndedItself, k.Code, syscall.Signal(k.Signal)
	}
	return all
}

func (p *Pool) Clear(ctx context.Context, h host.Host) error {
	l, gone := p.begin(h)
	defer gone()
	err := l.clear(ctx)
	for failed := 0; err != nil && ctx.Err() == nil; failed++ {
		l.set(host.Refused, desk.Text(err.Error(), maxReason))
		if !core.Within(ctx.Done(), core.Backoff(failed, firstRest, longRest)) {
			err = l.clear(ctx)
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", l.state().Reason, err)
	}
	return err
}

func (l *link) clear(ctx context.Context) error {
	epoch, err := l.pool.epoch(ctx, l.at.tenant)
	if err != nil {
		return err
	}
	return l.reach(ctx, func(_ *yamux.Session, stream *yamux.Stream) error {
		if err := end(wire.New(stream, wire.MaxFromHost), wire.End{Remove: true, Epoch: epoch}); err != nil {
			return fmt.Errorf("end what is there: %w", err)
		}
		return nil
	})
}
