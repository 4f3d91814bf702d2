package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// How often who follows looks whether something was committed: where commits are heard
// of, as a bell may be lost, and where they aren't: on a standby, and through a pooler.
const (
	lookHeard   = time.Second
	lookUnheard = 250 * time.Millisecond
	// listenAgain is how long it does without the bell after that failed.
	listenAgain = 5 * time.Second
)

// tailSQL is what every tenant is at.
const tailSQL = `select tenant, epoch, commit from owner where away = ''`

// Follow calls changed, from one goroutine, with the tenants that had commits of any
// engine since it began, or since the last call, until ctx ends or the store is closed.
// It hears of a commit within a moment, and within a second where the bell is lost. What
// fails is tried again: who reads is told by what they read.
func (db *DB) Follow(ctx context.Context, changed func(tenants []string)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(db.ctx, cancel)()
	f := &follower{db: db, changed: changed}
	defer f.deaf()
	for ctx.Err() == nil {
		f.look(ctx)
		f.await(ctx)
	}
}

// follower is one who follows.
type follower struct {
	db      *DB
	changed func([]string)
	at      map[string][2]int64 // epoch and commit; nil before the first look

	ear   *pgx.Conn // listens; nil does not
	again time.Time // when it is tried next
}

// look tells what has changed.
func (f *follower) look(ctx context.Context) {
	rows, err := f.db.query(ctx, nil, tailSQL)
	if err != nil {
		return
	}
	now, news := make(map[string][2]int64, len(rows)), []string(nil)
	for _, r := range rows {
		name, at := string(r[0]), [2]int64{integer(r[1]), integer(r[2])}
		if now[name] = at; f.at != nil && f.at[name] != at {
			news = append(news, name)
		}
	}
	for name := range f.at {
		if _, there := now[name]; !there {
			news = append(news, name)
		}
	}
	if f.at = now; len(news) > 0 {
		f.changed(news)
	}
}

// await waits for the bell, or until it is time to look.
func (f *follower) await(ctx context.Context) {
	if f.ear == nil && time.Now().After(f.again) {
		if f.listen(ctx) != nil {
			f.again = time.Now().Add(listenAgain)
		} else {
			return // something may have happened before it listened
		}
	}
	if f.ear == nil {
		wait(ctx, lookUnheard)
		return
	}
	heard, cancel := context.WithTimeout(ctx, lookHeard)
	defer cancel()
	if _, err := f.ear.WaitForNotification(heard); err != nil && !(errors.Is(err, context.DeadlineExceeded) && !f.ear.IsClosed()) {
		f.deaf() // and looks, and listens anew
	}
}

// errPooler is that another session than ours would listen.
var errPooler = errors.New("a pooler stands before the server")

// listen connects once more, to hear the bell. A pooler hands each transaction to any
// session: there the process that a connection was told of is not the one that answers.
func (f *follower) listen(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, f.db.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			hangUp(conn)
		}
	}()
	var pid uint32
	if err := conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	if pid != conn.PgConn().PID() {
		return errPooler
	}
	if _, err := conn.Exec(ctx, "listen "+channel); err != nil { // a standby has no bell
		return err
	}
	f.ear = conn
	return nil
}

// deaf gives the connection up.
func (f *follower) deaf() {
	if f.ear != nil {
		hangUp(f.ear)
		f.ear = nil
	}
}

func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// channel is where commits are told of, with the tenant as payload: to everyone who
// listens in the database, whatever their schema.
const channel = "swarmdeck"

// ringEvery is how often commits are told of at most. While a NOTIFY commits, no other
// can; commits themselves carry none, so that they wait for nobody.
const ringEvery = 50 * time.Millisecond

// bellSQL rings for some tenants. Nothing waits for the disk: who hears it reads what
// is committed.
const bellSQL = `select pg_notify($1, convert_from(tenant, 'UTF8')), set_config('synchronous_commit', 'off', true) from unnest($2::bytea[]) as t(tenant)`

// bell tells those who follow the database that a tenant has had a commit. It may be
// lost: they look by themselves too.
type bell struct {
	mu      sync.Mutex
	tenants map[string]bool
	wake    chan struct{} // one slot
}

// committed has the bell rung for a tenant soon. It does not wait.
func (b *bell) committed(tenant string) {
	b.mu.Lock()
	b.tenants[tenant] = true
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// ring rings until the store is closed.
func (db *DB) ring(ctx context.Context) {
	for b := db.bell; ; {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		b.mu.Lock()
		var tenants [][]byte
		for _, name := range slices.Sorted(maps.Keys(b.tenants)) {
			tenants = append(tenants, []byte(name))
		}
		clear(b.tenants)
		b.mu.Unlock()
		_, _ = db.query(ctx, nil, bellSQL, channel, tenants) // a server that is away has no listeners
		wait(ctx, ringEvery)
	}
}
