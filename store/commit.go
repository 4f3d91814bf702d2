package store

import (
	"errors"
	"fmt"

	bolterr "go.etcd.io/bbolt/errors"
)

// begin opens the bbolt transaction of a commit.
func (w *writer) begin() (err error) {
	if err := w.db.fatal(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			w.db.fail(err)
		}
	}()
	defer guard(&err, "begin", "")
	w.tx, err = w.db.bolt.Begin(true)
	if err != nil {
		return fmt.Errorf("begin: %w: %w", ErrUnusable, err)
	}
	w.commit++
	w.touched, w.hooks, w.wrote, w.broken = w.touched[:0], w.hooks[:0], false, nil
	return nil
}

// end seals and commits. An error means that nothing of the group is to be
// acknowledged.
func (w *writer) end() error {
	if w.broken != nil {
		w.db.fail(w.broken)
		w.rollback()
		return w.broken
	}
	if !w.wrote {
		w.rollback()
		w.notify(w.hooks)
		return nil
	}
	if err := w.seal(); err != nil {
		if w.broken != nil {
			w.db.fail(w.broken)
		}
		w.rollback()
		return err
	}
	lack := w.ahead.wait()
	if lack != nil && !lacksRoom(lack) {
		return w.failed(lack, w.tx.ID())
	}
	if id, err := w.tx.ID(), w.write(); err != nil {
		return w.failed(err, id)
	}
	w.settle(true)
	w.notify(w.hooks)
	if lack != nil { // this one was the last into what was there
		_ = w.lacks(lack)
	} else if w.probe.timer == nil {
		w.probe.pause = 0
	}
	return nil
}

// failed sorts the failure of a commit. One for lack of room that left the meta
// pages as they were has not happened, and the store goes on; of any other
// nobody knows what is on disk.
func (w *writer) failed(err error, id int) error {
	w.rollback()
	if lacksRoom(err) && w.db.fatal() == nil && !w.visible(id) {
		w.giveBack()
		return w.lacks(err)
	}
	err = w.doubtful(err)
	w.db.fail(err)
	return err
}

func (w *writer) doubtful(err error) error {
	return fmt.Errorf("commit failed, what it held may or may not be on disk: %w: %w", ErrUnusable, err)
}

// seal runs the hook of Options for each touched tenant.
func (w *writer) seal() error {
	if w.db.opt.Seal == nil {
		return nil
	}
	for _, t := range w.touched {
		if err := w.call(t, w.db.opt.Seal); err != nil {
			return fmt.Errorf("seal commit of tenant %s: %w", t.tenant, err)
		}
		if err := w.apply(t); err != nil {
			return err
		}
	}
	return nil
}

// write puts the counters in and commits.
func (w *writer) write() (err error) {
	defer guard(&err, "commit", "")
	for _, t := range w.touched {
		if err := t.ledger.Write(t.writer(&w.arena)); err != nil {
			return err
		}
		for _, b := range t.list {
			b.fill()
		}
	}
	w.db.bolt.AllocSize = int(growth(w.tx.Size()))
	tx := w.tx
	if err := tx.Commit(); err != nil {
		return err
	}
	w.tx = nil
	return nil
}

// growth is by how much a file of this size grows at a time: each step costs
// a sync, but a small file should stay small.
func growth(size int64) int64 {
	return min(max(size/16, 1<<20), 16<<20)
}

// settle ends the commit's in-memory side.
func (w *writer) settle(committed bool) {
	for _, t := range w.touched {
		t.ledger.Settle(committed)
	}
	w.arena.Reset()
}

func (w *writer) rollback() {
	_ = w.ahead.wait() // zeros that are not on disk cost time alone
	w.settle(false)
	tx := w.tx
	w.tx = nil
	if tx == nil {
		return
	}
	var err error
	defer func() {
		if err != nil {
			w.db.stuck.Store(true)
			w.db.fail(err)
		}
	}()
	defer guard(&err, "roll back", "")
	if e := tx.Rollback(); e != nil && !errors.Is(e, bolterr.ErrTxClosed) {
		err = fmt.Errorf("roll back: %w: %w", ErrUnusable, e)
	}
}

// notify runs the commit's hooks. A panic in one leaves its owner out of step
// with what is on disk: the updates stand, the store stops.
func (w *writer) notify(hooks []func()) {
	var err error
	defer func() {
		if err != nil {
			w.db.fail(fmt.Errorf("after a commit: %w: %w", ErrUnusable, err))
		}
	}()
	defer recovered(&err)
	for _, fn := range hooks {
		fn()
	}
	clear(hooks)
}
