package store_test

import (
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// TestStoresLiveInsideBubbles: one after the other, in one process.
func TestStoresLiveInsideBubbles(t *testing.T) {
	for range 3 {
		path := filepath.Join(t.TempDir(), "data.db")
		synctest.Test(t, func(t *testing.T) {
			db := expect.Of(store.Open(path, store.Options{}))(t)
			expect.No(t, db.CreateTenant(t.Context(), "t_a"))
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					expect.Is(t, db.Update(t.Context(), "t_a", func(tx store.Tx) error { tx.Add("n", 1); return nil }), nil)
				})
			}
			wg.Wait()
			synctest.Wait()
			expect.No(t, db.Close())
		})
	}
}
