package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
	bolterr "go.etcd.io/bbolt/errors"

	"swarmdeck/store/internal/group"
)

// Tenants that are elsewhere are marked among the file's own records.

var markPrefix = []byte("away:")

// readMarks takes up the marks of the file.
func (db *DB) readMarks(tx *bbolt.Tx) (err error) {
	defer guard(&err, "read", "marks")
	marks := map[string]*AwayError{}
	c := tx.Bucket(identityKey).Cursor()
	for k, v := c.Seek(markPrefix); bytes.HasPrefix(k, markPrefix); k, v = c.Next() {
		tenant := string(k[len(markPrefix):])
		mark, err := group.Unwrap(identitySeed(), Bucket(identityKey), k, v)
		if err != nil {
			return fmt.Errorf("%w: the mark of tenant %.80q: %w", ErrUnusable, tenant, err)
		}
		marks[tenant] = ParseMark(tenant, string(mark))
	}
	if len(marks) > 0 {
		db.marks.Store(&marks)
	}
	return nil
}

// away is the *AwayError of a tenant, nil for one that is worked on here.
func (db *DB) away(tenant string) error {
	marks := db.marks.Load()
	if marks == nil {
		return nil
	}
	mark := (*marks)[tenant]
	if mark == nil || !mark.Moved && db.hosts(tenant) {
		return nil
	}
	return mark
}

// hosts says that the tenant is copied here by this opening.
func (db *DB) hosts(tenant string) bool {
	a := db.arriving.Load()
	return a != nil && *a == tenant
}

// Away lists the tenants whose names are known here and which are elsewhere.
func (db *DB) Away(context.Context) ([]*AwayError, error) {
	var all []*AwayError
	if marks := db.marks.Load(); marks != nil {
		for _, tenant := range slices.Sorted(maps.Keys(*marks)) {
			all = append(all, (*marks)[tenant])
		}
	}
	return all, nil
}

// mark marks a tenant, or with nil unmarks it, in a commit of its own together
// with what also does.
func (db *DB) mark(ctx context.Context, tenant string, as *AwayError, also func(*bbolt.Tx, *identity) error) error {
	if db.readOnly {
		return ErrReadOnly
	}
	return db.between(ctx, func(w *writer) error {
		if err := w.begin(); err != nil {
			return err
		}
		now := identity{layout: layoutMarked, schema: uint64(db.schema), epoch: db.epoch}
		err := w.marked(tenant, as, &now, also)
		if err != nil {
			w.rollback()
			return err
		}
		w.wrote = true
		if err := w.end(); err != nil {
			return err
		}
		marks := map[string]*AwayError{}
		if was := db.marks.Load(); was != nil {
			maps.Copy(marks, *was)
		}
		if delete(marks, tenant); as != nil {
			marks[tenant] = as
		}
		db.marks.Store(&marks)
		db.epoch = now.epoch // another only for who copies here, alone
		db.layout = layoutMarked
		delete(w.tenants, tenant) // what is known of it
		return nil
	})
}

func (w *writer) marked(tenant string, as *AwayError, now *identity, also func(*bbolt.Tx, *identity) error) (err error) {
	defer guard(&err, "mark", Bucket(tenant))
	if also != nil {
		if err := also(w.tx, now); err != nil {
			return err
		}
	}
	if err := now.write(w.tx); err != nil {
		return err
	}
	b, key := w.tx.Bucket(identityKey), append(markPrefix[:len(markPrefix):len(markPrefix)], tenant...)
	if as == nil {
		return b.Delete(key)
	}
	return b.Put(key, group.Wrap(nil, identitySeed(), key, []byte(as.Mark())))
}

// Arrive begins the copy of a tenant: from here on this opening may write and read
// it, and for all others it is one that is on its way, until Settle. What is left of
// a copy that was cut off, or of a tenant that has moved, goes. ErrTenantExists when
// it is there. from is not Moved. Fencing tokens up to epoch, which are those of where it
// is, are not valid here.
func (db *DB) Arrive(ctx context.Context, from AwayError, epoch uint64) error {
	if err := group.CheckTenant(from.Tenant); err != nil {
		return err
	}
	known := db.away(from.Tenant) != nil
	err := db.mark(ctx, from.Tenant, &from, func(tx *bbolt.Tx, now *identity) error {
		now.epoch = max(now.epoch, epoch) + 1
		key := tenantKey(from.Tenant)
		switch err := tx.DeleteBucket(key); {
		case errors.Is(err, bolterr.ErrBucketNotFound):
		case err != nil:
			return err
		case !known:
			return fmt.Errorf("tenant %s: %w", from.Tenant, ErrTenantExists)
		}
		_, err := tx.CreateBucket(key)
		return err
	})
	if err == nil {
		db.arriving.Store(&from.Tenant)
	}
	return err
}

// Settle ends the copy: the tenant is here. It fails unless the tenant's mark is from.
func (db *DB) Settle(ctx context.Context, from AwayError) error {
	marks := db.marks.Load()
	if marks == nil || (*marks)[from.Tenant] == nil || *(*marks)[from.Tenant] != from {
		return fmt.Errorf("tenant %.80q: that copy of it is not on its way here: %w", from.Tenant, ErrNoTenant)
	}
	return db.mark(ctx, from.Tenant, nil, nil)
}
