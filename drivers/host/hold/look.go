package hold

import (
	"time"

	"swarmdeck/drivers/host/wire"
	"swarmdeck/drivers/keeper"
)

// lookEvery is how often a terminal is looked at.
const lookEvery = 100 * time.Millisecond

// look tells how a run's terminal is until the run is over. What the engine was not told
// yet is told as it is now.
func (r *run) look(of keeper.Process) {
	p, is := of.(keeper.Screened)
	if !is {
		return
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	was := wire.Event{}
	for {
		if now := (wire.Event{Kind: wire.Looked, Foreground: p.Foreground(), Unseen: p.Unseen()}); now.Foreground != was.Foreground || now.Unseen != was.Unseen {
			was = now
			if !r.retell(now) {
				r.tell(now)
			}
		}
		select {
		case <-p.Done():
			return
		case <-r.gone:
			return
		case <-tick.C:
		}
	}
}

// retell changes the newest event, if it is of the same kind and was not sent.
func (r *run) retell(e wire.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return false
	}
	last := &r.events[len(r.events)-1]
	if last.Kind != e.Kind || last.Seq <= r.sent {
		return false
	}
	e.Seq = last.Seq
	*last = e
	return true
}
