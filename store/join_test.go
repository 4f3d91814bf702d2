package store

import (
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"swarmdeck/expect"
)

func TestAnUpdateThatComesInMeanwhileJoinsTheCommit(t *testing.T) {
	var commits atomic.Int64
	db, err := Open(filepath.Join(t.TempDir(), "join.db"), Options{Seal: func(Tx) error {
		commits.Add(1)
		return nil
	}})
	expect.No(t, err)
	defer db.Close()
	expect.No(t, db.CreateTenant(t.Context(), "t_acme"))
	commits.Store(0)
	began := make(chan struct{})
	put := func(key string) func(Tx) error {
		return func(tx Tx) error { return tx.Put("b", []byte(key), []byte("v")) }
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		err := db.Update(t.Context(), "t_acme", func(tx Tx) error {
			close(began)
			for db.queue.Len() < 2 { // hold the writer until the others wait
				runtime.Gosched()
			}
			return put("first")(tx)
		})
		expect.Is(t, err, nil)
	})
	<-began
	for _, key := range []string{"second", "third"} {
		wg.Go(func() {
			expect.Is(t, db.Update(t.Context(), "t_acme", put(key)), nil)
		})
	}
	wg.Wait()
	expect.Is(t, commits.Load(), 1, "three updates took")
}
