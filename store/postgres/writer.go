package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"swarmdeck/store"
	"swarmdeck/store/internal/group"
)

type (
	update  = func(store.Tx) error
	request = group.Request[update]
)

// tenant is one tenant of ours and its writer.
type tenant struct {
	db     *DB
	name   string
	epoch  int64
	queue  group.Queue[update]
	dead   atomic.Pointer[error]
	handed atomic.Bool // to another store, or about to be: its lease is not renewed

	gate    chan struct{} // one slot, taken while a commit is on its way or now changes
	now     *moment       // under gate
	stopped chan struct{} // closed when the writer has ended

	// The writer's own.
	buckets buckets
	session int64
	schema  int
	overlay group.Overlay[*bucket]
	ledger  group.Ledger
	hooks   []func()
	batch   []*request
	late    []*request  // spare slice for those that join it
	draft   *moment     // the commit that is being made
	tail    *group.Tail // what a copy that is made elsewhere has still to take
}

func newTenant(db *DB, name string) *tenant {
	t := &tenant{db: db, name: name, gate: make(chan struct{}, 1), stopped: make(chan struct{}), buckets: buckets{tenant: name}}
	t.queue.Bell = make(chan struct{}, 1)
	return t
}

// fail ends the work on this tenant: nothing is acknowledged or read any more.
func (t *tenant) fail(err error) {
	first := t.dead.CompareAndSwap(nil, &err)
	t.queue.Close(err)
	if first && t.db.opt.Lost != nil && errors.Is(err, store.ErrFenced) {
		t.db.opt.Lost(err)
	}
}

// fatal is the error that ended the work, nil while all is well.
func (t *tenant) fatal() error {
	if p := t.dead.Load(); p != nil {
		return *p
	}
	return nil
}

func (t *tenant) fenced() error {
	return fmt.Errorf("tenant %.80q, epoch %d: %w", t.name, t.epoch, store.ErrFenced)
}

// enter begins a View of the present moment.
func (t *tenant) enter(ctx context.Context) (*moment, error) {
	select {
	case t.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-t.gate }()
	if err := t.fatal(); err != nil {
		return nil, err
	}
	t.now.mu.Lock()
	defer t.now.mu.Unlock()
	t.now.views++
	return t.now, nil
}

// run commits until the queue is closed and empty.
func (t *tenant) run() {
	defer close(t.stopped)
	ended := false
	defer func() {
		if !ended { // an fn or a hook called Goexit
			t.exited()
		}
	}()
	for {
		t.queue.Gather()
		var closed bool
		t.late, closed = t.queue.Take(t.late)
		t.batch = append(t.batch, t.late...)
		clear(t.late)
		if len(t.batch) == 0 {
			if closed {
				ended = true
				return
			}
			<-t.queue.Bell
			continue
		}
		t.group()
	}
}

// exited ends the work after a Goexit tore the writer out of a commit.
func (t *tenant) exited() {
	err := fmt.Errorf("an update stopped the writer's goroutine: %w", store.ErrUnusable)
	t.fail(err)
	rest, _ := t.queue.Take(nil)
	for _, r := range append(t.batch, rest...) {
		if r != nil && (r.Taken() || r.Take()) {
			r.Err = err
			r.Answer()
		}
	}
}

// maxBytes is how much one commit gathers. A single update may be larger.
const maxBytes = 16 << 20

// group runs the requests that wait, and those that come in meanwhile, and
// commits what they changed at once.
func (t *tenant) group() {
	t.begin()
	done := 0
	for ; done < len(t.batch) && t.draft.staged.bytes < maxBytes; done++ {
		r := t.batch[done]
		if !r.Take() {
			t.batch[done] = nil // its caller has gone
		} else if r.Err = t.fatal(); r.Err == nil {
			r.Err = t.serve(r)
		}
		if done == len(t.batch)-1 && len(t.batch) < group.MaxGroup {
			t.late, _ = t.queue.Take(t.late)
			t.batch = append(t.batch, t.late...)
			clear(t.late)
		}
	}
	err := t.end(t.db.opt.Seal)
	for _, r := range t.batch[:done] {
		if r == nil {
			continue
		}
		if r.Err == nil {
			r.Err = err
		}
		r.Answer()
	}
	rest := copy(t.batch, t.batch[done:])
	clear(t.batch[rest:])
	t.batch = t.batch[:rest]
}

// serve runs one request. One that creates nothing here is aside of all tenants: it
// runs while the updates of this one are held.
func (t *tenant) serve(r *request) error {
	if !r.Create {
		if err := t.tail.Held(); err != nil {
			return err
		}
	}
	return t.call(r.Fn)
}

// begin opens a commit: a moment that nobody else sees.
func (t *tenant) begin() {
	t.now.mu.Lock() // only the writer changes now: it may read it without the gate
	defer t.now.mu.Unlock()
	t.draft = newMoment(t, t.now.commit)
	t.draft.has, t.draft.staged = t.now.has.copy(), &changes{}
	t.hooks = t.hooks[:0]
	if len(t.buckets.list) > manyBuckets {
		t.buckets.list = nil
	}
}

// manyBuckets is the number of handles from which all are forgotten.
const manyBuckets = 256

// call runs fn against a fresh overlay and moves what it changed into the draft.
func (t *tenant) call(fn update) (err error) {
	o := &t.overlay
	o.Reset()
	if err := t.try(fn); err != nil {
		return err
	}
	t.draft.mu.Lock()
	defer t.draft.mu.Unlock()
	for i := range o.Ops {
		if err := checkIndex(o.Ops[i].Table.name, o.Ops[i].Key); err != nil {
			return err
		}
		if err := t.draft.meet(t.db.ctx, o.Ops[i].Table.name); err != nil {
			return err
		}
	}
	for i := range o.Ops {
		op := &o.Ops[i]
		t.tail.Add(string(op.Table.name), op.Key)
		if op.Remove {
			t.draft.staged.add(change{bucket: op.Table.name, key: bytes.Clone(op.Key)}, t.draft.has)
		} else {
			t.put(op.Table, op.Key, op.Value)
		}
	}
	for _, d := range o.Deltas {
		t.tail.Add(group.Counters, []byte(d.Counter.Name()))
	}
	t.ledger.Apply(o.Deltas)
	t.hooks = append(t.hooks, o.Hooks...)
	return nil
}

func (t *tenant) try(fn update) (err error) {
	tx := group.Write(group.WriteBase[store.Bucket, *bucket](t), &t.overlay, t.name, uint64(t.epoch))
	defer tx.End()
	defer recovered(&err)
	if err := fn(tx); err != nil {
		return err
	}
	return t.overlay.Err
}

// put stages a record. Key and value are the caller's.
func (t *tenant) put(b *bucket, key, value []byte) {
	record := group.Wrap(make([]byte, 0, group.SumLen+len(value)), b.seed, key, value)
	t.draft.staged.add(change{bucket: b.name, key: bytes.Clone(key), record: record}, t.draft.has)
}

// Find implements group.Base.
func (t *tenant) Find(name store.Bucket) (*bucket, error) { return t.buckets.Find(name) }

// Get implements group.Base.
func (t *tenant) Get(b *bucket, key []byte) ([]byte, error) {
	return t.draft.value(t.db.ctx, b, key)
}

// Scan implements group.Base.
func (t *tenant) Scan(b *bucket, o *group.Overlay[*bucket], from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
	return t.draft.scan(t.db.ctx, b, o, from, to, reverse, fn)
}

// Count implements group.Base.
func (t *tenant) Count(name string) (int64, error) {
	return t.draft.count(t.db.ctx, t.buckets.counters(), name)
}

// Cell implements group.WriteBase.
func (t *tenant) Cell(name string) (*group.Counter, error) { return t.ledger.Cell(name, t.Count) }

// notify runs the commit's hooks. A panic in one leaves its owner out of step
// with what is stored: the updates stand, the work ends.
func (t *tenant) notify() {
	var err error
	defer func() {
		if err != nil {
			t.fail(fmt.Errorf("after a commit: %w: %w", store.ErrUnusable, err))
		}
	}()
	defer recovered(&err)
	for _, fn := range t.hooks {
		fn()
	}
	clear(t.hooks)
}

// migrate brings the tenant to the schema that this program knows, before its
// writer runs.
func (t *tenant) migrate() error {
	steps := t.db.opt.Migrations
	if t.schema > len(steps) {
		return fmt.Errorf("tenant %.80q: %w: schema %d is newer than this program's %d", t.name, store.ErrUnusable, t.schema, len(steps))
	}
	if t.schema == len(steps) {
		return nil
	}
	t.begin()
	for i, step := range steps[t.schema:] {
		if err := t.call(step.Apply); err != nil {
			return fmt.Errorf("%w: migration %d (%s) of tenant %s: %w", store.ErrUnusable, t.schema+i+1, step.Name, t.name, err)
		}
	}
	t.schema = len(steps)
	return t.commit()
}

// end seals and commits. An error means that nothing of the group is to be
// acknowledged.
func (t *tenant) end(seal update) error {
	if err := t.fatal(); err != nil && !errors.Is(err, store.ErrClosed) {
		t.ledger.Settle(false)
		return err
	}
	if !t.wrote() {
		t.ledger.Settle(false)
		t.now.mu.Lock()
		t.now.has = t.draft.has // the same, and more of it in memory
		t.now.mu.Unlock()
		t.notify()
		return nil
	}
	if seal != nil {
		if err := t.call(seal); err != nil {
			t.ledger.Settle(false)
			return fmt.Errorf("seal commit of tenant %s: %w", t.name, err)
		}
	}
	if err := t.commit(); err != nil {
		return err
	}
	t.notify()
	return nil
}
