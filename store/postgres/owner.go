package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"swarmdeck/store"
)

// What is said to the table owner. Times are those of the database's clock; a
// lease is given in microseconds.
const (
	createSQL = `insert into owner (tenant, schema) values ($1, $2) on conflict do nothing returning true`

	takeSQL = `update owner set engine = $2, epoch = epoch + 1, session = session + 1,
	until = clock_timestamp() + $3 * interval '1 microsecond'
where tenant = $1 and (until <= clock_timestamp() or engine = $2) and away = $4
	and schema <= $5 and (select max(least) from layout) <= $6
returning epoch, session, commit, schema`

	whoSQL = `select engine, to_char(until, 'YYYY-MM-DD HH24:MI:SSOF'), epoch, commit, schema, away,
	until > clock_timestamp(), (select max(least) from layout)::bigint from owner where tenant = $1`

	keepSQL = `update owner o set until = clock_timestamp() + $3 * interval '1 microsecond'
from unnest($1::bytea[], $2::bytea[], $5::bytea[]) as mine(tenant, epoch, commit)
where o.tenant = mine.tenant and o.engine = $4 and o.epoch::text = convert_from(mine.epoch, 'UTF8')
	and o.commit >= convert_from(mine.commit, 'UTF8')::bigint
returning o.tenant`

	releaseSQL = `update owner set engine = $3, until = case $3 when '' then '-infinity' else clock_timestamp() + $4 * interval '1 microsecond' end
where tenant = $1 and epoch = $2 and engine = $5`
)

// take makes a tenant ours, once no lease of another engine holds it.
func (db *DB) take(ctx context.Context, name string) (*tenant, error) {
	for end := time.Now().Add(db.opt.Wait); ; wait(ctx, 50*time.Millisecond) {
		t, err := db.attempt(ctx, name)
		if !errors.Is(err, store.ErrLocked) || ctx.Err() != nil || !time.Now().Before(end) || db.closed() != nil {
			return t, err
		}
	}
}

// attempt raises the epoch in one statement unless another has the tenant.
func (db *DB) attempt(ctx context.Context, name string) (*tenant, error) {
	since := time.Now()
	rows, err := db.query(ctx, nil, takeSQL, []byte(name), db.opt.Engine, max(db.opt.Lease, 0), db.hosted(name),
		int64(len(db.opt.Migrations)), int64(len(db.steps)))
	if err != nil {
		return nil, fmt.Errorf("take tenant %.80q: %w", name, err)
	}
	if len(rows) == 0 {
		return nil, db.held(ctx, name)
	}
	t := newTenant(db, name)
	t.epoch, t.session, t.schema = integer(rows[0][0]), integer(rows[0][1]), int(integer(rows[0][3]))
	t.now = newMoment(t, integer(rows[0][2]))
	err = nil
	if db.hosted(name) == "" { // or its rows are about to be removed
		err = t.now.readAhead(ctx)
	}
	if err == nil {
		err = t.migrate()
	}
	if err != nil {
		t.fail(err)
		t.release("")
		return nil, err
	}
	db.hold(t, since)
	go t.run()
	return t, nil
}

// held says why a tenant can't be taken.
func (db *DB) held(ctx context.Context, name string) error {
	rows, err := db.query(ctx, nil, whoSQL, []byte(name))
	switch {
	case err != nil:
		return fmt.Errorf("tenant %.80q: %w", name, err)
	case len(rows) == 0:
		return fmt.Errorf("tenant %.80q: %w", name, store.ErrNoTenant)
	case string(rows[0][5]) != db.hosted(name):
		return store.ParseMark(name, string(rows[0][5]))
	case truth(rows[0][6]): // it may be of a newer version, which can be asked
	case integer(rows[0][4]) > int64(len(db.opt.Migrations)):
		return db.fault(fmt.Errorf("tenant %.80q: schema %d is newer than this program's %d: upgrade the program", name, integer(rows[0][4]), len(db.opt.Migrations)))
	case db.knows(integer(rows[0][7])) != nil:
		return db.knows(integer(rows[0][7]))
	}
	return &heldError{db.Name(), name, fmt.Sprintf("engine %s, until %s,", rows[0][0], rows[0][1])}
}

// look is a view of a tenant that is not ours, at this moment.
func (db *DB) look(ctx context.Context, name string) (*moment, error) {
	if err := db.closed(); err != nil {
		return nil, err
	}
	var conn *pgxpool.Conn
	if err := patiently(ctx, func() (err error) { conn, err = db.freeze(ctx); return err }); err != nil {
		return nil, err
	}
	rows, err := db.query(ctx, conn, whoSQL, []byte(name))
	switch {
	case err != nil:
	case len(rows) == 0:
		err = fmt.Errorf("tenant %.80q: %w", name, store.ErrNoTenant)
	case string(rows[0][5]) != db.hosted(name):
		err = store.ParseMark(name, string(rows[0][5]))
	case int(integer(rows[0][4])) != len(db.opt.Migrations):
		err = db.otherSchema(name, int(integer(rows[0][4])))
	}
	if err != nil {
		thaw(conn)
		return nil, err
	}
	m := newMoment(&tenant{db: db, name: name, epoch: integer(rows[0][2])}, integer(rows[0][3]))
	m.frozen, m.views = conn, 1
	return m, nil
}

// otherSchema says that a tenant's records are of another program, and the way out.
func (db *DB) otherSchema(name string, schema int) error {
	out := "upgrade the program"
	if schema < len(db.opt.Migrations) {
		out = "its first command that writes brings it there"
	}
	return db.fault(fmt.Errorf("tenant %.80q: schema %d; this program's is %d: %s", name, schema, len(db.opt.Migrations), out))
}

// keep renews the leases until the store is closed.
func (db *DB) keep() {
	tick := time.NewTicker(db.opt.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-db.ctx.Done():
			return
		case <-tick.C:
			db.renew()
			ctx, cancel := context.WithTimeout(db.ctx, db.opt.Lease/2)
			_ = db.seen(ctx) // the next time tells
			cancel()
		}
	}
}

// hold tells until when a tenant can't be taken, by a lease that the database gave
// after an instant.
func (db *DB) hold(t *tenant, since time.Time) {
	if db.opt.Lease <= 0 {
		return
	}
	t.held(since)
	if db.opt.Held != nil {
		db.opt.Held(t.name, since.Add(db.sureFor()))
	}
}

// renew renews the leases once. A tenant that has another epoch is not ours any
// more, nor is one whose commits are not all there: a standby took over that lacked
// the newest, and what is in memory of them is not so. One whose lease ran out unseen stays ours as long as nobody took it.
func (db *DB) renew() {
	var of []*tenant
	since := time.Now()
	for _, t := range db.owned() {
		if !t.handed.Load() && t.fatal() == nil { // what an engine left is not held
			of = append(of, t)
		}
	}
	if len(of) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(db.ctx, db.opt.Lease/2) // a dead connection must not cost the next renewal
	defer cancel()
	ours, err := db.renewal(ctx, of)
	if err != nil {
		return // the next commit or renewal tells
	}
	for _, t := range of {
		if ours[t.name] {
			db.hold(t, since)
		} else if !t.handed.Load() { // meanwhile
			t.fail(t.fenced())
		}
	}
}

// last is the number of the last commit, 0 while one is on its way, which finds out by
// itself what became of those before it.
func (t *tenant) last() int64 {
	select {
	case t.gate <- struct{}{}:
		defer func() { <-t.gate }()
		return t.now.commit
	default:
		return 0
	}
}

// release gives the tenant up, so that the next engine need not wait: to one, or to
// whoever comes.
func (t *tenant) release(to string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = t.db.query(ctx, nil, releaseSQL, []byte(t.name), t.epoch, to, max(t.db.opt.Lease, 0), t.db.opt.Engine) // else the lease runs out
}
