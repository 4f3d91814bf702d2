package store

import (
	"errors"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"
	bolterr "go.etcd.io/bbolt/errors"
)

// writer is the one goroutine that changes the file. Everything it holds
// belongs to that goroutine.
type writer struct {
	db      *DB
	tenants map[string]*tenant
	touched []*tenant // by this commit
	arena   arena
	ahead   ahead
	probe   probe
	overlay overlay
	hooks   []func()
	batch   []*request // the requests of this commit
	late    []*request // spare slice for those that join it
	commit  uint64     // number of the current commit
	tx      *bbolt.Tx
	dirty   *dirty // what a compaction must copy; nil while none runs
	wrote   bool
	broken  error // an update was applied in part: this commit must not happen
}

// run commits until the queue is closed and empty.
func (w *writer) run() {
	defer close(w.db.stopped)
	defer w.probe.stop()
	debug.SetPanicOnFault(true) // a page that can't be read is an error, not the end
	ended := false
	defer func() {
		if !ended { // an fn or a hook called Goexit
			w.exited()
		}
	}()
	for {
		var closed bool
		w.db.queue.gather()
		w.batch, closed = w.db.queue.take(w.batch)
		if len(w.batch) == 0 {
			if closed {
				ended = true
				return
			}
			select {
			case <-w.db.queue.bell:
			case fn := <-w.db.asides:
				fn(w)
			case <-w.probe.due():
				w.look()
			}
			continue
		}
		w.group()
		clear(w.batch)
		select { // however many write into the reserve
		case <-w.probe.due():
			w.look()
		case fn := <-w.db.asides:
			fn(w)
		default:
		}
	}
}

// exited ends the store after a Goexit tore the writer out of a commit.
func (w *writer) exited() {
	err := fmt.Errorf("an update stopped the writer's goroutine: %w", ErrUnusable)
	w.db.fail(err)
	w.rollback()
	rest, _ := w.db.queue.take(nil)
	for _, r := range append(w.batch, rest...) {
		if r != nil && (r.state.Load() == taken || r.state.CompareAndSwap(waiting, taken)) {
			r.err = err
			r.done <- struct{}{}
		}
	}
}

// maxGroup bounds one commit when ever more callers join it.
const maxGroup = 4096

// group runs the waiting requests, and those that come in meanwhile, and
// commits what they changed at once. A caller waits for its answer before it
// asks again, so they run out by themselves.
func (w *writer) group() {
	err := w.begin()
	full := w.db.Full()
	if err == nil && full == nil {
		w.ahead.start(w.db.file, w.tx.Size())
	}
	for i := 0; i < len(w.batch); i++ {
		r := w.batch[i]
		switch {
		case !r.state.CompareAndSwap(waiting, taken):
			w.batch[i] = nil // its caller has gone
		case err != nil:
			r.err = err
		case full != nil && ifFull(r.ctx) != UseReserve:
			r.err = full
		default:
			r.err = w.serve(r)
		}
		if i == len(w.batch)-1 && len(w.batch) < maxGroup {
			w.late, _ = w.db.queue.take(w.late)
			w.batch = append(w.batch, w.late...)
			clear(w.late)
		}
	}
	if err == nil {
		err = w.end()
	}
	for _, r := range w.batch {
		if r == nil {
			continue
		}
		if r.err == nil {
			r.err = err
		}
		r.done <- struct{}{}
	}
}

// serve runs one request inside the current transaction.
func (w *writer) serve(r *request) error {
	if w.broken != nil {
		return w.broken
	}
	if r.create {
		return w.create(r.tenant)
	}
	t, err := w.tenant(r.tenant)
	if err != nil {
		return err
	}
	if err := w.call(t, r.fn); err != nil {
		return err
	}
	return w.apply(t)
}

// call runs fn against a fresh overlay.
func (w *writer) call(t *tenant, fn func(Tx) error) (err error) {
	w.overlay.reset()
	tx := &writeTx{t: t, o: &w.overlay, tenant: t.tenant, epoch: w.db.epoch}
	defer func() { tx.t = nil }()
	defer recovered(&err)
	if err := fn(tx); err != nil {
		return err
	}
	return w.overlay.err
}

// apply moves a successful overlay into the transaction.
func (w *writer) apply(t *tenant) (err error) {
	o := &w.overlay
	defer func() {
		if err != nil {
			w.broken = fmt.Errorf("apply: %w: %w", ErrUnusable, err)
			err = w.broken
		}
	}()
	defer guard(&err, "write", "")
	for i := range o.ops {
		w.dirty.add(t.tenant, o.ops[i].t.name, o.ops[i].key)
		if op := &o.ops[i]; op.remove {
			err = op.t.delete(op.key)
		} else {
			err = op.t.put(&t.tables, &w.arena, op.key, op.value)
		}
		if err != nil {
			return err
		}
	}
	for _, d := range o.deltas {
		w.dirty.add(t.tenant, countersBucket, []byte(d.c.name))
	}
	t.apply(o.deltas)
	w.hooks = append(w.hooks, o.hooks...)
	if len(o.ops)+len(o.deltas) > 0 {
		w.wrote = true
		if !t.touched {
			t.touched = true
			w.touched = append(w.touched, t)
		}
	}
	return nil
}

// tenant returns a tenant bound to the current transaction.
func (w *writer) tenant(id string) (t *tenant, err error) {
	defer guard(&err, "open tenant", "")
	t = w.tenants[id]
	if t == nil {
		t = &tenant{tables: tables{tenant: id}}
	}
	if t.commit == w.commit {
		return t, nil
	}
	root := w.tx.Bucket(tenantKey(id))
	if root == nil {
		return nil, fmt.Errorf("tenant %.80q: %w", id, ErrNoTenant)
	}
	t.begin(root)
	t.commit, t.touched = w.commit, false
	w.tenants[id] = t
	return t, nil
}

func (w *writer) create(id string) (err error) {
	defer func() {
		if errors.Is(err, ErrUnusable) {
			w.broken = err
		}
	}()
	defer guard(&err, "create tenant", "")
	if err := checkTenant(id); err != nil {
		return err
	}
	switch _, err := w.tx.CreateBucket(tenantKey(id)); {
	case errors.Is(err, bolterr.ErrBucketExists):
		return fmt.Errorf("tenant %s: %w", id, ErrTenantExists)
	case err != nil:
		return fmt.Errorf("create tenant %s: %w", id, err)
	}
	w.dirty.add(id, "", nil)
	w.wrote = true
	return nil
}
