package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
	"swarmdeck/store/transfer"
)

const acme = "t_acme"

// side is a store that both copies from and copies to.
type side interface {
	transfer.Host
	transfer.Source
}

// both runs a test from a file to a database and back.
func both(t *testing.T, run func(t *testing.T, from, to func() side)) {
	pg := postgrestest.Start(t)
	file := func() func() side {
		path := filepath.Join(t.TempDir(), "data")
		return func() side { return opened(t)(store.Open(path, store.Options{})) }
	}
	base := func(name string) func() side {
		dsn := pg.Database(t, name)
		return func() side {
			return openedBase(t)(postgres.Open(t.Context(), dsn, postgres.Options{Lease: time.Second, Wait: 3 * time.Second}))
		}
	}
	t.Run("from a file to a database", func(t *testing.T) { run(t, file(), base("one")) })
	t.Run("from a database to a file", func(t *testing.T) { run(t, base("two"), file()) })
}

func opened(t *testing.T) func(*store.DB, error) side {
	return func(db *store.DB, err error) side {
		expect.No(t, err)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
}

func openedBase(t *testing.T) func(*postgres.DB, error) side {
	return func(db *postgres.DB, err error) side {
		expect.No(t, err)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
}

func no(t testing.TB, err error) {
	t.Helper()
	expect.No(t, err)
}

// contents are all records of a tenant, and its counters but for those at 0.
func contents(t testing.TB, st store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	no(t, st.View(t.Context(), acme, func(tx store.Tx) error {
		names, err := tx.(store.Inventory).Buckets()
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := tx.Scan(name, nil, nil, false, func(k, v []byte) (bool, error) {
				all[fmt.Sprintf("%s/%x", name, k)] = string(bytes.Clone(v))
				return true, nil
			}); err != nil {
				return err
			}
		}
		return tx.(store.Inventory).Counters(func(name string, n int64) {
			if n != 0 {
				all["counter "+name] = fmt.Sprint(n)
			}
		})
	}))
	return all
}

// fill makes a tenant with records in several buckets, more than one batch has.
func fill(t testing.TB, st store.Store) {
	t.Helper()
	no(t, st.CreateTenant(t.Context(), acme))
	for b := range 3 {
		no(t, st.Update(t.Context(), acme, func(tx store.Tx) error {
			for i := range 3000 {
				if err := tx.Put(store.Bucket(fmt.Sprint("b", b)), fmt.Appendf(nil, "%05d", i), fmt.Appendf(nil, "value %d", i%7)); err != nil {
					return err
				}
			}
			tx.Add("n", 3000)
			return tx.Put("empty", []byte{byte(b + 1)}, []byte{})
		}))
	}
}

// writer changes a tenant until it is told that it has moved, and knows what was
// acknowledged.
type writer struct {
	mu   sync.Mutex
	good map[string]string
	n    int // of what was acknowledged
	err  error
}

func (w *writer) wrote() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

func write(ctx context.Context, st store.Store, all *sync.WaitGroup) *writer {
	w := &writer{good: map[string]string{}}
	for g := range 4 {
		all.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("w%d-%d", g, i%50)
				value := fmt.Sprint(i)
				err := st.Update(ctx, acme, func(tx store.Tx) error {
					tx.Add("writes", 1)
					return tx.Put("live", []byte(key), []byte(value))
				})
				w.mu.Lock()
				if err != nil {
					w.err = err
					w.mu.Unlock()
					return
				}
				w.good[fmt.Sprintf("live/%x", key)] = value
				w.n++
				w.mu.Unlock()
			}
		})
	}
	return w
}

func TestACopyIsWholeOrNothing(t *testing.T) {
	both(t, func(t *testing.T, from, to func() side) {
		a, b := from(), to()
		fill(t, a)
		mark := store.AwayError{Tenant: acme, Copy: "first", Place: "there"}
		refused := errors.New("not equal")
		_, err := transfer.Copy(t.Context(), a, b, mark, transfer.Options{Prove: func(context.Context, store.Tx, store.Store) error { return refused }})
		expect.Must(t, errors.Is(err, refused), "unproven: %v", err)
		no(t, b.Close())
		b = to()
		var away *store.AwayError
		err = b.View(t.Context(), acme, func(store.Tx) error { return nil })
		expect.True(t, errors.As(err, &away) && errors.Is(err, store.ErrNoTenant) && !away.Moved, "a look at half a copy: %v", err)
		err = b.Update(t.Context(), acme, func(tx store.Tx) error { tx.Add("n", 1); return nil })
		expect.True(t, errors.As(err, &away), "an update of half a copy: %v", err)
		expect.Err(t, b.CreateTenant(t.Context(), acme), store.ErrTenantExists, "a tenant over half a copy")
		all, err := b.Tenants(t.Context())
		expect.True(t, err == nil && len(all) == 0, "tenants: %q, %v", all, err)
		no(t, a.Update(t.Context(), acme, func(tx store.Tx) error { return tx.Delete("b0", []byte("00001")) }))
		mark.Copy = "second"
		n, err := transfer.Copy(t.Context(), a, b, mark, transfer.Options{})
		no(t, err)
		expect.True(t, n.Records >= 9000, "copied %+v", n)
		no(t, b.Close())
		b = to()
		if got := contents(t, b); !maps.Equal(contents(t, a), got) || len(got) < 9000 {
			t.Errorf("the copy has %d records, its source %d", len(got), len(contents(t, a)))
		}
		no(t, b.Update(t.Context(), acme, func(tx store.Tx) error { tx.Add("n", 1); return nil }))
		mark.Copy = "third"
		expect.Err(t, expect.Fault(transfer.Copy(t.Context(), a, b, mark, transfer.Options{})), store.ErrTenantExists, "over a tenant")
	})
}

// marks are those of one move between two places.
func marks(id string) (mark, gone store.AwayError) {
	return store.AwayError{Tenant: acme, Copy: id, Place: "one"}, store.AwayError{Tenant: acme, Copy: id, Place: "two", Moved: true}
}

// is says that a store has a tenant no more.
func moved(t testing.TB, st store.Store) {
	t.Helper()
	var away *store.AwayError
	err := st.Update(t.Context(), acme, func(tx store.Tx) error { tx.Add("n", 1); return nil })
	expect.True(t, errors.As(err, &away) && away.Moved && away.Place == "two", "an update where it was: %v", err)
	err = st.View(t.Context(), acme, func(store.Tx) error { return nil })
	expect.True(t, errors.As(err, &away), "a look where it was: %v", err)
	all, err := st.Tenants(t.Context())
	expect.True(t, err == nil && len(all) == 0, "tenants where it was: %q, %v", all, err)
}

func TestAMoveLosesNothingThatWasAcknowledged(t *testing.T) {
	both(t, func(t *testing.T, from, to func() side) {
		a, b := from(), to()
		fill(t, a)
		var all sync.WaitGroup
		w := write(t.Context(), a, &all)
		mark, gone := marks("live")
		proved := 0
		_, err := transfer.Move(t.Context(), a, b, mark, gone, transfer.Options{
			Rest: func(context.Context) error {
				until := w.wrote() + 20
				expect.Await(t, "more is written", func() bool { return w.wrote() >= until })
				return nil
			},
			Prove: func(ctx context.Context, moment store.Tx, copied store.Store) error {
				proved++
				return copied.View(ctx, acme, func(tx store.Tx) error {
					if x, y := moment.Counter("writes"), tx.Counter("writes"); x != y {
						return fmt.Errorf("%d writes, %d in the copy", x, y)
					}
					return nil
				})
			},
		})
		no(t, err)
		all.Wait()
		var away *store.AwayError
		expect.True(t, errors.As(w.err, &away) && *away == gone, "the writers ended with %v", w.err)
		got := contents(t, b)
		expect.True(t, len(w.good) >= 50 && proved == 1, "%d keys were written meanwhile, proved %d times", len(w.good), proved)
		for key, value := range w.good {
			expect.Is(t, got[key], value, key)
		}
		expect.True(t, len(got) >= 9000, "%d records", len(got))
		moved(t, a)
		no(t, a.Close())
		moved(t, from())
		no(t, b.Close())
		b = to()
		expect.True(t, maps.Equal(contents(t, b), got), "another after it was opened again")
		no(t, b.Update(t.Context(), acme, func(tx store.Tx) error { return tx.Delete("b1", []byte("00002")) }))
	})
}

// deaf does not hear that a tenant was handed over.
type deaf struct{ side }

func (deaf) Settle(context.Context, store.AwayError) error { return errors.New("gone away") }

func TestAMoveThatWasCutOffAtItsLastStepIsFinished(t *testing.T) {
	both(t, func(t *testing.T, from, to func() side) {
		a, b := from(), to()
		fill(t, a)
		want := contents(t, a)
		mark, gone := marks("cut")
		if _, err := transfer.Move(t.Context(), a, deaf{b}, mark, gone, transfer.Options{}); !errors.Is(err, transfer.ErrHandedOver) {
			t.Fatalf("cut off: %v", err)
		}
		no(t, errors.Join(a.Close(), b.Close()))
		a, b = from(), to()
		moved(t, a)
		expect.Err(t, b.Update(t.Context(), acme, func(tx store.Tx) error { tx.Add("n", 1); return nil }), store.ErrNoTenant, "an update before it is finished")
		other := gone
		other.Copy = "another"
		if there, err := transfer.Finish(t.Context(), b, other); err != nil || there {
			t.Errorf("finished by another move: %v, %v", there, err)
		}
		for range 2 {
			there, err := transfer.Finish(t.Context(), b, gone)
			expect.True(t, err == nil && there, "finished: %v, %v", there, err)
		}
		expect.True(t, maps.Equal(contents(t, b), want), "another than it was")
		// And back, to where the rest of it lies.
		back, left := marks("back")
		left.Place = "one"
		_, err := transfer.Move(t.Context(), b, a, back, left, transfer.Options{})
		no(t, err)
		expect.True(t, maps.Equal(contents(t, a), want), "another once it is back")
		no(t, a.Update(t.Context(), acme, func(tx store.Tx) error { tx.Add("n", 1); return nil }))
	})
}

func TestAMoveThatIsRefusedLeavesTheTenantWhereItIs(t *testing.T) {
	both(t, func(t *testing.T, from, to func() side) {
		a, b := from(), to()
		fill(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		w := write(ctx, a, &all)
		mark, gone := marks("refused")
		refused := errors.New("it works")
		_, err := transfer.Move(t.Context(), a, b, mark, gone, transfer.Options{Last: func(moment, copied store.Tx) error { return refused }})
		expect.Err(t, err, refused, "refused")
		no(t, a.Update(t.Context(), acme, func(tx store.Tx) error { tx.Add("n", 1); return nil }))
		cancel()
		all.Wait()
		expect.Err(t, w.err, context.Canceled, "the writers ended with")
		if l, err := a.Leave(t.Context(), acme); err != nil {
			t.Errorf("it can't leave any more: %v", err)
		} else {
			_, err = a.Leave(t.Context(), acme)
			expect.Err(t, err, store.ErrLeaving, "twice at once")
			l.End()
		}
	})
}
