package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"
	bolterr "go.etcd.io/bbolt/errors"

	"swarmdeck/store/internal/group"
)

// writer is the one goroutine that changes the file. Everything it holds
// belongs to that goroutine.
type writer struct {
	db      *DB
	tenants map[string]*tenant
	touched []*tenant // by this commit
	arena   group.Arena
	ahead   ahead
	probe   probe
	overlay group.Overlay[*table]
	hooks   []func()
	batch   []*request // the requests of this commit
	late    []*request // spare slice for those that join it
	commit  uint64     // number of the current commit
	tx      *bbolt.Tx
	dirty   *dirty                 // what a compaction must copy; nil while none runs
	tails   map[string]*group.Tail // of the tenants that are copied away
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
		w.db.queue.Gather()
		w.batch, closed = w.db.queue.Take(w.batch)
		if len(w.batch) == 0 {
			if closed {
				ended = true
				return
			}
			select {
			case <-w.db.queue.Bell:
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
	rest, _ := w.db.queue.Take(nil)
	for _, r := range append(w.batch, rest...) {
		if r != nil && (r.Taken() || r.Take()) {
			r.Err = err
			r.Answer()
		}
	}
}

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
		case !r.Take():
			w.batch[i] = nil // its caller has gone
		case err != nil:
			r.Err = err
		case full != nil && ifFull(r.Ctx) != UseReserve:
			r.Err = full
		default:
			r.Err = w.serve(r)
		}
		if i == len(w.batch)-1 && len(w.batch) < group.MaxGroup {
			w.late, _ = w.db.queue.Take(w.late)
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
		if r.Err == nil {
			r.Err = err
		}
		r.Answer()
	}
}

// serve runs one request inside the current transaction.
func (w *writer) serve(r *request) error {
	if w.broken != nil {
		return w.broken
	}
	if r.Create {
		return w.create(r.Tenant)
	}
	if err := w.tails[r.Tenant].Held(); err != nil {
		return err
	}
	t, err := w.tenant(r.Tenant)
	if err != nil {
		return err
	}
	if err := w.call(t, r.Fn); err != nil {
		return err
	}
	return w.apply(t)
}

// call runs fn against a fresh overlay.
func (w *writer) call(t *tenant, fn func(Tx) error) (err error) {
	w.overlay.Reset()
	tx := group.Write(t, &w.overlay, t.tenant, w.db.epoch)
	defer tx.End()
	defer recovered(&err)
	if err := fn(tx); err != nil {
		return err
	}
	return w.overlay.Err
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
	tail := w.tails[t.tenant]
	for i := range o.Ops {
		tail.Add(string(o.Ops[i].Table.name), o.Ops[i].Key)
		w.dirty.add(t.tenant, o.Ops[i].Table.name, o.Ops[i].Key)
		if op := &o.Ops[i]; op.Remove {
			err = op.Table.delete(op.Key)
		} else {
			err = op.Table.put(&t.tables, &w.arena, op.Key, op.Value)
		}
		if err != nil {
			return err
		}
	}
	for _, d := range o.Deltas {
		tail.Add(group.Counters, []byte(d.Counter.Name()))
		w.dirty.add(t.tenant, countersBucket, []byte(d.Counter.Name()))
	}
	t.ledger.Apply(o.Deltas)
	w.hooks = append(w.hooks, o.Hooks...)
	if len(o.Ops)+len(o.Deltas) > 0 {
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
	if err := w.db.away(id); err != nil {
		return nil, err
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
	if err := group.CheckTenant(id); err != nil {
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

// submit hands a request to the writer and waits for its outcome. When ctx
// ends before the writer took it, it is not run at all.
func (db *DB) submit(ctx context.Context, tenant string, create bool, fn func(Tx) error) error {
	for {
		err := db.once(ctx, tenant, create, fn)
		if held := new(group.HeldError); err != nil && errors.As(err, &held) {
			select {
			case <-held.Until:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if !errors.Is(err, ErrFull) || ifFull(ctx) != Wait {
			return err
		}
		if ctx, err = db.await(ctx, err); err != nil {
			return cmp.Or(db.fatal(), err)
		}
	}
}

func (db *DB) once(ctx context.Context, tenant string, create bool, fn func(Tx) error) error {
	if ctx.Err() != nil && ifFull(ctx) == Wait {
		ctx = lifted(ctx, db.Outage())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if db.readOnly {
		return ErrReadOnly
	}
	if full := db.Full(); full != nil && ifFull(ctx) != UseReserve {
		return full
	}
	return db.queue.Do(ctx, tenant, create, fn)
}

// guard turns a panic of bbolt, which is how it meets a damaged page, into an
// error. Use it only around calls of bbolt, never around a caller's code.
func guard(err *error, doing string, b Bucket) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s %s: %w: damaged page: %v", doing, b, ErrUnusable, r)
	}
}

// recovered turns a panic of a caller's code into that caller's error.
func recovered(err *error) {
	r := recover()
	if r == nil {
		return
	}
	if fault, ok := r.(interface{ Addr() uintptr }); ok {
		*err = fmt.Errorf("%w: a page can't be read (fault at %#x)", ErrUnusable, fault.Addr())
	} else {
		*err = &PanicError{Value: r, Stack: debug.Stack()}
	}
}

// PanicError is what an Update or View returns when its fn panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("transaction panicked: %v", e.Value) }
