package store

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// request is one Update or CreateTenant waiting for the writer.
type request struct {
	tenant string
	create bool
	ctx    context.Context // says what to do when the disk is full
	fn     func(Tx) error
	state  atomic.Int32
	err    error
	done   chan struct{} // one slot
}

// States of a request: whoever moves it from waiting first owns it.
const (
	waiting int32 = iota
	taken
	abandoned
)

// queue holds the requests that wait while a commit is on its way to disk.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	closed  error         // why nothing more is accepted
	bell    chan struct{} // one slot
	spare   sync.Pool     // of *request
}

// request returns an empty request. Requests are kept per store: inside a
// testing/synctest bubble their channels must not come from another.
func (q *queue) request() *request {
	if r, ok := q.spare.Get().(*request); ok {
		return r
	}
	return &request{done: make(chan struct{}, 1)}
}

func (q *queue) push(r *request) error {
	q.mu.Lock()
	if q.closed != nil {
		q.mu.Unlock()
		return q.closed
	}
	q.waiting = append(q.waiting, r)
	first := len(q.waiting) == 1
	q.mu.Unlock()
	if first {
		q.ring()
	}
	return nil
}

func (q *queue) ring() {
	select {
	case q.bell <- struct{}{}:
	default:
	}
}

// gather lets the callers that the last commit answered run, so that their
// next requests join this one: otherwise two halves of them take turns, each
// waiting for the other's sync. It yields while requests keep coming in, a few
// times at most, and never waits for anything.
func (q *queue) gather() {
	seen := -1
	for range 4 {
		runtime.Gosched()
		q.mu.Lock()
		n := len(q.waiting)
		q.mu.Unlock()
		if n == seen {
			return
		}
		seen = n
	}
}

// take swaps everything that waits for an empty slice.
func (q *queue) take(empty []*request) (batch []*request, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, q.waiting = q.waiting, empty[:0]
	return batch, q.closed != nil
}

// close lets nothing more in. The first reason stays.
func (q *queue) close(why error) {
	q.mu.Lock()
	if q.closed == nil {
		q.closed = why
	}
	q.mu.Unlock()
	q.ring()
}

// submit hands a request to the writer and waits for its outcome. When ctx
// ends before the writer took it, it is not run at all.
func (db *DB) submit(ctx context.Context, tenant string, create bool, fn func(Tx) error) error {
	for {
		err := db.once(ctx, tenant, create, fn)
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
	r := db.queue.request()
	r.ctx, r.tenant, r.create, r.fn, r.err = ctx, tenant, create, fn, nil
	r.state.Store(waiting)
	if err := db.queue.push(r); err != nil {
		return err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err() // the writer drops r
		}
		<-r.done
	}
	err := r.err
	r.ctx, r.fn = nil, nil
	db.queue.spare.Put(r)
	return err
}
