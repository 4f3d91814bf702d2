package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/store"
	"swarmdeck/store/internal/group"
)

// Tenants that are elsewhere are marked in their row of the table owner.

// Statements that must be on disk when they return say so where the server is told
// not to wait.
const (
	durably = `case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end`

	// arriveSQL marks a tenant as one that is on its way here, unless it is here.
	arriveSQL = `insert into owner as o (tenant, schema, away, epoch) values ($1, $2, $3, $4)
on conflict (tenant) do update set away = excluded.away, schema = excluded.schema, epoch = greatest(o.epoch, excluded.epoch) + 1
where o.away <> '' and o.until <= clock_timestamp() returning ` + durably

	clearSQL = `with gone as (delete from kv where ctid = any (array(select ctid from kv where tenant = $1 limit 20000)) returning true)
select count(*) from gone`

	settleSQL = `update owner set away = '', epoch = epoch + 1, session = session + 1, engine = '', until = '-infinity'
where tenant = $1 and away = $2 returning ` + durably

	goneSQL = `update owner set away = $2, session = session + 1, engine = '', until = '-infinity'
where tenant = $1 and epoch = $3 and engine = $4 returning ` + durably

	markSQL = `select away from owner where tenant = $1`
)

// Away lists the tenants whose names are known here and which are elsewhere.
func (db *DB) Away(ctx context.Context) (all []*store.AwayError, err error) {
	rows, err := db.query(ctx, nil, `select tenant, away from owner where away <> '' order by tenant`)
	if err != nil {
		return nil, fmt.Errorf("list the tenants that are elsewhere: %w", err)
	}
	for _, row := range rows {
		all = append(all, store.ParseMark(string(row[0]), string(row[1])))
	}
	return all, nil
}

// hosted is the mark of a tenant that this opening copies here, else "".
func (db *DB) hosted(name string) string {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.arriving == nil || db.arriving.Tenant != name {
		return ""
	}
	return db.arriving.Mark()
}

// Arrive begins the copy of a tenant, as that of store.DB does. One copy is made at a
// time by an opening.
func (db *DB) Arrive(ctx context.Context, from store.AwayError, epoch uint64) error {
	if db.opt.ReadOnly {
		return store.ErrReadOnly
	}
	if err := errors.Join(group.CheckTenant(from.Tenant), db.closed()); err != nil {
		return err
	}
	for end := time.Now().Add(db.opt.Wait); ; wait(ctx, 50*time.Millisecond) {
		begun, err := db.announce(ctx, from, epoch)
		if begun {
			break
		}
		if !errors.Is(err, store.ErrLocked) || ctx.Err() != nil || !time.Now().Before(end) {
			return err
		}
	}
	name := []byte(from.Tenant)
	db.forget(from.Tenant)
	db.mu.Lock()
	db.arriving = &from
	db.mu.Unlock()
	if _, err := db.tenant(ctx, from.Tenant); err != nil { // by whose lease no other copy begins
		return err
	}
	for {
		rows, err := db.query(ctx, nil, clearSQL, name)
		if err != nil {
			return fmt.Errorf("remove what was left of tenant %s: %w", from.Tenant, err)
		}
		if len(rows) == 0 || integer(rows[0][0]) == 0 {
			return nil
		}
	}
}

// announce marks a tenant as one that is on its way here.
func (db *DB) announce(ctx context.Context, from store.AwayError, epoch uint64) (bool, error) {
	rows, err := db.query(ctx, nil, arriveSQL, []byte(from.Tenant), int64(len(db.opt.Migrations)), from.Mark(), int64(epoch))
	if err != nil {
		return false, fmt.Errorf("begin the copy of tenant %s: %w", from.Tenant, err)
	}
	if len(rows) > 0 {
		return true, nil
	}
	mark, there, err := db.markOf(ctx, from.Tenant)
	switch {
	case err != nil:
		return false, err
	case there && mark != "":
		return false, fmt.Errorf("tenant %s: %w: another process copies it here", from.Tenant, store.ErrLocked)
	}
	return false, fmt.Errorf("tenant %s: %w", from.Tenant, store.ErrTenantExists)
}

// markOf is what marks a tenant as one that is elsewhere; "" is one that is here.
func (db *DB) markOf(ctx context.Context, name string) (mark string, there bool, err error) {
	rows, err := db.query(ctx, nil, markSQL, []byte(name))
	if err != nil || len(rows) == 0 {
		return "", false, err
	}
	return string(rows[0][0]), true, nil
}

// Settle ends the copy, as that of store.DB does.
func (db *DB) Settle(ctx context.Context, from store.AwayError) error {
	sent := false
	err := patiently(ctx, func() error {
		rows, err := db.query(ctx, nil, settleSQL, []byte(from.Tenant), from.Mark())
		if err != nil || len(rows) > 0 {
			sent = true
			return err
		}
		mark, there, err := db.markOf(ctx, from.Tenant)
		if err == nil && (!there || mark != "" || !sent) {
			err = fmt.Errorf("tenant %.80q: that copy of it is not on its way here: %w", from.Tenant, store.ErrNoTenant)
		}
		return err
	})
	if err == nil {
		db.forget(from.Tenant)
	}
	return err
}

// forget lets go of a tenant in memory: it is taken anew when it is asked for.
func (db *DB) forget(name string) {
	db.mu.Lock()
	t := db.tenants[name]
	delete(db.tenants, name)
	if db.arriving != nil && db.arriving.Tenant == name {
		db.arriving = nil
	}
	db.mu.Unlock()
	if t != nil {
		t.fail(store.ErrClosed)
		<-t.stopped
	}
}

// leaving is a tenant of ours that is copied away.
type leaving struct {
	t    *tenant
	tail *group.Tail
}

// Leave begins to follow a tenant.
func (db *DB) Leave(ctx context.Context, name string) (store.Leaving, error) {
	if db.opt.ReadOnly {
		return nil, store.ErrReadOnly
	}
	t, err := db.tenant(ctx, name)
	if err != nil {
		return nil, err
	}
	l := &leaving{t, &group.Tail{}}
	return l, t.aside(ctx, func() error {
		if t.tail != nil {
			return fmt.Errorf("tenant %.80q: %w", name, store.ErrLeaving)
		}
		t.tail = l.tail
		return nil
	})
}

// aside runs fn on the writer's goroutine. Updates that were run before it are
// committed when it returns.
func (t *tenant) aside(ctx context.Context, fn func() error) error {
	return t.queue.Do(ctx, t.name, true, func(store.Tx) error { return fn() })
}

// Cut implements store.Leaving. The snapshot is taken while updates are held for the
// time of one round trip, and not from what the owner has in memory: that stays as it
// is.
func (l *leaving) Cut(ctx context.Context, fn func(store.Tx, []store.Row) error) error {
	db, held := l.t.db, l.tail.Held() != nil
	if err := l.Hold(ctx); err != nil {
		return err
	}
	var rows []store.Row
	m, err := db.look(ctx, l.t.name)
	if err == nil {
		if rows, err = store.TakeTail(l.tail); err != nil {
			m.leave()
		}
	}
	if !held {
		l.tail.Release()
	}
	if err != nil {
		return err
	}
	defer m.leave()
	return m.view(ctx, l.t.name, func(tx store.Tx) error { return fn(tx, rows) })
}

func (l *leaving) Hold(ctx context.Context) error {
	return l.t.aside(ctx, func() error { l.tail.Hold(); return nil })
}

func (l *leaving) Gone(ctx context.Context, to store.AwayError) error {
	t := l.t
	t.handed.Store(true) // or a renewal would take it for lost
	err := patiently(ctx, func() error {
		rows, err := t.db.query(ctx, nil, goneSQL, []byte(t.name), to.Mark(), t.epoch, t.db.opt.Engine)
		if err == nil && len(rows) == 0 {
			mark, _, unread := t.db.markOf(ctx, t.name)
			if err = unread; err == nil && mark != to.Mark() {
				err = t.fenced()
			}
		}
		if err == nil {
			t.fail(&to)
		}
		return err
	})
	if err != nil {
		t.handed.Store(false)
	}
	return err
}

func (l *leaving) End() {
	l.tail.Release()
	// Where the writer has ended there is nothing to stop.
	_ = l.t.aside(context.Background(), func() error { l.t.tail = nil; return nil })
	l.tail.Release()
}
