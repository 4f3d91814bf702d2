package store_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// heap is what is in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestCountersThatAreNoLongerUsedCostNoMemory(t *testing.T) {
	db := open(t, store.Options{})
	expect.No(t, db.CreateTenant(ctx, "t_a"))
	const many, each = 200_000, 1000
	name := func(i int) string { return fmt.Sprintf("log.of.a.task.with.a.long.name.%010d", i) }
	add := func(from int, n int64) error {
		return db.Update(ctx, "t_a", func(tx store.Tx) error {
			tx.Add("hot", 1)
			for i := range each {
				tx.Add(name(from+i), n)
			}
			return nil
		})
	}
	expect.No(t, add(0, 1))
	before := heap()
	for from := each; from < many; from += each {
		expect.No(t, add(from, int64(from)))
	}
	grown := int64(heap()) - int64(before)
	expect.True(t, grown <= 8<<20, "%d counters hold %d MB", many, grown>>20)
	if err := add(0, 10); err != nil { // long out of mind
		t.Fatal(err)
	}
	err := db.View(ctx, "t_a", func(tx store.Tx) error {
		for i := range many {
			want := int64(i / each * each)
			if i < each {
				want = 11
			}
			if n := tx.Counter(name(i)); n != want {
				return fmt.Errorf("%s is %d, want %d", name(i), n, want)
			}
		}
		if n := tx.Counter("hot"); n != many/each+1 {
			return fmt.Errorf("hot is %d", n)
		}
		return nil
	})
	expect.No(t, err)
}

func TestAnUpdateOfMoreCountersThanAreKeptIsWhole(t *testing.T) {
	db := open(t, store.Options{})
	expect.No(t, db.CreateTenant(ctx, "t_a"))
	const many = 20_000
	refused := errors.New("refused")
	for round := range 4 {
		err := db.Update(ctx, "t_a", func(tx store.Tx) error {
			for pass := range 2 {
				for i := range many {
					if n := tx.Add(fmt.Sprint("c", i), 1); n != int64(2*(round-round/2)+pass+1) {
						return fmt.Errorf("round %d, pass %d: c%d is %d", round, pass, i, n)
					}
				}
			}
			if round%2 == 1 {
				return refused // and counts for nothing
			}
			return nil
		})
		expect.Must(t, err == nil || errors.Is(err, refused), "%v", err)
	}
}
