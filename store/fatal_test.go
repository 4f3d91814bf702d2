package store_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// TestWhatEndsAnOpenStore: after each of these the store acknowledges nothing
// more, says why, closes, and opens again with what was acknowledged.
func TestWhatEndsAnOpenStore(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(db *store.DB) error
		kept  bool // the spoiling update itself was acknowledged
		says  string
	}{
		"a hook that panics": {func(db *store.DB) error {
			return db.Update(ctx, "t_a", func(tx store.Tx) error {
				tx.OnCommit(func() { panic("in a hook") })
				return tx.Put("y", []byte("new"), []byte("v"))
			})
		}, true, "in a hook"},
		"an update that ends its goroutine": {func(db *store.DB) error {
			return db.Update(ctx, "t_a", func(tx store.Tx) error {
				_ = tx.Put("y", []byte("new"), []byte("v"))
				runtime.Goexit()
				return nil
			})
		}, false, "goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t, t.TempDir())
			db := expect.Of(store.Open(path, store.Options{}))(t)
			var wg sync.WaitGroup
			for range 8 { // neighbours must get an answer, whichever
				wg.Go(func() {
					_ = db.Update(ctx, "t_a", func(tx store.Tx) error { tx.Add("others", 1); return nil })
				})
			}
			err := c.spoil(db)
			expect.True(t, (err == nil) == c.kept, "the spoiling update: %v", err)
			wg.Wait()
			for _, err := range []error{
				db.Update(ctx, "t_a", func(store.Tx) error { return nil }),
				db.CreateTenant(ctx, "t_b"),
				db.View(ctx, "t_a", func(store.Tx) error { return nil }),
			} {
				expect.True(t, errors.Is(err, store.ErrUnusable) && strings.Contains(err.Error(), c.says), "afterwards: %v", err)
			}
			expect.No(t, db.Close(), "close")
			again := openAt(t, path, store.Options{})
			wrong, missing := compareRecords(again)
			expect.True(t, wrong == "" && missing == 0, "%s, %d missing", wrong, missing)
			if err := again.View(ctx, "t_a", func(tx store.Tx) error {
				v, err := tx.Get("y", []byte("new"))
				expect.Is(t, v != nil, c.kept, "the spoiling update's record", v)
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSealThatPanicsFailsItsCommitOnly(t *testing.T) {
	bad := false
	db := open(t, store.Options{Seal: func(store.Tx) error {
		if bad {
			panic("in the seal")
		}
		return nil
	}})
	expect.No(t, db.CreateTenant(ctx, "t_a"))
	write := func() error {
		return db.Update(ctx, "t_a", func(tx store.Tx) error { tx.Add("n", 1); return nil })
	}
	bad = true
	var caught *store.PanicError
	err := write()
	expect.True(t, errors.As(err, &caught) && caught.Value == "in the seal" && len(caught.Stack) != 0, "update: %v", err)
	bad = false
	expect.No(t, write())
	if err := db.View(ctx, "t_a", func(tx store.Tx) error {
		expect.Is(t, tx.Counter("n"), 1, "counter")
		return nil
	}); err != nil {
		t.Error(err)
	}
}
