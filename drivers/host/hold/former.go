package hold

import (
	"maps"
	"slices"
	"time"

	"swarmdeck/drivers/host/wire"
	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
)

// What a run of a former engine has left is in memory, like the key of its output on the
// disk, until an engine has it or the keeper ends.
const (
	// lastWords is how long the end of what an ended run had written is waited for.
	lastWords = 2 * time.Second
	// allKept is how much output is kept of all runs; of further ones there is none.
	allKept = 16 << 20 // bytes
)

// former is what is kept of a run. Times are of wire.SinceBoot.
type former struct {
	wire.Kept
	lost, ended time.Duration
}

// succeed ends the runs of an engine that was heard last at a time, and keeps what the
// next one is to know. The caller holds order.
func (k *holder) succeed(lost time.Duration) {
	k.mu.Lock()
	list := slices.Collect(maps.Values(k.runs))
	k.mu.Unlock()
	_ = core.Each(list, func(r *run) error { // who forgets it says why
		<-r.begun
		if r.keep == nil || r.proc == nil {
			return nil
		}
		itself := r.proc.Ended()
		err := r.end(false)
		if err == nil {
			k.keep(r.left(itself, lost))
		}
		return err
	})
}

func (k *holder) keep(f *former) {
	k.mu.Lock()
	defer k.mu.Unlock()
	size := len(f.Stdout) + len(f.Stderr)
	for _, o := range k.former {
		size += len(o.Stdout) + len(o.Stderr)
	}
	if size > allKept {
		f.Stdout, f.Stderr, f.Cut = nil, nil, true
	}
	if len(k.former) < wire.MaxRuns {
		k.former = append(k.former, f)
	}
}

// took forgets what an engine has.
func (k *holder) took(run string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.former = slices.DeleteFunc(k.former, func(f *former) bool { return f.Run == run })
}

// tell tells an engine what is kept, as it is now.
func (k *holder) tell(c *wire.Conn, all []*former) error {
	for _, f := range all {
		now, kept := wire.SinceBoot(), f.Kept
		kept.LostMS, kept.EndedMS = (now - f.lost).Milliseconds(), (now - f.ended).Milliseconds()
		if err := c.Send(wire.Control{Kept: &kept}); err != nil {
			return err
		}
	}
	return nil
}

// left is what an ended run has left; it had ended itself perhaps.
func (r *run) left(itself bool, lost time.Duration) *former {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := false
	alarm := time.AfterFunc(lastWords, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		late = true
		r.turn.Broadcast()
	})
	defer alarm.Stop()
	r.conn, r.whole = nil, false // nothing holds up what is left to read
	r.turn.Broadcast()
	for !(r.eof[0] && r.eof[1]) && !late && !r.over {
		r.turn.Wait()
	}
	f := &former{lost: lost, ended: wire.SinceBoot(), Kept: wire.Kept{Run: r.id, Agent: r.agent, Tasks: r.tasks, Itself: itself}}
	if itself {
		exit := r.proc.Exit()
		f.Code, f.Signal = exit.Code, int(exit.Signal)
		if r.exited > 0 {
			f.ended = r.exited
		}
	}
	mask := secret.NewMask(r.keep.Secrets)
	var cut bool
	if r.keep.Stdout {
		f.Stdout, cut = r.out[0].last(mask)
		f.Cut = cut
	}
	f.Stderr, cut = r.out[1].last(mask)
	f.Cut = f.Cut || cut
	return f
}

// last is the end of what the engine has not got, masked, and whether there was more. What
// comes before it is masked too, so that no secret is cut in two.
func (s *spool) last(mask *secret.Mask) (text []byte, cut bool) {
	begin := max(s.acked, s.end-2*wire.MaxKept)
	buf := make([]byte, wire.Chunk)
	for at := begin; ; {
		from, n := s.read(at, buf)
		if from > at {
			text, cut = text[:0], true
		}
		if at = from + int64(n); n == 0 {
			break
		}
		text = append(text, buf[:n]...)
	}
	text = mask.Rest(text)
	if over := len(text) - wire.MaxKept; over > 0 {
		text, cut = text[over:], true
	}
	return text, cut || begin > s.acked
}
