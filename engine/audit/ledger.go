// Package audit is the one path by which state changes, and the log that
// proves it: every change, decision and refusal appends an event in the same
// transaction, events form an RFC 6962 Merkle log per tenant, and each commit
// carries a signed checkpoint (C2SP note) of it.
package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Options of New.
type Options struct {
	Clock    core.Clock        // nil means the system clock
	NewTrace func() string     // fresh trace ids; nil means random
	OnChange func(core.Change) // called in commit order, and by Notify; must be quick and not block
	// Trusted are the verifier keys known from outside the data file, as
	// Sealer.Verifier prints them. Verify then insists on one of them; without
	// any it can only trust the keys that the log itself names.
	Trusted func(tenant string) []string
	// Unread hears of records that a list could not show, each a core.Damaged in
	// err, which may be on the store's goroutine; nil ignores them.
	Unread func(tenant, noun string, err error)
}

// Ledger is the one path by which state changes.
type Ledger struct {
	st  store.Store
	opt Options

	classes atomic.Pointer[classes]
	leaving sync.RWMutex              // held while events leave; readers of the whole log share it
	spare   sync.Pool                 // of *Tx
	holds   atomic.Pointer[heldNames] // names of the held counters

	mu      sync.Mutex    // guards what follows, and changes of classes
	last    time.Time     // newest time given out
	ahead   time.Duration // of the clock, where that was set back
	tenants map[string]string
	held    map[string]*held
	kinds   map[string]Auditable // see Register
}

// New binds a ledger to a store.
func New(st store.Store, opt Options) *Ledger {
	if opt.Clock == nil {
		opt.Clock = core.SystemClock{}
	}
	if opt.NewTrace == nil {
		opt.NewTrace = func() string { return core.NewTrace(nil) }
	}
	l := &Ledger{st: st, opt: opt, tenants: map[string]string{}, held: map[string]*held{}, kinds: map[string]Auditable{}}
	l.Hold("", counter)
	return l
}

// Unread tells of records that a list could not show.
func (l *Ledger) Unread(tenant, noun string, err error) {
	if l.opt.Unread != nil {
		l.opt.Unread(tenant, noun, err)
	}
}

// Clock is the ledger's time.
func (l *Ledger) Clock() core.Clock { return ledgerClock{l} }

// ledgerClock is the time that transactions get, so that what is due by one
// is measured with the same.
type ledgerClock struct{ l *Ledger }

func (c ledgerClock) Now() time.Time {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return c.l.now()
}

// now never goes back. Where the clock was set back it goes on from the newest
// time given out at the clock's pace, so that what is due in a second is due in
// one; mu is held.
func (l *Ledger) now() time.Time {
	at := l.opt.Clock.Now().UTC().Round(0)
	if !at.Before(l.last) {
		l.ahead = 0
	} else if at = at.Add(l.ahead); at.Before(l.last) {
		l.ahead += l.last.Sub(at)
		at = l.last
	}
	l.last = at
	return at
}

// Update makes a state change: fn writes and records at least one event, all
// in one transaction with one time. A write without an event is refused. fn
// runs once, on the store's writer: it must not block, do I/O, or call the
// ledger or the store.
//
// While the disk is full, what the engine does on its own account waits for
// room, and fn may run again then; any other door is refused (STORAGE_FULL).
// store.IfFull says otherwise.
func (l *Ledger) Update(ctx context.Context, by core.Caller, fn func(*Tx) error) error {
	return l.write(ctx, by, true, fn)
}

// Append writes records that are not state (log lines, outputs). Where they are
// audited and fn recorded nothing, an event tells of the rows alone.
func (l *Ledger) Append(ctx context.Context, by core.Caller, fn func(*Tx) error) error {
	return l.write(ctx, by, false, fn)
}

func (l *Ledger) write(ctx context.Context, by core.Caller, audited bool, fn func(*Tx) error) error {
	err := l.once(ctx, by, audited, fn)
	if err == nil || !errors.Is(err, store.ErrFull) {
		return err
	}
	if _, said := store.IfFullOf(ctx); !said && by.Door == core.DoorEngine {
		err = l.once(store.IfFull(ctx, store.Wait), by, audited, fn)
	}
	return AsFull(err)
}

// once runs fn in a transaction. Transactions are kept for the next: the store is
// done with one when Update returns.
func (l *Ledger) once(ctx context.Context, by core.Caller, audited bool, fn func(*Tx) error) error {
	tx, _ := l.spare.Get().(*Tx)
	if tx == nil {
		tx = &Tx{l: l}
		tx.run, tx.tell = tx.update, tx.notify
	}
	tx.By, tx.audited, tx.fn = by, audited, fn
	err := l.st.Update(ctx, by.Tenant, tx.run)
	tx.clear()
	tx.By, tx.fn = core.Caller{}, nil
	if cap(tx.rows) <= 64 && cap(tx.changes) <= 64 { // the usual size
		l.spare.Put(tx)
	}
	return err
}

// clear takes back what the last run has left.
func (tx *Tx) clear() {
	clear(tx.rows[:cap(tx.rows)])
	clear(tx.changes)
	*tx = Tx{l: tx.l, By: tx.By, audited: tx.audited, fn: tx.fn, run: tx.run, tell: tx.tell, rows: tx.rows[:0], changes: tx.changes[:0], figures: tx.figures[:0]}
}

// update is the whole of a transaction, on the store's writer.
func (tx *Tx) update(st store.Tx) error {
	tx.clear() // it may run again
	tx.Tx, tx.derived = st, derivedTx{st, tx}
	if err := tx.l.start(tx); err != nil {
		return err
	}
	if err := tx.fn(tx); err != nil {
		return err
	}
	if tx.audited && tx.wrote && tx.events == 0 {
		return core.Errorf(core.Internal, "a change was written without an audit event; nothing was changed")
	}
	if err := tx.finish(); err != nil {
		return err
	}
	tx.announce()
	return nil
}

// start gives the transaction its time, which never runs backwards: searching
// the log by time relies on it, after a restart with the clock set back too.
func (l *Ledger) start(tx *Tx) error {
	tenant := tx.Tenant()
	l.mu.Lock()
	defer l.mu.Unlock()
	prefix, known := l.tenants[tenant]
	if !known {
		prefix = idPrefix(tenant)
		newest, err := newestTime(tx.Tx)
		if err != nil {
			return err
		}
		if newest.After(l.last) {
			l.last = newest
		}
		l.tenants[tenant] = prefix
	}
	tx.at = l.now()
	tx.stamp.tenant, tx.stamp.prefix = tenant, prefix
	return nil
}

func newestTime(tx store.Tx) (time.Time, error) {
	var newest time.Time
	err := tx.Scan(Events, nil, nil, true, func(_, value []byte) (bool, error) {
		e, err := decode(value)
		newest = e.CreatedAt
		return false, err
	})
	if err != nil {
		return newest, fmt.Errorf("read the newest audit event: %w", err)
	}
	return newest, nil
}

// View reads a consistent snapshot. fn should be short: it holds old pages.
func (l *Ledger) View(ctx context.Context, tenant string, fn func(*Tx) error) error {
	return l.st.View(ctx, tenant, func(st store.Tx) error {
		tx := &Tx{Tx: st, l: l, at: l.Clock().Now(), readOnly: true}
		tx.derived = derivedTx{st, tx}
		return fn(tx)
	})
}

// Refuse audits a refusal in a transaction of its own (tenant.violation, a
// late result, …) and returns cause, so that callers can `return l.Refuse(…)`.
// The refusal is kept even when the caller has gone. What the engine refuses by
// itself is told of who asked. A nil Detail becomes the
// cause's code and message. It must not be called from inside an Update:
// return the cause there, and refuse after.
func (l *Ledger) Refuse(ctx context.Context, by core.Caller, e Entry, cause error) error {
	if e.Detail == nil && cause != nil {
		c := core.AsError(cause)
		e.Detail = refusal{Code: c.Code, Message: c.Message}
	}
	err := l.Update(context.WithoutCancel(ctx), core.Asking(ctx, by), func(tx *Tx) error {
		_, err := tx.Record(e)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrReadOnly) {
		return errors.Join(cause, fmt.Errorf("audit the refusal: %w", err))
	}
	return cause
}

// Foreign is Refuse for an err that says that what was named, of a kind, belongs
// to another tenant. Any other comes back as it is.
func (l *Ledger) Foreign(ctx context.Context, by core.Caller, kind, named string, err error) error {
	if !errors.Is(err, core.ErrForeign) {
		return err
	}
	return l.Refuse(ctx, by, Entry{
		Type: "tenant.violation", Subject: "tenant", ID: by.Tenant, Detail: map[string]string{"named": named, "kind": kind},
	}, err)
}

// LocalSeq turns an id of the caller's tenant into its number. One of another
// tenant is refused, and the attempt audited.
func (l *Ledger) LocalSeq(ctx context.Context, by core.Caller, prefix, id string) (uint64, error) {
	seq, err := core.LocalSeq(prefix, by.Tenant, id)
	return seq, l.Foreign(ctx, by, core.IDNoun(prefix), id, err)
}

type refusal struct {
	Code    core.Code `json:"code"`
	Message string    `json:"message"`
}

// Explain says what an error came from, unless it says that by itself.
func Explain(what string, err error) error {
	var refused *core.Error
	if err == nil || errors.As(err, &refused) || errors.Is(err, store.ErrNoTenant) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Room tells of the space that the store has.
func (l *Ledger) Room() store.Room { return store.RoomOf(l.st) }

// fullError is a refusal of the store for want of space, as doors tell it. It
// is the store's error too.
type fullError struct {
	said  *core.Error
	cause error
}

func (e *fullError) Error() string   { return e.said.Message }
func (e *fullError) Unwrap() []error { return []error{e.said, e.cause} }

// AsFull is an error as doors tell it where it is a refusal of the store for want of space.
func AsFull(err error) error {
	full, ok := errors.AsType[*store.FullError](err)
	if !ok {
		return err
	}
	said := core.Errorf(core.StorageFull, "%s", err.Error()).With("path", full.Path)
	if full.Free >= 0 {
		said = said.With("free_bytes", full.Free)
	}
	return &fullError{said, err}
}

// Notify tells the watchers of a change that is not in the store, such as
// running work that acknowledged a stop. It may be called from any goroutine.
func (l *Ledger) Notify(c core.Change) {
	if l.opt.OnChange != nil {
		l.opt.OnChange(c)
	}
}
