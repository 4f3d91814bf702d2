// Package storetest is the conformance and crash suite of store.Store: every
// store passes it, so the engine need not know which one it has.
package storetest

import (
	"context"
	"os"
	"syscall"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// Opener opens the store kept in dir, creating it the first time. Closing it
// and opening it again must show the same data.
type Opener func(t testing.TB, dir string, opt store.Options) store.Store

// Run checks everything that store.Store promises short of a crash.
func Run(t *testing.T, open Opener) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Opener)
	}{
		{"Records", records},
		{"RecordsInLargeUpdates", largeUpdates},
		{"EmptiedPages", emptied},
		{"Limits", limits},
		{"FailedUpdatesLeaveNothing", failures},
		{"NeighboursOfAFailureStand", neighbours},
		{"Panics", panics},
		{"WritingInsideAScan", writingInScan},
		{"UseAfterTheEnd", afterTheEnd},
		{"Alloc", allocated},
		{"AllocatedReads", allocatedReads},
		{"Views", views},
		{"Counters", counters},
		{"HooksInCommitOrder", hooks},
		{"Seal", seals},
		{"FailedSeal", failedSeal},
		{"Tenants", tenants},
		{"TenantsAreIsolated", isolation},
		{"Cancelled", cancelled},
		{"Closed", closed},
		{"Reopened", reopened},
		{"Epoch", epochs},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

const tenant = "t_one"

var ctx = context.Background()

// fresh opens an empty store with one tenant, closed when the test ends.
func fresh(t *testing.T, open Opener, opt store.Options) store.Store {
	t.Helper()
	s := open(t, t.TempDir(), opt)
	t.Cleanup(func() { closeStore(t, s) })
	create(t, s, tenant)
	return s
}

func closeStore(t testing.TB, s store.Store) {
	t.Helper()
	expect.No(t, s.Close(), "close")
}

func create(t testing.TB, s store.Store, id string) {
	t.Helper()
	expect.No(t, s.CreateTenant(ctx, id), "create tenant", id)
}

// update runs an Update that must succeed.
func update(t testing.TB, s store.Store, id string, fn func(store.Tx) error) {
	t.Helper()
	expect.No(t, s.Update(ctx, id, fn), "update")
}

// view runs a View that must succeed.
func view(t testing.TB, s store.Store, id string, fn func(store.Tx) error) {
	t.Helper()
	expect.No(t, s.View(ctx, id, fn), "view")
}

// want checks one value; nil means absent.
func want(t testing.TB, tx store.Tx, b store.Bucket, key string, value any) {
	t.Helper()
	got, err := tx.Get(b, []byte(key))
	if err != nil {
		t.Errorf("get %s/%s: %v", b, key, err)
		return
	}
	switch v := value.(type) {
	case nil:
		if got != nil {
			t.Errorf("%s/%s is %q, want nothing", b, key, got)
		}
	case string:
		if got == nil || string(got) != v {
			t.Errorf("%s/%s is %q, want %q", b, key, got, v)
		}
	}
}

// put is a Put of strings.
func put(tx store.Tx, b store.Bucket, key, value string) error {
	return tx.Put(b, []byte(key), []byte(value))
}

// FillDisk lets the data file grow no further, as a full disk does, until room
// is called or the test ends. What is written ahead in the file can still be
// used. It holds for all files of the process: no test may run beside it.
func FillDisk(t testing.TB, path string) (room func()) {
	t.Helper()
	info := expect.Of(os.Stat(path))(t)
	var was syscall.Rlimit
	expect.No(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	set := func(to syscall.Rlimit) {
		expect.No(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &to))
	}
	set(syscall.Rlimit{Cur: uint64(info.Size()), Max: was.Max})
	room = func() { set(was) }
	t.Cleanup(room)
	return room
}
