package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"swarmdeck/store"
)

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
