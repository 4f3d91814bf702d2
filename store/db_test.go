package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

func open(t testing.TB, opt store.Options) *store.DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "data.db"), opt)
}

func openAt(t testing.TB, path string, opt store.Options) *store.DB {
	t.Helper()
	db := expect.Of(store.Open(path, opt))(t)
	t.Cleanup(func() { expect.Is(t, db.Close(), nil) })
	return db
}

func TestUpdatesOfManyCallersAreAllThere(t *testing.T) {
	ctx := context.Background()
	db := open(t, store.Options{})
	expect.No(t, db.CreateTenant(ctx, "t_a"))
	if err := db.CreateTenant(ctx, "t_a"); !errors.Is(err, store.ErrTenantExists) {
		t.Fatalf("second create: %v", err)
	}
	var wg sync.WaitGroup
	for p := range 32 {
		wg.Go(func() {
			for i := range 50 {
				err := db.Update(ctx, "t_a", func(tx store.Tx) error {
					n := tx.Add("n", 1)
					if i%10 == 9 {
						return errors.New("no")
					}
					return tx.Put("x", fmt.Appendf(nil, "%02d-%03d", p, i), fmt.Append(nil, n))
				})
				expect.Is(t, err != nil, i%10 == 9, "update", i, err)
			}
		})
	}
	wg.Wait()
	err := db.View(ctx, "t_a", func(tx store.Tx) error {
		n := 0
		if err := tx.Scan("x", nil, nil, false, func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
			return err
		}
		expect.True(t, n == 32*45 && tx.Counter("n") == int64(n), "%d records, counter %d", n, tx.Counter("n"))
		return nil
	})
	expect.No(t, err)
}
