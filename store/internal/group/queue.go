// Package group is what the stores that commit in groups share: the queue in
// which Updates wait for the one writer, the overlay that holds what an Update
// wants changed until it has succeeded, the transactions that callers see, the
// counters, and the checksum that each record carries.
//
// B is the type of a bucket's name, T a store's handle of one bucket, F what
// an Update runs.
package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Request is one Update or CreateTenant waiting for the writer.
type Request[F any] struct {
	Tenant string
	Create bool
	Ctx    context.Context // says what to do when the disk is full
	Fn     F
	Err    error // the outcome, set before Answer

	state atomic.Int32
	done  chan struct{} // one slot
}

// States of a request: whoever moves it from waiting first owns it.
const (
	waiting int32 = iota
	taken
	abandoned
)

// Take makes the request the writer's; false when its caller has gone.
func (r *Request[F]) Take() bool { return r.state.CompareAndSwap(waiting, taken) }

// Taken reports whether the writer has it.
func (r *Request[F]) Taken() bool { return r.state.Load() == taken }

// Answer lets the caller go on with Err.
func (r *Request[F]) Answer() { r.done <- struct{}{} }

// Queue holds the requests that wait while a commit is on its way to disk.
type Queue[F any] struct {
	Bell chan struct{} // one slot; rings when there is something to take

	mu      sync.Mutex
	waiting []*Request[F]
	closed  error     // why nothing more is accepted
	spare   sync.Pool // of *Request
}

// request returns an empty request. Requests are kept per store: inside a
// testing/synctest bubble their channels must not come from another.
func (q *Queue[F]) request() *Request[F] {
	if r, ok := q.spare.Get().(*Request[F]); ok {
		return r
	}
	return &Request[F]{done: make(chan struct{}, 1)}
}

// Do hands a request to the writer and waits for its outcome. When ctx ends
// before the writer took it, it is not run at all.
func (q *Queue[F]) Do(ctx context.Context, tenant string, create bool, fn F) error {
	r := q.request()
	r.Ctx, r.Tenant, r.Create, r.Fn, r.Err = ctx, tenant, create, fn, nil
	r.state.Store(waiting)
	if err := q.push(r); err != nil {
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
	err := r.Err
	var none F
	r.Ctx, r.Fn = nil, none
	q.spare.Put(r)
	return err
}

func (q *Queue[F]) push(r *Request[F]) error {
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

func (q *Queue[F]) ring() {
	select {
	case q.Bell <- struct{}{}:
	default:
	}
}

// Len is the number of requests that wait.
func (q *Queue[F]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Gather lets the callers that the last commit answered run, so that their
// next requests join this one: otherwise two halves of them take turns, each
// waiting for the other's sync. It yields while requests keep coming in, a few
// times at most, and never waits for anything.
func (q *Queue[F]) Gather() {
	seen := -1
	for range 4 {
		runtime.Gosched()
		n := q.Len()
		if n == seen {
			return
		}
		seen = n
	}
}

// Take swaps everything that waits for an empty slice.
func (q *Queue[F]) Take(empty []*Request[F]) (batch []*Request[F], closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, q.waiting = q.waiting, empty[:0]
	return batch, q.closed != nil
}

// Close lets nothing more in. The first reason stays.
func (q *Queue[F]) Close(why error) {
	q.mu.Lock()
	q.closed = cmp.Or(q.closed, why)
	q.mu.Unlock()
	q.ring()
}

// Limits of names, keys and values, in bytes; see store.
const (
	MaxName  = 128
	MaxKey   = 4 << 10
	MaxValue = 64 << 20
)

// MaxGroup bounds one commit when ever more callers join it.
const MaxGroup = 4096

// Counters is the name of the bucket that holds a tenant's counters. Names that
// begin with "_" are the store's own.
const Counters = "_counters"

// Errors of transactions; store tells of those that its callers branch on.
var (
	ErrOver     = errors.New("transaction is over")
	ErrCorrupt  = errors.New("record is damaged (checksum mismatch)")
	ErrReadOnly = errors.New("data file is open read-only")
	errScanning = errors.New("no writing inside a scan")
)

// CheckTenant refuses what can't be a tenant's id.
func CheckTenant(id string) error {
	if id == "" || len(id) > MaxName {
		return fmt.Errorf("tenant %.40q: want 1-%d bytes", id, MaxName)
	}
	return nil
}

// CheckBucket refuses what can't be the name of a caller's bucket.
func CheckBucket[B ~string](b B) error {
	if b == "" || len(b) > MaxName || b[0] == '_' {
		return fmt.Errorf("bucket %.40q: want 1-%d bytes, not beginning with _", string(b), MaxName)
	}
	return nil
}

func checkKey[B ~string](b B, key []byte) error {
	if len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("bucket %s: key of %d bytes; want 1-%d", b, len(key), MaxKey)
	}
	return nil
}
