package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/storetest"
)

func TestKilledAtAnyInstantKeepsWhatWasAcknowledged(t *testing.T) {
	path := func(dir string) string { return filepath.Join(dir, "data.db") }
	storetest.Crash(t, storetest.CrashOptions{
		Open: func(dir string) (store.Store, error) {
			db, err := store.Open(path(dir), store.Options{Seal: func(tx store.Tx) error {
				tx.Add("seals", 1)
				return nil
			}})
			if err != nil {
				return nil, err
			}
			return db, nil
		},
		Closed: func(t testing.TB, dir string) {
			r := expect.Of(store.Check(context.Background(), path(dir)))(t)
			expect.Is(t, r.Err(), nil)
			// A kill during creation may leave the unfinished file, never a
			// half one under the real name.
			err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && p != path(dir) {
					if !strings.HasPrefix(filepath.Base(p), ".data.db.new-") {
						return errors.New("unexpected file " + p)
					}
					return os.Remove(p)
				}
				return err
			})
			expect.Is(t, err, nil)
		},
	})
}
