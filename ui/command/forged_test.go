package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/record"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
	"swarmdeck/store/transfer"
)

// forger changes a data file behind the engine's back, with every checksum
// right, and asks the engine what it notices.
type forger struct {
	t      *testing.T
	db     store.Store
	eng    *engine.Engine
	tenant string
}

// forged changes, removes and adds rows of each bucket that any command writes, in
// copies. FORGED_ROWS is how many of a bucket and tenant, 0 is all; unless it is said,
// one row is forged of each bucket in one of these ways, of the first tenant that has any.
func (w *walk) forged(t *testing.T) {
	most, all := 1, false
	if s := os.Getenv("FORGED_ROWS"); s != "" {
		expect.Of(fmt.Sscan(s, &most))(w.t)
		all = true
	}
	copied := func(i int) string { return filepath.Join(w.dir, fmt.Sprintf("forged%d.db", i)) }
	parts := runtime.GOMAXPROCS(0)
	for i := range parts {
		w.line("store backup " + copied(i))
	}
	t.Run("rows", func(t *testing.T) {
		for i := range parts {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				w.forger(t, copied(i)).rows(most, all, func(name string) bool { return crc32.ChecksumIEEE([]byte(name))%uint32(parts) == uint32(i) })
			})
		}
	})
	spilled := str(w.object(`task dispatch --kind exec.run --wait --input '{"argv":["sh","-c","head -c 1100000 /dev/zero; head -c 1100000 /dev/zero >&2"]}'`)["task_id"])
	w.line("store backup " + copied(parts))
	f := w.forger(t, copied(parts))
	f.tenant = "t_test"
	for _, name := range []string{spilled + ".0", spilled + ".0.stderr"} {
		path := filepath.Join(w.dir, "spill", f.tenant, name)
		whole := expect.Of(os.ReadFile(path))(w.t)
		forged := bytes.Clone(whole)
		forged[len(forged)/2] ^= 1
		w.no(os.WriteFile(path, forged, 0o600))
		n, _ := f.found()
		expect.True(t, n != 0, "%s was changed unseen", name)
		w.no(os.Remove(path))
		n, _ = f.found()
		expect.True(t, n != 0, "%s was removed unseen", name)
		w.no(os.WriteFile(path, whole, 0o600))
	}
}

// forger opens a copy.
func (w *walk) forger(t *testing.T, path string) *forger {
	t.Helper()
	db := expect.Of(stored(t, path))(t)
	t.Cleanup(func() { _ = db.Close() })
	eng, err := engine.Open(t.Context(), engine.Options{Store: db, Spill: filepath.Join(w.dir, "spill"), ReadOnly: true, Dir: t.TempDir(), CADDir: t.TempDir(), ForkDir: t.TempDir()})
	expect.No(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	return &forger{t: t, db: db, eng: eng}
}

// stored is the store of a data file or, where the engine's suites are about a database
// (enginetest.DataEnv), one there with the same rows.
func stored(t *testing.T, path string) (store.Store, error) {
	db, err := store.Open(path, store.Options{})
	dsn := os.Getenv(enginetest.DataEnv)
	if err != nil || dsn == "" {
		return db, err
	}
	defer db.Close()
	base, err := postgrestest.Open(dsn, path, postgres.Options{})
	if err != nil {
		return nil, err
	}
	tenants, err := db.Tenants(t.Context())
	for _, tenant := range tenants {
		_, bad := transfer.Copy(t.Context(), db, base, store.AwayError{Tenant: tenant, Copy: "forged"}, transfer.Options{})
		err = errors.Join(err, bad)
	}
	return base, err
}

// rows forges those buckets and counters that are its own.
func (f *forger) rows(most int, all bool, mine func(name string) bool) {
	tenants := expect.Of(f.db.Tenants(f.t.Context()))(f.t)
	total, tried := 0, map[store.Bucket]bool{}
	for _, f.tenant = range tenants {
		if n, how := f.found(); n > 0 {
			f.t.Fatalf("%s: %d differences before anything was forged: %s", f.tenant, n, how)
		}
		for _, b := range f.buckets() {
			if !mine(string(b)) || !all && tried[b] {
				continue
			}
			n := f.bucket(b, most, all)
			total += n
			tried[b] = n > 0
		}
		total += f.counters(most, mine)
	}
	f.t.Logf("%d forgeries", total)
}

func (f *forger) buckets() (names []store.Bucket) {
	f.view(func(tx store.Tx) (err error) {
		names, err = tx.(store.Inventory).Buckets()
		return err
	})
	return names
}

// bucket forges rows of one bucket, from its first to its last, in every way or in
// one that goes by its name.
func (f *forger) bucket(b store.Bucket, most int, all bool) (n int) {
	if slices.Contains(f.eng.Audit.Declared(audit.Volatile), string(b)) {
		return 0
	}
	const changed, removed, added = 0, 1, 2
	way := crc32.ChecksumIEEE([]byte(b)) % 3
	try := func(is uint32, forge, back func(store.Tx) error, key []byte) {
		if all || way == is {
			f.try(forge, back, "%s: row %q was %s unseen", b, key, []string{"changed", "removed", "added"}[is])
			n++
		}
	}
	var keys, values [][]byte
	f.view(func(tx store.Tx) error {
		return tx.Scan(b, nil, nil, false, func(k, v []byte) (bool, error) {
			keys, values = append(keys, bytes.Clone(k)), append(values, bytes.Clone(v))
			return true, nil
		})
	})
	if len(keys) == 0 {
		return 0
	}
	put := func(key, value []byte) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.Put(b, bytes.Clone(key), bytes.Clone(value)) }
	}
	drop := func(key []byte) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.Delete(b, bytes.Clone(key)) }
	}
	sealed, step := uint64(0), 1
	if b == "audit_issued" {
		report := expect.Of(f.eng.Audit.Verify(f.t.Context(), f.tenant, nil))(f.t)
		sealed = report.Sealed
	}
	if most > 0 {
		step = max(1, len(keys)/most)
	}
	for i := 0; i < len(keys); i += step {
		forged := []byte("x") // of a row that holds nothing
		if n := len(values[i]); n > 0 {
			forged = bytes.Clone(values[i])
			forged[i%n] ^= 1
		}
		try(changed, put(keys[i], forged), put(keys[i], values[i]), keys[i])
		if b == "audit_issued" && record.LastSeq(keys[i]) > sealed {
			continue // what the log can say again; those of events that left are proven
		}
		try(removed, drop(keys[i]), put(keys[i], values[i]), keys[i])
	}
	last := len(keys) - 1
	more := append(bytes.Clone(keys[last]), 7)
	try(added, put(more, values[last]), drop(more), more)
	return n
}

// counters forges counters; unless most is 0, one of those that count the same of several.
func (f *forger) counters(most int, mine func(name string) bool) (n int) {
	var names []string
	f.view(func(tx store.Tx) error {
		return tx.(store.Inventory).Counters(func(name string, _ int64) { names = append(names, name) })
	})
	tried := map[string]bool{}
	for _, name := range names {
		volatile := func(v string) bool {
			begin, many := strings.CutSuffix(v, "*")
			return v == "#"+name || many && strings.HasPrefix("#"+name, begin)
		}
		kind := name
		if part := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == ':' }); len(part) > 2 {
			kind = part[0] + "." + part[1]
		}
		if !mine(kind) || most > 0 && tried[kind] || slices.ContainsFunc(f.eng.Audit.Declared(audit.Volatile), volatile) {
			continue
		}
		tried[kind] = true
		add := func(by int64) func(store.Tx) error {
			return func(tx store.Tx) error { tx.Add(name, by); return nil }
		}
		f.try(add(1), add(-1), "counter %s was changed unseen", name)
		n++
	}
	return n
}

// try forges, looks whether that is found, and takes it back.
func (f *forger) try(forge, back func(store.Tx) error, unseen string, args ...any) {
	f.t.Helper()
	f.update(forge)
	if n, _ := f.found(); n == 0 {
		f.t.Errorf(f.tenant+" "+unseen, args...)
	}
	f.update(back)
}

// found is how much verify and reconcile find. An error of verify counts too;
// reconcile compares the rest beside a row that can't be read.
func (f *forger) found() (int, string) {
	deltas, err := f.eng.Reconcile(f.t.Context(), f.tenant)
	expect.No(f.t, err, "reconcile")
	if len(deltas) > 0 {
		return len(deltas), fmt.Sprint(deltas)
	}
	report, err := f.eng.Audit.Verify(f.t.Context(), f.tenant, nil)
	if err != nil {
		return 1, err.Error()
	}
	return len(report.Problems), fmt.Sprint(report.Problems)
}

func (f *forger) update(fn func(store.Tx) error) {
	f.t.Helper()
	expect.No(f.t, f.db.Update(context.Background(), f.tenant, fn))
}

func (f *forger) view(fn func(store.Tx) error) {
	f.t.Helper()
	expect.No(f.t, f.db.View(context.Background(), f.tenant, fn))
}
