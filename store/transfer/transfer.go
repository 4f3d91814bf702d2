// Package transfer copies one tenant from a store to another, a file or a database.
//
// A copy is of one moment of the source. A move follows what is written meanwhile,
// holds the source's updates for the rest of it, and hands the tenant over in two
// commits: the source marks it as moved, then the destination lets it be worked on.
// Ended between the two, nobody takes writes, and the next try does the second. Ended
// before, the source has the tenant as ever, and what came to the destination is
// nothing until it is whole.
//
// Records are read and written by the transactions of the stores, so that the
// checksum of each is verified on the way and made anew. Nothing is sealed.
package transfer

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"swarmdeck/store"
)

// Host is a store that takes a tenant from another; see store.DB.
type Host interface {
	store.Store
	Arrive(ctx context.Context, from store.AwayError, epoch uint64) error
	Settle(ctx context.Context, from store.AwayError) error
	Away(ctx context.Context) ([]*store.AwayError, error)
}

// Source is a store that a tenant moves away from; see store.DB.
type Source interface {
	store.Store
	Leave(ctx context.Context, tenant string) (store.Leaving, error)
}

// Counts are what was copied.
type Counts struct {
	Records int64 `json:"records"` // counters are some
	Bytes   int64 `json:"bytes"`   // of keys and values
}

// The rows that are written in one commit.
const (
	batchRows  = 4096
	batchBytes = 4 << 20
)

// batch is rows on their way to a tenant of a host.
type batch struct {
	ctx    context.Context
	to     Host
	tenant string
	rows   []record
	bytes  int
	all    Counts
	told   func(Counts) // after each commit; nil for nobody
}

type record struct {
	store.Row
	value []byte // nil: it is to go
	n     int64  // of a counter
}

// add takes a row, whose memory is the batch's from then on.
func (b *batch) add(r record) error {
	b.rows = append(b.rows, r)
	n := len(r.Key) + len(r.value) + len(r.Counter)
	b.bytes += n
	b.all.Records++
	b.all.Bytes += int64(n)
	if len(b.rows) < batchRows && b.bytes < batchBytes {
		return nil
	}
	return b.flush()
}

// flush commits what has come together.
func (b *batch) flush() error {
	if len(b.rows) == 0 {
		return nil
	}
	err := b.to.Update(b.ctx, b.tenant, func(tx store.Tx) error {
		for _, r := range b.rows {
			if err := r.write(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the copy: %w", err)
	}
	clear(b.rows)
	b.rows, b.bytes = b.rows[:0], 0
	if b.told != nil {
		b.told(b.all)
	}
	return nil
}

func (r *record) write(tx store.Tx) error {
	switch {
	case r.Counter != "":
		tx.Add(r.Counter, r.n-tx.Counter(r.Counter))
		return nil
	case r.value == nil:
		return tx.Delete(r.Bucket, r.Key)
	}
	return tx.Put(r.Bucket, r.Key, r.value)
}

// whole copies all that a tenant has in a transaction.
func (b *batch) whole(tx store.Tx) error {
	all, ok := tx.(store.Inventory)
	if !ok {
		return fmt.Errorf("tenant %s: this store can't list what it has", tx.Tenant())
	}
	buckets, err := all.Buckets()
	if err != nil {
		return err
	}
	for _, name := range buckets {
		err := tx.Scan(name, nil, nil, false, func(key, value []byte) (bool, error) {
			if err := b.ctx.Err(); err != nil {
				return false, err
			}
			return true, b.add(record{Row: store.Row{Bucket: name, Key: bytes.Clone(key)}, value: append([]byte{}, value...)})
		})
		if err != nil {
			return fmt.Errorf("copy bucket %s: %w", name, err)
		}
	}
	var failed error
	err = all.Counters(func(name string, n int64) {
		if failed == nil {
			failed = b.add(record{Row: store.Row{Counter: name}, n: n})
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("copy the counters: %w", err)
	}
	return b.flush()
}

// some copies rows as a transaction has them.
func (b *batch) some(tx store.Tx, rows []store.Row) error {
	for _, row := range rows {
		r := record{Row: row}
		if row.Counter != "" {
			r.n = tx.Counter(row.Counter)
		} else {
			value, err := tx.Get(row.Bucket, row.Key)
			if err != nil {
				return err
			}
			if value != nil {
				r.value = append([]byte{}, value...)
			}
		}
		if err := b.add(r); err != nil {
			return err
		}
	}
	return b.flush()
}

// same holds rows of the copy against those of the moment that it was made from.
func same(moment, copied store.Tx, rows []store.Row) error {
	for _, row := range rows {
		if row.Counter != "" {
			if a, b := moment.Counter(row.Counter), copied.Counter(row.Counter); a != b {
				return fmt.Errorf("the copy differs: counter %s is %d, not %d", row.Counter, b, a)
			}
			continue
		}
		a, err := moment.Get(row.Bucket, row.Key)
		if err != nil {
			return err
		}
		b, err := copied.Get(row.Bucket, row.Key)
		if err != nil {
			return err
		}
		if !bytes.Equal(a, b) || (a == nil) != (b == nil) {
			return fmt.Errorf("the copy differs in %s/%x", row.Bucket, row.Key[:min(len(row.Key), 48)])
		}
	}
	return nil
}

// Backup copies each tenant of a store, each as it is at one moment, to a new data
// file. It is checked before it gets its name, and never replaces a file.
func Backup(ctx context.Context, from store.Store, dest string) (*store.Report, error) {
	return store.Fresh(ctx, dest, func(to *store.DB) error {
		tenants, err := from.Tenants(ctx)
		if err != nil {
			return err
		}
		for _, tenant := range tenants {
			mark := store.AwayError{Tenant: tenant, Copy: rand.Text()[:12], Place: "a backup that was cut off"}
			if _, err := Copy(ctx, from, to, mark, Options{}); err != nil {
				return fmt.Errorf("tenant %s: %w", tenant, err)
			}
		}
		return nil
	})
}

// Check reads every record of every tenant and verifies its checksum. Damage is told
// in the report; the error is for what can't be read at all.
func Check(ctx context.Context, st store.Store) (*store.Report, error) {
	r := &store.Report{Path: "the store"}
	if named, ok := st.(interface{ Name() string }); ok {
		r.Path = named.Name()
	}
	tenants, err := st.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	r.Tenants = tenants
	for _, tenant := range tenants {
		if err := st.View(ctx, tenant, func(tx store.Tx) error { return checkTenant(ctx, tx, r) }); err != nil {
			return nil, fmt.Errorf("check tenant %s: %w", tenant, err)
		}
	}
	r.OK = r.Found == 0
	return r, nil
}

// maxProblems is how many a report tells.
const maxProblems = 100

func checkTenant(ctx context.Context, tx store.Tx, r *store.Report) error {
	all, ok := tx.(store.Inventory)
	if !ok {
		return errors.New("this store can't list what it has")
	}
	damaged := func(what string, err error) error {
		if !errors.Is(err, store.ErrCorrupt) {
			return err
		}
		if r.Found++; len(r.Problems) < maxProblems {
			r.Problems = append(r.Problems, fmt.Sprintf("%s/%s: %v", tx.Tenant(), what, err))
		}
		return nil
	}
	names, err := all.Buckets()
	if err != nil {
		return err
	}
	for _, name := range names {
		count := store.BucketStats{Tenant: tx.Tenant(), Bucket: name}
		err := tx.Scan(name, nil, nil, false, func(k, v []byte) (bool, error) {
			count.Records++
			count.Bytes += int64(len(k) + len(v))
			return ctx.Err() == nil, nil
		})
		if err := errors.Join(damaged(string(name), err), ctx.Err()); err != nil {
			return err
		}
		r.Size += count.Bytes
		r.Buckets = append(r.Buckets, count)
	}
	return damaged("counters", all.Counters(func(string, int64) {}))
}
