package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
	bolterr "go.etcd.io/bbolt/errors"

	"swarmdeck/store/internal/group"
)

// DB is the embedded store: one bbolt file, owned by one process at a time.
type DB struct {
	path     string
	opt      Options
	readOnly bool
	bolt     *bbolt.DB
	file     *os.File // bbolt's own handle
	epoch    uint64
	schema   int
	layout   uint64
	marks    atomic.Pointer[map[string]*AwayError] // of tenants that are elsewhere
	arriving atomic.Pointer[string]                // the one of them that is copied here

	swap       sync.RWMutex       // held while compaction exchanges bolt and file
	asides     chan func(*writer) // run on the writer's goroutine between commits
	compacting sync.Mutex         // one compaction at a time
	closings   sync.WaitGroup     // of files that were exchanged

	queue   group.Queue[func(Tx) error]
	room    room
	stopped chan struct{} // closed when the writer has ended
	dead    atomic.Pointer[error]
	stuck   atomic.Bool // bbolt still holds its locks after a panic
	closing sync.Once
	closed  error
}

var _ Store = (*DB)(nil)

// Path is the data file's path.
func (db *DB) Path() string { return db.path }

// Name names the store for people.
func (db *DB) Name() string { return db.path }

// Epoch is the fencing token of this opening: every writable open raises it.
func (db *DB) Epoch() uint64 { return db.epoch }

// Schema is the number of migrations that the file has been through.
func (db *DB) Schema() int { return db.schema }

func (db *DB) Update(ctx context.Context, tenant string, fn func(Tx) error) error {
	return db.submit(ctx, tenant, false, fn)
}

func (db *DB) CreateTenant(ctx context.Context, tenant string) error {
	return db.submit(ctx, tenant, true, nil)
}

func (db *DB) View(ctx context.Context, tenant string, fn func(Tx) error) error {
	if err := db.away(tenant); err != nil {
		return err
	}
	return db.read(ctx, func(tx *bbolt.Tx) error { return db.viewed(tx, tenant, fn) })
}

// viewed runs fn on one tenant in a bbolt transaction.
func (db *DB) viewed(tx *bbolt.Tx, tenant string, fn func(Tx) error) error {
	r := &readTx{}
	if err := r.ts.open(tx, tenant); err != nil {
		return err
	}
	r.ReadTx = group.Read(&r.ts, tenant, db.epoch)
	defer r.End()
	if err := fn(r); err != nil {
		return err
	}
	return r.Err()
}

func (ts *tables) open(tx *bbolt.Tx, tenant string) (err error) {
	defer guard(&err, "open tenant", "")
	root := tx.Bucket(tenantKey(tenant))
	if root == nil {
		return fmt.Errorf("tenant %.80q: %w", tenant, ErrNoTenant)
	}
	ts.tenant, ts.root = tenant, root
	return nil
}

func (db *DB) Tenants(ctx context.Context) ([]string, error) {
	var out []string
	err := db.read(ctx, func(tx *bbolt.Tx) (err error) {
		defer guard(&err, "list tenants", "")
		out = slices.DeleteFunc(tenantsOf(tx), func(name string) bool { return db.away(name) != nil })
		return nil
	})
	return out, err
}

// Here implements Store: a file is one opener's alone.
func (db *DB) Here(ctx context.Context) ([]string, error) { return db.Tenants(ctx) }

// read runs fn in a bbolt read transaction, whatever fn or a damaged page
// does.
func (db *DB) read(ctx context.Context, fn func(*bbolt.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.fatal(); err != nil {
		return err
	}
	tx, err := db.beginRead()
	if err != nil {
		return err
	}
	return reading(tx, fn)
}

// reading runs fn in a read transaction, which ends then.
func reading(tx *bbolt.Tx, fn func(*bbolt.Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e := tx.Rollback(); err == nil && e != nil {
			err = fmt.Errorf("end of view: %w", e)
		}
	}()
	defer recovered(&err)
	return fn(tx)
}

func (db *DB) beginRead() (tx *bbolt.Tx, err error) {
	defer guard(&err, "begin view", "")
	db.swap.RLock()
	defer db.swap.RUnlock()
	tx, err = db.bolt.Begin(false)
	if errors.Is(err, bolterr.ErrDatabaseNotOpen) {
		return nil, ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("begin view: %w: %w", ErrUnusable, err)
	}
	return tx, nil
}

// Close commits what was accepted, waits for the views under way and gives
// the file up. Later calls return what the first did.
func (db *DB) Close() error {
	db.closing.Do(func() {
		db.Hurry()
		db.queue.Close(ErrClosed)
		if db.stopped != nil {
			<-db.stopped
		}
		db.compacting.Lock() // it has ended, or ends now
		defer db.compacting.Unlock()
		defer db.closings.Wait()
		if db.stuck.Load() {
			// bbolt would wait for ever for its own lock. Closing the file
			// lets the next owner in; nothing of ours writes any more.
			db.closed = abandon(db.file)
			return
		}
		if err := db.bolt.Close(); err != nil {
			db.closed = fmt.Errorf("close data file %s: %w", db.path, err)
		}
	})
	return db.closed
}

// fail ends the store's work: nothing is acknowledged or read any more until
// it is opened again.
func (db *DB) fail(err error) {
	db.dead.CompareAndSwap(nil, &err)
	db.Hurry()
	db.queue.Close(err)
}

// fatal is the error that ended the store's work, nil while all is well.
func (db *DB) fatal() error {
	if p := db.dead.Load(); p != nil {
		return fmt.Errorf("data file %s must be opened again: %w", db.path, *p)
	}
	return nil
}

var tenantPrefix = []byte("tenant:")

func tenantKey(id string) []byte {
	return append(tenantPrefix[:len(tenantPrefix):len(tenantPrefix)], id...)
}

func tenantsOf(tx *bbolt.Tx) []string {
	var out []string
	c := tx.Cursor()
	for k, v := c.Seek(tenantPrefix); bytes.HasPrefix(k, tenantPrefix); k, v = c.Next() {
		if v == nil {
			out = append(out, string(k[len(tenantPrefix):]))
		}
	}
	return out
}
