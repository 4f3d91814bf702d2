package postgres

import "fmt"

// flight is a commit on its way: sent, its outcome not known. Nobody is told of what
// is in it, and no View sees that, until it has landed. Meanwhile the writer runs the
// next group on top of it, which is sent when it has landed, and fails when it failed.
type flight struct {
	draft *moment
	hooks []func()
	batch []*request
	over  chan struct{} // closed when the outcome is known
	err   error         // it, from then on
	down  bool          // the gate is open again; the writer's
}

// outcome waits until it is known.
func (f *flight) outcome() error {
	<-f.over
	return f.err
}

// isOver reports whether it is known.
func (f *flight) isOver() bool {
	select {
	case <-f.over:
		return true
	default:
		return false
	}
}

// wrote reports whether the draft changes anything.
func (t *tenant) wrote() bool { return len(t.draft.staged.list) > 0 || t.ledger.Dirty() }

// send lets the draft go; none is under way. The gate stays shut until it has landed.
func (t *tenant) send(batch []*request) {
	t.draft.mu.Lock()
	counters := t.buckets.counters()
	_ = t.ledger.Write(func(name, value []byte) error { t.put(counters, name, value); return nil })
	t.draft.mu.Unlock()
	t.ledger.Settle(true) // or all is forgotten: see land
	t.draft.after = nil
	f := &flight{draft: t.draft, hooks: t.hooks, batch: append([]*request{}, batch...), over: make(chan struct{})}
	t.flight, t.draft, t.hooks = f, nil, nil
	t.gate <- struct{}{}
	go func() {
		defer close(f.over)
		if f.err = t.now.freeze(t.db.ctx); f.err != nil {
			f.err = fmt.Errorf("hold the views: %w", f.err)
		} else {
			f.err = t.write(f.draft)
		}
	}()
}

// landed waits until the flight has landed, or a request came in.
func (t *tenant) landed() bool {
	if t.flight.isOver() {
		return true
	}
	select {
	case <-t.flight.over:
		return true
	case <-t.queue.Bell:
		return false
	}
}

// land waits for the flight, makes it the present moment, and tells those who wait.
// When it failed, what the writer has in mind of it is forgotten, and what is in memory
// of the database: that may be why, if others wrote there.
func (t *tenant) land() error {
	f := t.flight
	err := f.outcome()
	if err != nil {
		err = fmt.Errorf("commit of tenant %.80q: %w", t.name, err)
		t.ledger.Forget()
		t.now.forget()
	} else {
		f.draft.commit++
		f.draft.staged = nil
		f.draft.has.shrink(t.db.opt.Memory)
		t.now = f.draft
		t.db.bell.committed(t.name)
	}
	<-t.gate
	f.down = true
	if err == nil {
		t.notify(f.hooks)
	}
	t.flight = nil // a hook that tore the writer down leaves it to exited
	answer(f.batch, err)
	return err
}
