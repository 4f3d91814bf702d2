package store_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/storetest"
)

// compacting is a store that is compacted all the time.
type compacting struct {
	*store.DB
	stop context.CancelFunc
	done chan struct{}
}

func (c compacting) Close() error {
	c.stop()
	<-c.done
	return c.DB.Close()
}

func TestKilledWhileItIsCompactedKeepsWhatWasAcknowledged(t *testing.T) {
	path := func(dir string) string { return filepath.Join(dir, "data.db") }
	storetest.Crash(t, storetest.CrashOptions{
		Open: func(dir string) (store.Store, error) {
			db, err := store.Open(path(dir), store.Options{})
			if err != nil {
				return nil, err
			}
			ctx, stop := context.WithCancel(context.Background())
			c := compacting{db, stop, make(chan struct{})}
			go func() {
				defer close(c.done)
				for ctx.Err() == nil {
					if _, _, err := db.Compact(ctx); err != nil {
						return // the store ended
					}
				}
			}()
			return c, nil
		},
		Closed: func(t testing.TB, dir string) {
			r := expect.Of(store.Check(context.Background(), path(dir)))(t)
			expect.Is(t, r.Err(), nil)
			// The next open removes an unfinished copy.
			err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && filepath.Base(p) != ".data.db.compact" && p != path(dir) {
					return os.Remove(p)
				}
				return err
			})
			expect.Is(t, err, nil)
		},
	})
}

func TestAFileShrinksBesideWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	db := openAt(t, path, store.Options{})
	no := func(err error) {
		t.Helper()
		expect.No(t, err)
	}
	no(db.CreateTenant(t.Context(), "t_a"))
	const n = 20_000
	key := func(i int) []byte { return fmt.Appendf(nil, "%08d", i) }
	for from := 0; from < n; from += 1000 {
		no(db.Update(t.Context(), "t_a", func(tx store.Tx) error {
			for i := from; i < from+1000; i++ {
				if err := tx.Put("old", key(i), make([]byte, 1000)); err != nil {
					return err
				}
			}
			tx.Add("n", 1000)
			return nil
		}))
	}
	for from := 0; from < n-100; from += 100 {
		no(db.Update(t.Context(), "t_a", func(tx store.Tx) error {
			for i := from; i < from+100; i++ {
				if err := tx.Delete("old", key(i)); err != nil {
					return err
				}
			}
			tx.Add("n", -100)
			return nil
		}))
	}
	var all sync.WaitGroup
	var stop atomic.Bool
	var wrote [4]int
	for w := range wrote {
		all.Go(func() {
			for i := 0; !stop.Load(); i++ {
				err := db.Update(t.Context(), "t_a", func(tx store.Tx) error {
					tx.Add("m", 1)
					if i%3 == 2 {
						return tx.Delete("new", fmt.Appendf(nil, "%d/%d", w, i-1))
					}
					return tx.Put("new", fmt.Appendf(nil, "%d/%d", w, i), []byte{byte(i)})
				})
				if err != nil {
					t.Error(err)
					return
				}
				wrote[w] = i + 1
			}
		})
	}
	all.Go(func() {
		for !stop.Load() {
			err := db.View(t.Context(), "t_a", func(tx store.Tx) error {
				left := int64(0)
				err := tx.Scan("old", nil, nil, false, func(_, _ []byte) (bool, error) { left++; return true, nil })
				if left != 100 || tx.Counter("n") != 100 {
					return fmt.Errorf("%d rows, counted %d", left, tx.Counter("n"))
				}
				return err
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for round := range 3 {
		before, after, err := db.Compact(t.Context())
		no(err)
		if round == 0 && (after > before/4 || before < n*1000) {
			t.Errorf("%d bytes before, %d after", before, after)
		}
		s, err := db.Stats(t.Context())
		expect.True(t, err == nil && s.Tenants[0].Counters["n"] == 100, "%v %v", s, err)
	}
	_, _, err := store.Compact(t.Context(), path)
	expect.Fails(t, err, "the new file is not locked")
	stop.Store(true)
	all.Wait()
	check := func() {
		t.Helper()
		r, err := db.Check(t.Context())
		no(err)
		no(r.Err())
		no(db.View(t.Context(), "t_a", func(tx store.Tx) error {
			total := 0
			for w := range wrote {
				total += wrote[w]
				for i := range wrote[w] {
					value, err := tx.Get("new", fmt.Appendf(nil, "%d/%d", w, i))
					there := i%3 == 0 || i%3 == 1 && i+1 == wrote[w]
					expect.Must(t, err == nil && there == (value != nil) && (!there || value[0] == byte(i)), "%d/%d is %v, %v", w, i, value, err)
				}
			}
			expect.Is(t, int64(total), tx.Counter("m"), total, "updates, counted")
			return nil
		}))
	}
	check()
	no(db.Close())
	db = openAt(t, path, store.Options{})
	check()
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	expect.True(t, len(left) == 0, "left behind: %v", left)
}

func TestACompactionEndsWithItsStore(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "data.db"), store.Options{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, _, err := db.Compact(context.Background()); err != nil {
				return
			}
		}
	}()
	expect.No(t, db.CreateTenant(t.Context(), "t_a"))
	expect.No(t, db.Close())
	<-ended
}
