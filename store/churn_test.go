package store_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// TestAFileUnderSteadyChurnStopsGrowing has what is stored come at one end and
// leave at the other, beside values of several pages that change: free pages must
// be found again for both.
func TestAFileUnderSteadyChurnStopsGrowing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db := expect.Of(store.Open(path, store.Options{}))(t)
	defer db.Close()
	expect.No(t, db.CreateTenant(t.Context(), "t_acme"))
	const live, commits, perCommit = 20_000, 2_000, 40
	key := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	size := func() int64 {
		info := expect.Of(os.Stat(path))(t)
		return info.Size()
	}
	var n uint64
	var full int64
	for range commits {
		err := db.Update(t.Context(), "t_acme", func(tx store.Tx) error {
			for range perCommit {
				n++
				if err := tx.Put("a", key(n), make([]byte, 200+n*7919%900)); err != nil {
					return err
				}
				if err := tx.Put("b", key(n*2654435761), make([]byte, 40)); err != nil {
					return err
				}
				if n%64 == 0 {
					if err := tx.Put("big", key(n%1024), make([]byte, 8<<10+n%3<<12)); err != nil {
						return err
					}
				}
				if n > live {
					if err := tx.Delete("a", key(n-live)); err != nil {
						return err
					}
					if err := tx.Delete("b", key((n-live)*2654435761)); err != nil {
						return err
					}
				}
			}
			return nil
		})
		expect.No(t, err)
		if n == live {
			full = size()
		}
	}
	got := size()
	expect.True(t, got <= full*6/5, "%d bytes, %d were enough for all that was ever stored at a time", got, full)
}
