package hold

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/yamux"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
)

// A tenant has one owner at a time, whose epoch is higher than that of all before it.
// The keeper's disk has the highest that came, so that no earlier owner is heard any
// more, also by a keeper that is started again.

// epochName is the file with the epoch, in digits.
const epochName = "epoch"

// newerError is what an owner is told that was replaced.
type newerError struct{ epoch, has uint64 }

func (e newerError) Error() string {
	return fmt.Sprintf("a newer owner of the tenant has it: its epoch is %d, this engine's %d (where the records come from a backup, remove the file %q of the keeper there)", e.epoch, e.has, epochName)
}

// errReplaced is what a word of an engine comes to that is not the owner any more.
var errReplaced = errors.New("another engine has the host")

// admit lets an owner in, and none before it from then on. The caller holds order.
func (k *holder) admit(epoch uint64) error {
	path := filepath.Join(k.dir, epochName)
	var newest uint64
	text, err := os.ReadFile(path)
	if err == nil {
		newest, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("read the epoch of the newest owner: %w", err)
	case epoch < newest:
		return newerError{newest, epoch}
	case epoch == newest:
		return nil
	}
	if err := safeopen.Replace(path, fmt.Appendln(nil, epoch)); err != nil {
		return fmt.Errorf("keep the epoch of the newest owner: %w", err)
	}
	return nil
}

// linked reports whether a session is the present link.
func (k *holder) linked(session *yamux.Session) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.link == session
}

// allow lets the cells run on as long as the lease of the host and, where there is one,
// that on the owner's data allow; then they freeze. They do, too, soon after this process
// was stopped. mu is held.
func (k *holder) allow() {
	now := wire.SinceBoot()
	until := min(k.base+k.lease, now+cell.Lease)
	if k.leased {
		until = min(until, k.held)
	}
	k.sup.Hold(time.Now().Add(until - now))
}

// beaten takes a beat that has come back. What it says counts from when it had left, so
// that what is on its way makes nothing longer.
func (k *holder) beaten(f *wire.Control, session *yamux.Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.link != session || f.Beat > k.beats || k.beats-f.Beat >= uint64(len(k.sent)) {
		return
	}
	left := k.sent[f.Beat%uint64(len(k.sent))]
	k.base = max(k.base, left)
	if f.HoldMS > 0 {
		k.held = max(k.held, left+time.Duration(min(f.HoldMS, wire.MaxLease))*time.Millisecond)
	}
	k.allow()
}

// awaitHold waits a while until cells may run. It fails when the engine that began with
// it is not the owner any more.
func (k *holder) awaitHold(engine string) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		k.mu.Lock()
		mine, may := k.engine == engine, !k.leased || k.held > wire.SinceBoot()
		k.mu.Unlock()
		switch {
		case !mine:
			return errReplaced
		case may, time.Since(began) > holdPatience: // then it says so itself
			return nil
		}
	}
}

// holdPatience is how long a start waits for the owner to say that the data are its own.
const holdPatience = 5 * time.Second

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
