package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrFull is why writes are refused while the disk has no room for them. It is
// a state: reads go on, and so do writes once there is room again.
var ErrFull = errors.New("the disk is full")

// FullError is an ErrFull with what is known of it.
type FullError struct {
	Path string // of the data file
	Free int64  // bytes free where it lies, -1 when the system doesn't tell
	Err  error  // what the system said
}

func (e *FullError) Error() string {
	free := ""
	if e.Free >= 0 {
		free = fmt.Sprintf(", %d KiB free", e.Free>>10)
	}
	return fmt.Sprintf("%s at %s%s: nothing is written until there is space (%v)", ErrFull, e.Path, free, e.Err)
}

// Unwrap makes errors.Is(err, ErrFull) hold.
func (e *FullError) Unwrap() []error { return []error{ErrFull, e.Err} }

// WhenFull says what an Update does while the disk is full.
type WhenFull int

// The ways to meet a full disk.
const (
	// Refuse fails with ErrFull at once.
	Refuse WhenFull = iota
	// Wait waits for room, until ctx is cancelled or the store is told to
	// Hurry. A deadline that passes while the disk is full ends nothing. fn is
	// run again when the commit that it was part of found no room.
	Wait
	// UseReserve writes into the space that is kept back, for what stops
	// something; it fails with ErrFull when that is used up too.
	UseReserve
)

type whenFullKey struct{}

// IfFull returns a context whose Updates meet a full disk in that way.
func IfFull(ctx context.Context, how WhenFull) context.Context {
	return context.WithValue(ctx, whenFullKey{}, how)
}

// IfFullOf is what IfFull said last; ok is false when nobody said anything,
// which is Refuse.
func IfFullOf(ctx context.Context) (how WhenFull, ok bool) {
	how, ok = ctx.Value(whenFullKey{}).(WhenFull)
	return how, ok
}

func ifFull(ctx context.Context) WhenFull {
	how, _ := IfFullOf(ctx)
	return how
}

// Outage is a time in which the disk was full.
type Outage struct {
	From, To time.Time // To is zero while it lasts
}

// Holds reports whether at lies in it.
func (o Outage) Holds(at time.Time) bool {
	return !o.From.IsZero() && !at.Before(o.From) && (o.To.IsZero() || !at.After(o.To))
}

// Room tells of the space a store has. A store that can be full has one.
type Room interface {
	// Full is why writes are refused now, nil while they are not.
	Full() *FullError
	// Outage is the newest one; zero when there was none.
	Outage() Outage
	// Stalled is how long the disk was full in all, up to now.
	Stalled() time.Duration
	// Hurry has nothing wait for room any more: who closes the store soon
	// calls it.
	Hurry()
}

var _ Room = (*DB)(nil)

// RoomOf is the room of a store; of one that can't be full, one that never is.
func RoomOf(s Store) Room {
	if r, ok := s.(Room); ok {
		return r
	}
	return boundless{}
}

type boundless struct{}

func (boundless) Full() *FullError       { return nil }
func (boundless) Outage() Outage         { return Outage{} }
func (boundless) Stalled() time.Duration { return 0 }
func (boundless) Hurry()                 {}

// room is what a DB knows of its space.
type room struct {
	full    atomic.Pointer[FullError] // nil while there is room
	mu      sync.Mutex                // guards what follows, and changes of full
	again   chan struct{}             // closed when the outage ends; made at its start
	hurried chan struct{}             // closed by Hurry
	hurry   bool
	outage  Outage
	before  atomic.Int64 // ns of the outages that are over
}

func (db *DB) Full() *FullError { return db.room.full.Load() }

func (db *DB) Outage() Outage {
	db.room.mu.Lock()
	defer db.room.mu.Unlock()
	return db.room.outage
}

func (db *DB) Stalled() time.Duration {
	r := &db.room
	if r.full.Load() != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.full.Load() != nil {
			return time.Duration(r.before.Load()) + time.Since(r.outage.From)
		}
	}
	return time.Duration(r.before.Load())
}

func (db *DB) Hurry() {
	r := &db.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.hurry {
		r.hurry = true
		close(r.hurried)
	}
}

// lack begins an outage, or renews what is known of it.
func (db *DB) lack(cause error) *FullError {
	full := &FullError{Path: db.path, Free: freeSpace(db.path), Err: cause}
	r := &db.room
	r.mu.Lock()
	began := r.full.Load() == nil
	if began {
		r.again, r.outage = make(chan struct{}), Outage{From: time.Now()}
	}
	r.full.Store(full)
	r.mu.Unlock()
	if began && db.opt.OnFull != nil {
		db.opt.OnFull(full)
	}
	return full
}

// ample ends an outage.
func (db *DB) ample() {
	r := &db.room
	r.mu.Lock()
	r.outage.To = time.Now()
	r.before.Add(int64(r.outage.To.Sub(r.outage.From)))
	r.full.Store(nil)
	close(r.again)
	r.mu.Unlock()
	if db.opt.OnFull != nil {
		db.opt.OnFull(nil)
	}
}

// await waits for the end of an outage, after an Update was refused with why.
// The context is the one to try again with: a deadline that passed meanwhile is
// lifted.
func (db *DB) await(ctx context.Context, why error) (context.Context, error) {
	r := &db.room
	r.mu.Lock()
	full, again := r.full.Load(), r.again
	if r.hurry {
		full, again = nil, nil
	} else {
		why = nil
	}
	r.mu.Unlock()
	ended := ctx.Done()
	for full != nil {
		select {
		case <-again:
			full = nil
		case <-r.hurried:
			full, why = nil, full
		case <-ended:
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ctx, ctx.Err()
			}
			ended = nil
		}
	}
	return lifted(ctx, db.Outage()), why
}

// lifted is ctx without a deadline that passed while the disk was full.
func lifted(ctx context.Context, o Outage) context.Context {
	if end, ok := ctx.Deadline(); ok && errors.Is(ctx.Err(), context.DeadlineExceeded) && o.Holds(end) {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// lacksRoom reports an error that says that there is no space for more. bbolt
// passes on the texts of some errors only.
func lacksRoom(err error) bool {
	if err == nil {
		return false
	}
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, no) || strings.HasSuffix(err.Error(), ": "+no.Error()) {
			return true
		}
	}
	return false
}

// freeSpace is how many bytes are free for who is no administrator on the file
// system that a file is on, -1 when it doesn't tell.
func freeSpace(path string) int64 {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return -1
	}
	return int64(min(st.Bavail, 1<<40)) * int64(st.Bsize)
}
