package hold

import (
	"time"

	"github.com/hashicorp/yamux"

	"swarmdeck/drivers/host/wire"
	"swarmdeck/engine/core"
)

// stop has the keeper end.
func (k *holder) stop() { k.once.Do(func() { close(k.end) }) }

// expire ends all, and the keeper, once the lease is over.
func (k *holder) expire() {
	for {
		k.mu.Lock()
		left := k.lease - (wire.SinceBoot() - k.base)
		k.allow()
		k.mu.Unlock()
		if left <= 0 {
			_ = k.endAll(true, func(*run) bool { return true })
			k.stop()
			return
		}
		select {
		case <-time.After(min(left, time.Second)):
		case <-k.end:
			return
		}
	}
}

// endAll ends runs, all at once, and forgets those that have ended. It may be because the
// lease is over.
func (k *holder) endAll(lease bool, which func(*run) bool) error {
	k.mu.Lock()
	var list []*run
	for _, r := range k.runs {
		if which(r) {
			list = append(list, r)
		}
	}
	k.mu.Unlock()
	return core.Each(list, func(r *run) error {
		err := r.drop(lease)
		if err == nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.runs, r.id)
		}
		return err
	})
}

// ended ends everything, says so and has the keeper end. It is asked for over the link,
// or by who comes for that alone.
func (k *holder) ended(c *wire.Conn, e *wire.End, session *yamux.Session) {
	k.order.Lock()
	told := wire.Ended{}
	err := k.admit(e.Epoch)
	if err == nil && session != nil && !k.linked(session) {
		err = errReplaced
	}
	if err != nil {
		k.order.Unlock()
		_ = c.Send(wire.Control{Ended: &wire.Ended{Error: err.Error()}})
		return
	}
	if err = k.endAll(false, func(*run) bool { return true }); err == nil && e.Remove {
		err = removed(k.dir)
	}
	if err != nil {
		told.Error = err.Error()
	}
	k.order.Unlock()
	_ = c.Send(wire.Control{Ended: &told})
	k.stop()
	<-k.over // the end of the link is the end of the keeper
}
