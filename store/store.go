// Package store keeps each tenant's records in ordered, named buckets with
// multi-key transactions. It knows bytes, keys and tenants, nothing else.
//
// A transaction is bound to one tenant: no call takes another. An Update that
// returned nil is on disk; one that returned an error left nothing behind and
// never spoiled the updates committed together with it.
//
// DB is the embedded store, one bbolt file. One writer goroutine takes every
// Update that waits, runs each against an overlay of its own, moves what
// succeeded into one transaction and commits once: the time of one sync is
// what the next group gathers in. bbolt has no checksums, so each record
// carries one, which every read verifies. A commit that finds no room on the
// disk has not happened: writes are refused until there is some (ErrFull),
// reads go on, and a little space that was written ahead is left for what must
// be recorded. After any other failed commit nobody knows what is on disk: the
// store acknowledges nothing more until it is opened again.
//
// Keys are best written in order. A bucket whose new keys arrive at its end
// is seen to be so and gets full pages; nothing needs to be declared.
package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/store/internal/group"
)

// Bucket names one ordered table of a tenant.
type Bucket string

// Store is what the engine asks of its storage.
type Store interface {
	// Update runs fn in a writing transaction, once at most, on the writer's
	// goroutine: fn must not block, do I/O or call the store. When ctx ends
	// before its turn fn is not run; once it has begun the outcome is waited
	// for. A panic in fn is that caller's error (PanicError in DB). While the
	// disk is full it does what IfFull says, which is ErrFull at once.
	Update(ctx context.Context, tenant string, fn func(Tx) error) error
	// View runs fn on a consistent read-only snapshot. Values must be copied
	// to be kept. fn should be short: it holds old pages.
	View(ctx context.Context, tenant string, fn func(Tx) error) error
	// CreateTenant adds a tenant; ErrTenantExists when it is there.
	CreateTenant(ctx context.Context, tenant string) error
	// Tenants lists the tenants in order.
	Tenants(ctx context.Context) ([]string, error)
	// Here lists those of them that are worked on by who has opened the store.
	// The others are somebody else's, and only looked at.
	Here(ctx context.Context) ([]string, error)
	Close() error
}

// Tx is one tenant's transaction. Keys and values given to it are owned by
// the store from then on; keys and values got are valid until the transaction
// ends and must not be modified. In an Update a call that fails, fails the
// Update, even when fn goes on. Names of buckets and counters have 1 to
// MaxName bytes; those of buckets don't begin with "_". Keys have 1 to MaxKey
// bytes, values up to MaxValue; an empty value is not an absent one.
type Tx interface {
	// Tenant is the tenant this transaction is bound to, and was: hooks ask.
	Tenant() string
	// Epoch is the fencing token of the store's present owner; see Fence.
	Epoch() uint64
	// Alloc returns an empty slice with room for n bytes, which costs no memory
	// of the heap: for keys and values to be put. It ends with the transaction,
	// so hooks must not hold it.
	Alloc(n int) []byte
	// Get returns nil, nil for an absent key, ErrCorrupt for a damaged record.
	Get(b Bucket, key []byte) ([]byte, error)
	Put(b Bucket, key, value []byte) error
	Delete(b Bucket, key []byte) error
	// Scan visits the keys in [from, to) in order, or from the last to the first
	// when reverse; nil means no bound. It ends with the first visit that says that no
	// more are wanted, or fails: its error is then Scan's. A visit must not write.
	Scan(b Bucket, from, to []byte, reverse bool, visit func(key, value []byte) (more bool, err error)) error
	// Counter reads a named counter; 0 when never written.
	Counter(name string) int64
	// Add changes a counter and returns its new value. Counters are written
	// once per commit, however many updates changed them.
	Add(name string, delta int64) int64
	// OnCommit registers fn to run after the commit, in commit order, on the
	// writer's goroutine, before Update returns. fn must be quick.
	OnCommit(fn func())
}

// Errors a caller branches on, beside ErrFull. ErrUnusable, ErrLocked and
// ErrFull mean exit code 3.
var (
	ErrNoTenant     = errors.New("no such tenant")             // reading where nothing was written: often the same as nothing
	ErrTenantExists = errors.New("tenant exists")              // of CreateTenant
	ErrReadOnly     = group.ErrReadOnly                        // a change of a store that was opened to read
	ErrLocked       = errors.New("in use by another process")  // ask the engine that has it
	ErrCorrupt      = group.ErrCorrupt                         // what is on disk is not what was written: restore
	ErrUnusable     = errors.New("data file can't be used")    // no permission, no such directory, not one of ours
	ErrClosed       = errors.New("store is closed")            // a call after Close
	ErrFenced       = errors.New("the data has a newer owner") // give the tenant up
	ErrStandby      = errors.New("it can only be read")        // a database's standby: find the primary
)

// DatabaseError is an ErrUnusable of a store that is no file.
type DatabaseError struct {
	Name string // of the database, without a password
	Err  error  // what is wrong with it
}

func (e *DatabaseError) Error() string { return fmt.Sprintf("database %s: %v", e.Name, e.Err) }

// Unwrap makes errors.Is(err, ErrUnusable) hold.
func (e *DatabaseError) Unwrap() []error { return []error{ErrUnusable, e.Err} }

// IsFault reports that an error is one of the data file, not of what was asked.
func IsFault(err error) bool {
	return slices.ContainsFunc([]error{ErrLocked, ErrFull, ErrUnusable, ErrCorrupt, ErrClosed, ErrFenced, ErrStandby}, func(fault error) bool { return errors.Is(err, fault) })
}

// Options of Open. The zero value is what production uses.
type Options struct {
	// ReadOnly opens without writing a byte; Update fails with ErrReadOnly.
	ReadOnly bool
	// Seal runs once for each tenant touched by a commit, just before it, on
	// the writer's goroutine, with all the commit's changes visible. An error
	// fails the whole commit. The audit log extends its Merkle tree here.
	Seal func(Tx) error
	// OnFull hears that the disk is full, and with nil that it is no longer.
	// It must be quick and not call the store.
	OnFull func(*FullError)
	// Migrations lead from an empty file to the schema this program knows. A
	// new file starts at the end of the list; an older one is brought there
	// at a writable open; a file that has seen more steps is ErrUnusable.
	Migrations []Migration

	anySchema bool // for reading whatever the schema is
}
