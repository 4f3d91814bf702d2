package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

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
	part   *Part // that works on it, nil for none; DB.mu guards it
	dead   atomic.Pointer[error]
	handed atomic.Bool               // to another store, or about to be: its lease is not renewed
	until  atomic.Pointer[time.Time] // for sure ours; nil while it is being taken
	asking chan struct{}             // one slot, taken by who asks whether it still is

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
	flight  *flight     // the one before it, on its way
	tail    *group.Tail // what a copy that is made elsewhere has still to take
}

func newTenant(db *DB, name string) *tenant {
	t := &tenant{db: db, name: name, gate: make(chan struct{}, 1), asking: make(chan struct{}, 1), stopped: make(chan struct{}), buckets: buckets{tenant: name}}
	t.queue.Bell = make(chan struct{}, 1)
	return t
}

// fail ends the work on this tenant: nothing is acknowledged or read any more.
func (t *tenant) fail(err error) {
	first := t.dead.CompareAndSwap(nil, &err)
	t.queue.Close(err)
	if first && t.db.opt.Lost != nil && errors.Is(err, store.ErrFenced) {
		t.db.opt.Lost(t.name, err)
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
		switch {
		case len(t.batch) > 0:
			t.group()
		case t.flight != nil:
			if t.landed() {
				_ = t.land()
			}
		case closed:
			ended = true
			return
		default:
			<-t.queue.Bell
		}
	}
}

// exited ends the work after a Goexit tore the writer out of a commit.
func (t *tenant) exited() {
	err := t.db.fault(errors.New("an update stopped the writer's goroutine"))
	t.fail(err)
	rest, _ := t.queue.Take(nil)
	rest = append(t.batch, rest...)
	if t.flight != nil {
		_ = t.flight.outcome()
		if !t.flight.down {
			<-t.gate
		}
		rest = append(t.flight.batch, rest...)
	}
	for _, r := range rest {
		if r != nil && (r.Taken() || r.Take()) {
			r.Err = err
			r.Answer()
		}
	}
}

// maxBytes is how much one commit gathers. A single update may be larger.
const maxBytes = 16 << 20

// group runs the requests that wait, and those that come in meanwhile, and sends
// what they changed at once. As long as the commit before is on its way, it takes
// more: what they did stands on that one, and is nothing without it.
func (t *tenant) group() {
	t.begin()
	done := t.work(0)
	var err error
	for t.flight != nil {
		if done == len(t.batch) && done < group.MaxGroup && !t.landed() {
			t.join()
			done = t.work(done)
			continue
		}
		if err = t.land(); err != nil {
			err = fmt.Errorf("the commit before it: %w", err)
		} else if done < plenty {
			t.queue.Gather() // those who were just told
			t.join()
			done = t.work(done)
		}
	}
	if err == nil {
		err = t.end(t.batch[:done])
	}
	if t.flight == nil { // nothing was sent
		answer(t.batch[:done], err)
	}
	rest := copy(t.batch, t.batch[done:])
	clear(t.batch[rest:])
	t.batch = t.batch[:rest]
}

// plenty is how many requests make a commit that is worth its round trip: what waits
// beyond them is better run while it is on its way.
const plenty = 64

// work runs the batch from one request on, as far as a commit has room or until there
// are plenty and it can be sent, and returns how many were run.
func (t *tenant) work(done int) int {
	for ; done < len(t.batch) && t.draft.staged.bytes < maxBytes; done++ {
		if done >= plenty && (t.flight == nil || t.flight.isOver()) {
			break
		}
		r := t.batch[done]
		if !r.Take() {
			t.batch[done] = nil // its caller has gone
		} else if r.Err = t.fatal(); r.Err == nil {
			r.Err = t.serve(r)
		}
		if done == len(t.batch)-1 && len(t.batch) < group.MaxGroup {
			t.join()
		}
	}
	return done
}

// join adds those that wait to the batch.
func (t *tenant) join() {
	t.late, _ = t.queue.Take(t.late)
	t.batch = append(t.batch, t.late...)
	clear(t.late)
}

// answer tells the callers of a group how it went.
func answer(batch []*request, err error) {
	for _, r := range batch {
		if r == nil {
			continue
		}
		if r.Err == nil {
			r.Err = err
		}
		r.Answer()
	}
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

// begin opens a commit: a moment that nobody else sees, on top of the commit that
// is on its way or of the present moment.
func (t *tenant) begin() {
	on, next := t.now, t.now.commit // only the writer changes now: it may read it without the gate
	if t.flight != nil && t.flight.draft.has.size > t.db.opt.Memory {
		_ = t.land() // its callers are told; then memory is let go
		on, next = t.now, t.now.commit
	}
	if t.flight != nil {
		on, next = t.flight.draft, t.flight.draft.commit+1
	}
	on.mu.Lock()
	defer on.mu.Unlock()
	t.draft = newMoment(t, next)
	t.draft.has, t.draft.staged, t.draft.after = on.has.copy(), &changes{}, t.flight
	t.hooks = nil
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

func (t *tenant) Find(name store.Bucket) (*bucket, error) { return t.buckets.Find(name) }

func (t *tenant) Get(b *bucket, key []byte) ([]byte, error) {
	return t.draft.value(t.db.ctx, b, key)
}

func (t *tenant) Scan(b *bucket, o *group.Overlay[*bucket], from, to []byte, reverse bool, visit group.Visit) error {
	return t.draft.scan(t.db.ctx, b, o, from, to, reverse, visit)
}

func (t *tenant) Count(name string) (int64, error) {
	return t.draft.count(t.db.ctx, t.buckets.counters(), name)
}

func (t *tenant) Cell(name string) (*group.Counter, error) { return t.ledger.Cell(name, t.Count) }

// notify runs the commit's hooks. A panic in one leaves its owner out of step
// with what is stored: the updates stand, the work ends.
func (t *tenant) notify(hooks []func()) {
	var err error
	defer func() {
		if err != nil {
			t.fail(t.db.fault(fmt.Errorf("after a commit: %w", err)))
		}
	}()
	defer recovered(&err)
	for _, fn := range hooks {
		fn()
	}
}

// migrate brings the tenant to the schema that this program knows, before its
// writer runs.
func (t *tenant) migrate() error {
	steps := t.db.opt.Migrations
	if t.schema == len(steps) {
		return nil
	}
	t.begin()
	for i, step := range steps[t.schema:] {
		if err := t.call(step.Apply); err != nil {
			return t.db.fault(fmt.Errorf("migration %d (%s) of tenant %s: %w", t.schema+i+1, step.Name, t.name, err))
		}
	}
	t.schema = len(steps)
	t.send(nil)
	return t.land()
}

// end seals the group and sends it, or says why nothing of it is to be acknowledged.
// One that changes nothing has ended by then.
func (t *tenant) end(batch []*request) error {
	if err := t.fatal(); err != nil && !errors.Is(err, store.ErrClosed) {
		t.ledger.Settle(false)
		return err
	}
	if !t.wrote() {
		t.ledger.Settle(false)
		if !t.isSure() {
			if err := t.confirm(t.db.ctx); err != nil {
				return err
			}
		}
		t.now.mu.Lock()
		t.now.has = t.draft.has // the same, and more of it in memory
		t.now.mu.Unlock()
		t.notify(t.hooks)
		return nil
	}
	if seal := t.db.opt.Seal; seal != nil {
		if err := t.call(seal); err != nil {
			t.ledger.Settle(false)
			return fmt.Errorf("seal commit of tenant %s: %w", t.name, err)
		}
	}
	t.send(batch)
	return nil
}
