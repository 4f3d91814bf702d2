package hold

import (
	"fmt"

	"swarmdeck/drivers/host/wire"
)

// serve tells a run to the engine over one stream until that breaks, and takes
// what the engine wants.
func (r *run) serve(c *wire.Conn, seen wire.Seen) error {
	r.mu.Lock()
	if r.over || seen.Events > r.next || seen.Out[0] > r.out[0].end || seen.Out[1] > r.out[1].end || seen.Out[0] < 0 || seen.Out[1] < 0 {
		r.mu.Unlock()
		return c.Send(wire.FromHost{Opened: &wire.Taken{Error: "the run has not come that far"}})
	}
	r.conn, r.sent, r.passed = c, seen.Events, seen.Out
	r.seen(seen)
	opened := wire.Taken{Items: r.items, Wrote: r.given()}
	r.told = [2]uint64{opened.Items, uint64(opened.Wrote)}
	r.turn.Broadcast()
	r.mu.Unlock()
	defer r.detach(c)
	if err := c.Send(wire.FromHost{Opened: &opened}); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.write(c)
		r.detach(c)
	}()
	defer func() { <-done }()
	defer r.detach(c) // which ends the writer
	for {
		var f wire.FromEngine
		if err := c.Read(&f); err != nil {
			return err
		}
		switch {
		case f.Item != nil && f.Item.Kind == wire.Forget:
			return errForget
		case f.Item != nil:
			if err := r.take(*f.Item); err != nil {
				return fmt.Errorf("run %s: %w", r.id, err)
			}
		case f.Ack != nil:
			r.mu.Lock()
			r.seen(*f.Ack)
			r.turn.Broadcast()
			r.mu.Unlock()
		}
	}
}

// detach ends the stream's turn, if it still is its own.
func (r *run) detach(c *wire.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == c {
		r.conn = nil
		r.turn.Broadcast()
	}
}

// given is how much input the engine need not count any more; mu is held.
func (r *run) given() int64 {
	if r.deaf {
		return r.took
	}
	return r.wrote
}

// seen lets go of what the engine has; mu is held.
func (r *run) seen(s wire.Seen) {
	for len(r.events) > 0 && r.events[0].Seq <= s.Events {
		r.events = r.events[1:]
	}
	for n := range r.out {
		r.out[n].ack(s.Out[n])
	}
}

// write sends what there is to say: what happened, then output within the window,
// taking turns.
func (r *run) write(c *wire.Conn) {
	buf := make([]byte, wire.Chunk)
	for turn := 0; ; turn++ {
		r.mu.Lock()
		f, is := r.frame(buf, turn%2)
		for !is && r.conn == c {
			r.turn.Wait()
			f, is = r.frame(buf, turn%2)
		}
		mine := r.conn == c
		r.mu.Unlock()
		if !mine || c.Send(f) != nil {
			return
		}
	}
}

// frame is the next to be sent, if any; mu is held.
func (r *run) frame(buf []byte, first int) (f wire.FromHost, is bool) {
	for _, e := range r.events {
		if e.Seq <= r.sent {
			continue
		}
		if (e.Kind == wire.EOF || e.Kind == wire.Exited) && (r.passed[0] < e.Out[0] || r.passed[1] < e.Out[1]) {
			break // what it had written by then comes first
		}
		r.sent = e.Seq
		return wire.FromHost{Event: &e}, true
	}
	if now := [2]uint64{r.items, uint64(r.given())}; now != r.told {
		r.told = now
		return wire.FromHost{Ack: &wire.Taken{Items: r.items, Wrote: r.given()}}, true
	}
	for _, n := range []int{first, 1 - first} {
		out := &r.out[n]
		if r.passed[n]-out.acked >= wire.Window {
			continue
		}
		from, got := out.read(r.passed[n], buf)
		if r.passed[n] = from; got > 0 {
			r.passed[n] = from + int64(got)
			return wire.FromHost{Data: &wire.Data{Stream: n, At: from, Bytes: buf[:got]}}, true
		}
	}
	return f, false
}
