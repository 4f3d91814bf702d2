package store

import (
	"context"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"swarmdeck/store/internal/group"
)

// Stats are figures that cost no walk through the file. Check's report has
// the rest.
type Stats struct {
	Path      string        `json:"path"`
	Size      int64         `json:"size"`       // bytes of the file
	PageSize  int64         `json:"page_size"`  // bytes
	Pages     int64         `json:"pages"`      // up to the high water mark
	FreePages int64         `json:"free_pages"` // of these; compacting gives them back
	Commits   uint64        `json:"commits"`    // since the file was made or compacted
	Schema    int           `json:"schema"`     // migrations it has been through
	Epoch     uint64        `json:"epoch"`      // writable opens so far
	Tenants   []TenantStats `json:"tenants"`
}

// TenantStats are a tenant's buckets and counters.
type TenantStats struct {
	Tenant   string           `json:"tenant_id"`
	Buckets  []Bucket         `json:"buckets"`
	Counters map[string]int64 `json:"counters"`
}

// Stats reads the figures of the open store.
func (db *DB) Stats(ctx context.Context) (*Stats, error) {
	s := &Stats{Path: db.path, Schema: db.schema, Epoch: db.epoch}
	err := db.snapshot(ctx, func(tx *bbolt.Tx, m fileMeta) error {
		s.Size, s.PageSize, s.Pages, s.Commits = m.size, m.pageSize, m.pages, m.txid
		if p, err := readPage(db.file, m, m.freelist, nil); err == nil {
			if _, n, err := p.freePages(); err == nil {
				s.FreePages = int64(n)
			}
		}
		return s.tenants(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("statistics of data file %s: %w", db.path, err)
	}
	return s, nil
}

// ReadStats is DB.Stats for a data file that no process has open.
func ReadStats(ctx context.Context, path string) (*Stats, error) {
	db, err := open(path, Options{ReadOnly: true, anySchema: true})
	if err != nil {
		return nil, fmt.Errorf("open data file %s: %w", path, err)
	}
	defer db.Close()
	return db.Stats(ctx)
}

func (s *Stats) tenants(tx *bbolt.Tx) (err error) {
	defer guard(&err, "read", "tenants")
	s.Tenants = []TenantStats{}
	for _, id := range tenantsOf(tx) {
		t := TenantStats{Tenant: id, Buckets: []Bucket{}, Counters: map[string]int64{}}
		root := tx.Bucket(tenantKey(id))
		err := root.ForEachBucket(func(name []byte) error {
			if Bucket(name) != countersBucket {
				t.Buckets = append(t.Buckets, Bucket(name))
				return nil
			}
			return root.Bucket(name).ForEach(func(k, v []byte) error {
				value, err := group.Unwrap(group.SeedOf(id, countersBucket), countersBucket, k, v)
				if err != nil || len(value) != 8 {
					return fmt.Errorf("counter %s of tenant %s: %w", group.ClipKey(k), id, ErrCorrupt)
				}
				t.Counters[string(k)] = int64(binary.BigEndian.Uint64(value))
				return nil
			})
		})
		if err != nil {
			return err
		}
		s.Tenants = append(s.Tenants, t)
	}
	return nil
}

// Inventory is what the Tx of a View also knows: all that a tenant has, so that
// nothing can be there unseen.
type Inventory interface {
	// Buckets are the names of the tenant's buckets, in order.
	Buckets() ([]Bucket, error)
	// Counters visits the tenant's counters that were ever written, in order.
	Counters(visit func(name string, n int64)) error
}

var _ Inventory = (*readTx)(nil)

func (tx *readTx) Buckets() (names []Bucket, err error) {
	if err := tx.Over(); err != nil {
		return nil, err
	}
	defer guard(&err, "list the buckets of", Bucket(tx.ts.tenant))
	err = tx.ts.root.ForEachBucket(func(name []byte) error {
		if name[0] != '_' { // those are the store's own
			names = append(names, Bucket(name))
		}
		return nil
	})
	return names, err
}

func (tx *readTx) Counters(visit func(name string, n int64)) error {
	if err := tx.Over(); err != nil {
		return err
	}
	t, err := tx.ts.counters()
	if err != nil {
		return err
	}
	return scan(t, nil, nil, nil, false, func(name, value []byte) (bool, error) {
		if len(value) != 8 {
			return false, fmt.Errorf("counter %s: %w", name, ErrCorrupt)
		}
		visit(string(name), int64(binary.BigEndian.Uint64(value)))
		return true, nil
	})
}
