package store

import "time"

// The writer looks for room again after a while, doubled up to the most. It
// begins anew only after a commit of the usual kind went well, so that a
// commit too large for the disk costs no more than one too small for it.
const (
	probeFirst = 100 * time.Millisecond
	probeMost  = 2 * time.Second
)

// probe looks for room while the disk is full.
type probe struct {
	pause time.Duration
	timer *time.Timer // nil while there is room
}

// due rings when it is time to look; never while there is room.
func (p *probe) due() <-chan time.Time {
	if p.timer == nil {
		return nil
	}
	return p.timer.C
}

// later sets the next look.
func (p *probe) later() {
	p.pause = min(max(2*p.pause, probeFirst), probeMost)
	if p.timer == nil {
		p.timer = time.NewTimer(p.pause)
		return
	}
	p.timer.Reset(p.pause)
}

func (p *probe) stop() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// lacks refuses further writes, but for those into the reserve.
func (w *writer) lacks(cause error) error {
	full := w.db.lack(cause)
	w.probe.later()
	return full
}

// look finds out whether there is room again: first by what the file system
// says, so as not to take the last of it from others, then by writing ahead.
func (w *writer) look() {
	if free := freeSpace(w.db.path); free >= 0 && free < aheadLeast {
		_ = w.lacks(w.db.Full().Err)
		return
	}
	if w.begin() != nil {
		w.probe.stop() // the store has ended
		return
	}
	used := w.tx.Size()
	w.rollback()
	w.ahead.start(w.db.file, used)
	switch err := w.ahead.wait(); {
	case lacksRoom(err):
		_ = w.lacks(err)
	case err != nil:
		w.db.fail(w.doubtful(err))
		w.probe.stop()
	default:
		w.probe.stop()
		w.db.ample()
	}
}

// giveBack cuts off what a failed commit wrote past the space ahead: it may be
// all that there was.
func (w *writer) giveBack() {
	if w.begin() != nil {
		return
	}
	used := w.tx.Size()
	w.rollback()
	w.ahead.end = max(w.ahead.end, used)
	_ = w.db.file.Truncate(w.ahead.end) // else the next commit that fits uses it
}

// visible reports whether the commit of that id shows in the file's meta
// pages, or may: only one that does not has surely not happened.
func (w *writer) visible(id int) bool {
	info, err := w.db.file.Stat()
	if err != nil {
		return true
	}
	m, err := findMeta(w.db.file, info.Size())
	return err != nil || m.damaged || m.txid >= uint64(id)
}
