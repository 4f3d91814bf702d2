package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/store"
)

// Engine is one of those that share a database, as the others know it.
type Engine struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"` // HOST:PORT of its SSH door; "" has none
	Key     string `json:"key,omitempty"`     // public host key of the door, as in authorized_keys
	Host    string `json:"host"`              // name of its machine
	Version string `json:"version"`
	Signer  string `json:"signer,omitempty"` // public key that it signs the log with, base64; "" is not known
	// Draining says that it is stopped, and hands its tenants over.
	Draining bool `json:"draining,omitempty"`
	// Since is when it began, Seen when it last said that it is there, on the
	// database's clock; Live, that it did so within a lease.
	Since time.Time `json:"since"`
	Seen  time.Time `json:"seen"`
	Live  bool      `json:"live"`
	// Silent is the time since Seen, on the same clock.
	Silent time.Duration `json:"silent"`
}

// Owned is a tenant and who has it.
type Owned struct {
	Tenant string `json:"tenant"`
	Engine string `json:"engine,omitempty"` // who has it, or had it last; "" gave it up
	Free   bool   `json:"free"`             // whoever takes it has it
	// Left is how long its lease still lasts, unless it is made longer.
	Left time.Duration `json:"left"`
}

// What is said to the table engine.
const (
	seenSQL = `insert into engine as e (name, address, key, host, version, signer, until, layout, draining) values ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7 * interval '1 microsecond', $8, $9 > 0)
on conflict (name) do update set address = excluded.address, key = excluded.key, host = excluded.host, version = excluded.version, signer = excluded.signer, until = excluded.until, layout = excluded.layout, draining = excluded.draining, seen = clock_timestamp()`

	enginesSQL = `select name, address, key, host, version, signer, (extract(epoch from since) * 1e6)::bigint, (extract(epoch from seen) * 1e6)::bigint, until > clock_timestamp(),
greatest(0, extract(epoch from clock_timestamp() - seen) * 1e6)::bigint, draining from engine order by until < clock_timestamp(), name`

	ownersSQL = `select tenant, engine, until <= now, case when until > now then extract(epoch from until - now) * 1e6 else 0 end::bigint
from owner, clock_timestamp() as now where away = '' order by tenant`
)

// Join has the other engines know of this one, until the store is closed, by the name
// of Options.Engine. Live and times of me are ignored.
func (db *DB) Join(ctx context.Context, me Engine) error {
	if db.opt.ReadOnly {
		return store.ErrReadOnly
	}
	me.Name = db.opt.Engine
	db.mu.Lock()
	db.me = &me
	db.mu.Unlock()
	if _, err := db.query(ctx, nil, `delete from engine where until < clock_timestamp() - interval '1 day'`); err != nil {
		return fmt.Errorf("forget engines that are no more: %w", err)
	}
	return db.seen(ctx)
}

// visitor is what the name of a process begins with that is no engine; no name of a
// machine has a colon.
const visitor = "visitor:"

// Visits says that this is a process that works on no tenant, see Introduce.
func (e Engine) Visits() bool { return strings.HasPrefix(e.Name, visitor) }

// Signs has the other engines know the public key that this one signs the log with, if it
// has joined.
func (db *DB) Signs(key string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.me != nil && db.me.Signer != key {
		me := *db.me
		me.Signer = key
		db.me = &me
	}
}

// Drain has the other engines know that this one is stopped, if it has joined.
func (db *DB) Drain(ctx context.Context) error {
	db.mu.Lock()
	if db.me != nil {
		me := *db.me
		me.Draining = true
		db.me = &me
	}
	db.mu.Unlock()
	return db.seen(ctx)
}

// Introduce has the other engines know of this process for the time of a lease, by a name
// of its own: it works on no tenant.
func (db *DB) Introduce(ctx context.Context, me Engine) error {
	if _, err := db.query(ctx, nil, seenSQL, visitor+rand.Text(), "", me.Key, me.Host, me.Version, me.Signer, db.opt.Lease, int64(len(db.steps)), int64(0)); err != nil {
		return fmt.Errorf("be known to the engines: %w", err)
	}
	return nil
}

// seen says that this engine is there, if it has joined.
func (db *DB) seen(ctx context.Context) error {
	db.mu.Lock()
	me := db.me
	db.mu.Unlock()
	if me == nil {
		return nil
	}
	var draining int64
	if me.Draining {
		draining = 1
	}
	if _, err := db.query(ctx, nil, seenSQL, me.Name, me.Address, me.Key, me.Host, me.Version, me.Signer, db.opt.Lease, int64(len(db.steps)), draining); err != nil {
		return fmt.Errorf("join the engines: %w", err)
	}
	return nil
}

// left takes this engine out of the others' sight.
func (db *DB) left() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	db.mu.Lock()
	me := db.me
	db.mu.Unlock()
	if me != nil {
		_, _ = db.query(ctx, nil, `delete from engine where name = $1`, me.Name) // else it is not live soon
	}
}

// Engines lists those that joined, and who has which tenant.
func (db *DB) Engines(ctx context.Context) (engines []Engine, owned []Owned, err error) {
	rows, err := db.query(ctx, nil, enginesSQL)
	tenants, unread := db.query(ctx, nil, ownersSQL)
	if err = errors.Join(err, unread); err != nil {
		return nil, nil, fmt.Errorf("list the engines: %w", err)
	}
	for _, r := range rows {
		engines = append(engines, Engine{
			Name: string(r[0]), Address: string(r[1]), Key: string(r[2]), Host: string(r[3]), Version: string(r[4]), Signer: string(r[5]),
			Since: time.UnixMicro(integer(r[6])).UTC(), Seen: time.UnixMicro(integer(r[7])).UTC(), Live: truth(r[8]),
			Silent: time.Duration(integer(r[9])) * time.Microsecond, Draining: truth(r[10]),
		})
	}
	for _, r := range tenants {
		owned = append(owned, Owned{Tenant: string(r[0]), Engine: string(r[1]), Free: truth(r[2]), Left: time.Duration(integer(r[3])) * time.Microsecond})
	}
	return engines, owned, nil
}

// Engine is this engine's name in the tables.
func (db *DB) Engine() string { return db.opt.Engine }

// Lease is how long an engine is live after it was seen.
func (db *DB) Lease() time.Duration { return db.opt.Lease }
