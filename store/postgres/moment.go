package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"swarmdeck/store"
	"swarmdeck/store/internal/group"
)

// moment is a tenant's state after one commit, and the Views that look at it.
// What is not in memory is read from the database, which has that same state
// until the next commit. A commit that comes while Views look has the moment
// frozen first: from then on it reads in a transaction that sees no later one.
type moment struct {
	t      *tenant
	epoch  int64
	commit int64 // number of the last commit in it

	mu     sync.Mutex // guards what follows; held while the database is read
	has    *records
	views  int
	frozen *pgxpool.Conn // in a transaction that began at this commit
	staged *changes      // what a commit under way has changed already; the writer's
	after  *flight       // the commit that this one stands on, while it is on its way; the writer's
}

func newMoment(t *tenant, commit int64) *moment {
	return &moment{t: t, epoch: t.epoch, commit: commit, has: newRecords()}
}

// forget has everything read from the database again.
func (m *moment) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.has = newRecords()
}

// leave ends a View.
func (m *moment) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.views--
	if m.views == 0 && m.frozen != nil {
		thaw(m.frozen)
		m.frozen = nil
	}
}

// freeze holds the moment for the Views in it, before the next commit.
func (m *moment) freeze(ctx context.Context) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.views > 0 && m.frozen == nil {
		err = patiently(ctx, func() (err error) { m.frozen, err = m.t.db.freeze(ctx); return err })
	}
	return err
}

// freeze begins a transaction that sees what is committed now.
func (db *DB) freeze(ctx context.Context) (conn *pgxpool.Conn, err error) {
	defer db.asks(&err)()
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if conn, err = db.pool.Acquire(ctx); err != nil {
		return nil, db.lost(ctx, err)
	}
	const begin = "begin isolation level repeatable read read only; select 1" // the select takes the snapshot
	if _, err := conn.Conn().PgConn().Exec(ctx, begin).ReadAll(); err != nil {
		conn.Release()
		return nil, db.lost(ctx, err)
	}
	return conn, nil
}

// thaw ends such a transaction.
func thaw(conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	_, _ = conn.Conn().PgConn().Exec(ctx, "rollback").ReadAll() // the pool drops a connection that is not idle
	conn.Release()
}

// get returns a record, nil when there is none.
func (m *moment) get(ctx context.Context, name store.Bucket, key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.has.of(name).span(key); !known {
		if _, err := m.load(ctx, name, key, false, firstRows, firstBytes); err != nil {
			return nil, err
		}
	}
	found, _ := m.has.of(name).rows.Get(row{key: key})
	return found.record, nil
}

// meet reads the last rows of a bucket of which nothing is in memory, before it is
// written to: most new keys come behind them, and lie in one known range then.
func (m *moment) meet(ctx context.Context, name store.Bucket) error {
	if m.has.of(name).spans.Len() > 0 {
		return nil
	}
	_, err := m.load(ctx, name, nil, true, firstRows, firstBytes)
	return err
}

// page returns some of the rows in [from, to), the first or, when reverse, the
// last ones, and the bounds of what is left; more is false at the end.
func (m *moment) page(ctx context.Context, name store.Bucket, from, to []byte, reverse, first bool) (rows []row, low, high []byte, more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.has.of(name)
	in, known := b.span(from)
	if reverse {
		in, known = b.below(to)
	}
	if !known {
		bound, limit, size := from, int64(pageRows), int64(pageBytes)
		if reverse {
			bound = to
		}
		if first {
			limit, size = firstRows, firstBytes
		}
		if in, err = m.load(ctx, name, bound, reverse, limit, size); err != nil {
			return nil, nil, nil, false, err
		}
		b = m.has.of(name)
	}
	take := func(r row) bool {
		if reverse && bytes.Compare(r.key, from) < 0 || !reverse && to != nil && bytes.Compare(r.key, to) >= 0 {
			return false
		}
		if reverse && bytes.Compare(r.key, in.from) < 0 || !reverse && in.to != nil && bytes.Compare(r.key, in.to) >= 0 {
			return false
		}
		rows = append(rows, r)
		return len(rows) < pageRows
	}
	switch {
	case !reverse:
		b.rows.Ascend(row{key: from}, take)
	case to == nil:
		b.rows.Reverse(take)
	default:
		b.rows.Descend(row{key: to}, func(r row) bool { return bytes.Equal(r.key, to) || take(r) })
	}
	low, high = from, to
	switch {
	case len(rows) == pageRows && reverse:
		high = rows[len(rows)-1].key
	case len(rows) == pageRows:
		low = after(rows[len(rows)-1].key)
	case reverse:
		high = in.from
	case in.to == nil:
		return rows, nil, nil, false, nil
	default:
		low = in.to
	}
	return rows, low, high, high == nil || bytes.Compare(low, high) < 0, nil
}

// What is read from the database at once, at most: the values together may have
// so many bytes, but one is always read. What was asked for is often at the end of
// its bucket, and all behind it is known once a short page holds it.
const (
	firstRows, firstBytes = 16, 64 << 10
	pageRows, pageBytes   = 128, 1 << 20
)

// pageSQL reads rows in one statement, from $5 on or, when reverse, those below
// it (all, when it is null), together with whether the tenant still is as the
// moment says: $2 is its epoch, $3 its last commit. $6 and $7 bound it.
func pageSQL(reverse, all bool) string {
	order, bound := "order by key", "and key >= $5"
	if reverse {
		order, bound = "order by key desc", "and key < $5"
	}
	if all {
		bound = "and $5::bytea is not null"
	}
	return strings.NewReplacer("ORDER", order, "BOUND", bound).Replace(
		`select o.epoch = $2 and o.commit = $3, r.key, r.value, r.found
from owner o left join lateral (
	select key, value, found from (
		select key, value, count(*) over () as found,
			sum(octet_length(value)) over (ORDER) - octet_length(value) as before
		from (select key, value from kv where tenant = $1 and bucket = $4 BOUND ORDER limit $6) as first
	) as measured where before < $7
) as r on true where o.tenant = $1 ORDER`)
}

// load reads a page of rows from a bound on, or below it, into memory and returns
// the span that is known by it. Nil is the end of all keys.
func (m *moment) load(ctx context.Context, name store.Bucket, bound []byte, reverse bool, limit, size int64) (span, error) {
	if m.after != nil {
		if err := m.after.outcome(); err != nil {
			return span{}, fmt.Errorf("read bucket %s: the commit before: %w", name, err)
		}
	}
	bound = bytes.Clone(bound) // which may be memory of a transaction, and stand in the cache
	if m.frozen != nil {
		ctx = context.WithoutCancel(ctx) // or who gives up closes the view of others
	}
	var got [][][]byte
	read := func() (err error) {
		got, err = m.t.db.query(ctx, m.frozen, pageSQL(reverse, bound == nil), []byte(m.t.name), m.epoch, m.commit, []byte(name), bound, limit, size)
		return err
	}
	var err error
	if m.frozen != nil {
		err = read()
	} else {
		err = patiently(ctx, read)
	}
	switch {
	case errors.Is(err, errLost) && m.frozen != nil:
		return span{}, fmt.Errorf("read bucket %s: the view is lost with its connection: %w", name, err)
	case err != nil:
		return span{}, fmt.Errorf("read bucket %s: %w", name, err)
	case len(got) == 0 || !truth(got[0][0]):
		err := m.t.fenced()
		m.t.fail(err)
		return span{}, err
	}
	rows := make([]row, 0, len(got))
	for _, r := range got {
		if r[1] != nil {
			rows = append(rows, row{key: r[1], record: r[2]})
		}
	}
	in := span{from: bound}
	if reverse {
		in = span{from: []byte{}, to: bound}
	}
	if n := int64(len(rows)); n > 0 && (n == limit || n < integer(got[0][3])) { // there may be more
		if reverse {
			in.from = rows[n-1].key
		} else {
			in.to = after(rows[n-1].key)
		}
	}
	if most := m.t.db.opt.Memory; m.has.size > most {
		m.has.shrink(most)
		m.staged.replay(m.has)
	}
	m.has.fill(name, rows, in.from, in.to)
	return in, nil
}

// view is what a View reads from.
type view struct {
	buckets
	ctx context.Context
	at  *moment
}

var _ group.Base[store.Bucket, *bucket] = (*view)(nil)

func (v *view) Get(b *bucket, key []byte) ([]byte, error) { return v.at.value(v.ctx, b, key) }

func (v *view) Scan(b *bucket, o *group.Overlay[*bucket], from, to []byte, reverse bool, visit group.Visit) error {
	return v.at.scan(v.ctx, b, o, from, to, reverse, visit)
}

func (v *view) Count(name string) (int64, error) { return v.at.count(v.ctx, v.counters(), name) }
