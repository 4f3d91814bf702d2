package postgres

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

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
