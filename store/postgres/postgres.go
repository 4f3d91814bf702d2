// Package postgres keeps the records of store.Store in PostgreSQL, for several
// engines that share one database.
//
// Each tenant has one owner at a time: the engine whose epoch, a fencing token,
// stands in the tenant's row of the table owner. It holds the tenant by a lease
// on the database's clock. Every commit checks epoch and the number of the last
// commit in the statement that writes, so that an owner who was replaced commits
// nothing, whatever it believes. One writer per tenant commits what waits in one
// statement, which is one round trip; meanwhile it runs the next group, see flight.
//
// Since the owner alone writes, it reads from memory what it has read or written
// before; see records. A connection lost during a commit leaves its outcome open:
// the writer reads the number of the last commit back before it goes on.
//
// No statement is prepared by name and no state of a session is used, so that a
// pooler may hand each transaction to another server process.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"swarmdeck/store"
	"swarmdeck/store/internal/group"
)

// Options of Open.
type Options struct {
	store.Options
	// Engine names this engine in the table owner; "" is a random name.
	Engine string
	// Lease is how long a tenant stays this engine's after the last word from
	// it; 0 means DefaultLease. With a negative one nobody waits: whoever comes
	// takes the tenant over.
	Lease time.Duration
	// Wait is how long a tenant that another engine has is waited for, before
	// ErrLocked says so.
	Wait time.Duration
	// Held is told, when a tenant is taken and at each renewal, until when no other
	// engine can take it: two thirds of a lease after the question was sent. With a
	// negative Lease it is never told.
	Held func(tenant string, until time.Time)
	// Lost is told once of each tenant that another engine took over. It must not
	// call the store.
	Lost func(tenant string, err error)
	// Memory bounds what is kept of one tenant, in bytes; 0 means DefaultMemory.
	Memory int64
}

// The usual values of Options.
const (
	DefaultLease  = 4 * time.Second
	DefaultMemory = 64 << 20
)

// statementTime bounds one statement. One that takes longer counts as lost.
const statementTime = 30 * time.Second

// DB is a store in a PostgreSQL database.
type DB struct {
	opt   Options
	pool  *pgxpool.Pool
	steps []step // to the layout that is known

	mu      sync.Mutex
	tenants map[string]*tenant // owned, or owned once
	over    error              // why nothing is taken any more

	silent atomic.Pointer[time.Time] // since when the server has not answered; nil while it does
	why    atomic.Pointer[error]     // what came of the last question in that time, nil for nothing
	full   atomic.Pointer[outage]    // nil while its disk has room

	me       *Engine          // nil until it has joined
	arriving *store.AwayError // the tenant that is copied here

	bell    *bell
	opening sync.Mutex // one tenant is taken at a time
	ctx     context.Context
	cancel  context.CancelFunc
	keeper  sync.WaitGroup
	closing sync.Once
}

var _ store.Store = (*DB)(nil)

// Open connects to the database that a DSN names (postgres://… or key=value; see
// libpq's connection strings) and makes the tables that are missing. Tenants are
// taken when they are first asked for.
func Open(ctx context.Context, dsn string, opt Options) (*DB, error) {
	return openBy(ctx, dsn, opt, layouts())
}

// openBy is Open by a program that knows some steps.
func openBy(ctx context.Context, dsn string, opt Options, steps []step) (*DB, error) {
	conf, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL: %w", withoutDSN(err))
	}
	conf.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	conf.ConnConfig.StatementCacheCapacity, conf.ConnConfig.DescriptionCacheCapacity = 0, 0
	conf.ConnConfig.ConnectTimeout = cmp.Or(conf.ConnConfig.ConnectTimeout, 3*time.Second)
	conf.MaxConns = max(conf.MaxConns, 16) // old views hold some
	opt.Lease, opt.Memory = cmp.Or(opt.Lease, DefaultLease), cmp.Or(opt.Memory, DefaultMemory)
	opt.Engine = cmp.Or(opt.Engine, rand.Text())
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL: %w: %w", store.ErrUnusable, err)
	}
	db := &DB{opt: opt, pool: pool, tenants: map[string]*tenant{}, bell: &bell{tenants: map[string]bool{}, wake: make(chan struct{}, 1)}, steps: steps}
	if err := db.layOut(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	db.ctx, db.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if opt.Lease > 0 && !opt.ReadOnly {
		db.keeper.Go(db.keep)
	}
	if !opt.ReadOnly {
		db.keeper.Go(func() { db.ring(db.ctx) })
	}
	return db, nil
}

// Name names the database for people, without a password.
func (db *DB) Name() string { return nameOf(db.pool.Config().ConnConfig) }

// NameOf is the Name of the database that a DSN names.
func NameOf(dsn string) string {
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "without a name"
	}
	return nameOf(conf)
}

func nameOf(c *pgx.ConnConfig) string {
	if strings.HasPrefix(c.Host, "/") {
		return fmt.Sprintf("postgres:///%s?host=%s", c.Database, c.Host)
	}
	return fmt.Sprintf("postgres://%s:%d/%s", c.Host, c.Port, c.Database)
}

func (db *DB) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	if err := db.mayUpdate(ctx); err != nil {
		return err
	}
	t, err := db.tenant(ctx, tenant)
	if err != nil {
		return err
	}
	return t.update(ctx, fn)
}

func (db *DB) mayUpdate(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if db.opt.ReadOnly {
		return store.ErrReadOnly
	}
	return nil
}

// update runs fn in a commit, once the tenant is not held for a copy.
func (t *tenant) update(ctx context.Context, fn func(store.Tx) error) error {
	for {
		err := t.queue.Do(ctx, t.name, false, fn)
		held := new(group.HeldError)
		if err == nil || !errors.As(err, &held) {
			return err
		}
		select {
		case <-held.Until:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (db *DB) View(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	m, err := db.enter(ctx, tenant)
	if err != nil {
		return err
	}
	defer m.leave()
	return m.view(ctx, tenant, fn)
}

// view runs fn in the moment.
func (m *moment) view(ctx context.Context, tenant string, fn func(store.Tx) error) (err error) {
	v := &view{ctx: ctx, at: m, buckets: buckets{tenant: tenant}}
	tx := &viewTx{ReadTx: group.Read(v, tenant, uint64(m.epoch)), view: v}
	defer tx.End()
	defer recovered(&err)
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Err()
}

// enter joins the present moment of a tenant; leave it.
func (db *DB) enter(ctx context.Context, tenant string) (*moment, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if db.opt.ReadOnly {
		return db.look(ctx, tenant)
	}
	t, err := db.tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return t.enter(ctx)
}

// recovered turns a panic of a caller's code into that caller's error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = &store.PanicError{Value: r, Stack: debug.Stack()}
	}
}

func (db *DB) CreateTenant(ctx context.Context, tenant string) error {
	if db.opt.ReadOnly {
		return store.ErrReadOnly
	}
	if err := group.CheckTenant(tenant); err != nil {
		return err
	}
	if err := db.closed(); err != nil {
		return err
	}
	rows, err := db.query(ctx, nil, createSQL, []byte(tenant), int64(len(db.opt.Migrations)))
	switch {
	case err != nil:
		return fmt.Errorf("create tenant %s: %w", tenant, err)
	case len(rows) == 0:
		return fmt.Errorf("tenant %s: %w", tenant, store.ErrTenantExists)
	}
	return nil
}

func (db *DB) Tenants(ctx context.Context) ([]string, error) {
	if err := errors.Join(ctx.Err(), db.closed()); err != nil {
		return nil, err
	}
	rows, err := db.query(ctx, nil, "select tenant from owner where away = '' order by tenant")
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	var out []string
	for _, row := range rows {
		out = append(out, string(row[0]))
	}
	return out, nil
}

// Here implements store.Store: whoever asks a database for a tenant has it, once it is free.
func (db *DB) Here(ctx context.Context) ([]string, error) { return db.Tenants(ctx) }

// Close commits what was accepted and gives the tenants up.
func (db *DB) Close() error {
	db.closing.Do(func() {
		db.mu.Lock()
		db.over = store.ErrClosed
		db.mu.Unlock()
		db.opening.Lock() // none is being taken any more
		defer db.opening.Unlock()
		for _, t := range db.owned() {
			t.queue.Close(store.ErrClosed)
		}
		for _, t := range db.owned() {
			<-t.stopped
			t.fail(store.ErrClosed)
			t.release("")
		}
		db.left()
		db.cancel()
		db.keeper.Wait()
		db.pool.Close()
	})
	return nil
}

func (db *DB) closed() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.over
}

// owned lists the tenants in hand.
func (db *DB) owned() []*tenant {
	db.mu.Lock()
	defer db.mu.Unlock()
	out := make([]*tenant, 0, len(db.tenants))
	for _, t := range db.tenants {
		out = append(out, t)
	}
	return out
}

// tenant returns a tenant of ours, taken now when it was not yet.
func (db *DB) tenant(ctx context.Context, name string) (*tenant, error) {
	known := func() (*tenant, error) {
		db.mu.Lock()
		defer db.mu.Unlock()
		return db.tenants[name], db.over
	}
	if t, err := known(); t != nil || err != nil {
		return t, err
	}
	db.opening.Lock()
	defer db.opening.Unlock()
	if t, err := known(); t != nil || err != nil {
		return t, err
	}
	t, err := db.take(ctx, name)
	if err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.tenants[name] = t
	return t, nil
}
