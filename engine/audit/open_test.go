package audit_test

import (
	"path/filepath"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const acme, other = "t_acme", "t_other"

// openStore opens, and the first time makes, a data file with two tenants.
func openStore(t testing.TB, path string, opt store.Options) *store.DB {
	t.Helper()
	db := expect.Of(store.Open(path, opt))(t)
	t.Cleanup(func() { db.Close() })
	if tenants, _ := db.Tenants(t.Context()); len(tenants) == 0 && !opt.ReadOnly {
		for _, tenant := range []string{acme, other} {
			expect.No(t, db.CreateTenant(t.Context(), tenant))
		}
	}
	return db
}

// newStore is a fresh data file without a sealer.
func newStore(t testing.TB) *store.DB {
	return openStore(t, filepath.Join(t.TempDir(), "data.db"), store.Options{})
}

func openSealer(t testing.TB, path string) *audit.Sealer {
	t.Helper()
	return expect.Of(audit.OpenSealer(path))(t)
}

// house is a data file with its key, opened and closed as a process would.
type house struct {
	t         testing.TB
	data, key string
	shared    bool // other engines go on with the log too
	sealer    *audit.Sealer
	db        *store.DB
	*audit.Ledger
}

func newHouse(t testing.TB) *house {
	dir := t.TempDir()
	h := &house{t: t, data: filepath.Join(dir, "data.db"), key: filepath.Join(dir, "audit.key")}
	h.open()
	return h
}

func (h *house) open() {
	h.t.Helper()
	if h.sealer = openSealer(h.t, h.key); h.shared {
		h.sealer = expect.Of(audit.OpenShared(h.key))(h.t)
	}
	h.db = openStore(h.t, h.data, store.Options{Seal: h.sealer.Seal})
	h.Ledger = audit.New(h.db, audit.Options{Clock: newClock(), Trusted: h.trusted})
	h.Register(things{})
}

func (h *house) trusted(tenant string) []string { return h.sealer.Trusted(tenant) }

func (h *house) close() {
	h.t.Helper()
	expect.No(h.t, h.db.Close())
}

// tamper changes the closed data file without the sealer.
func (h *house) tamper(fn func(store.Tx) error) {
	h.t.Helper()
	h.close()
	db := openStore(h.t, h.data, store.Options{})
	expect.No(h.t, db.Update(h.t.Context(), acme, fn))
	expect.No(h.t, db.Close())
	h.open()
}

// record appends n events in commits of their own size.
func (h *house) record(commits ...int) {
	h.t.Helper()
	for _, n := range commits {
		err := h.Update(h.t.Context(), alice, func(tx *audit.Tx) error {
			for range n {
				if _, err := tx.Record(entry("task.queued", "tk_1")); err != nil {
					return err
				}
			}
			return nil
		})
		expect.No(h.t, err)
	}
}

func (h *house) verify(saved []byte) audit.Report {
	h.t.Helper()
	r := expect.Of(h.Verify(h.t.Context(), acme, saved))(h.t)
	expect.Is(h.t, r.OK, len(r.Problems) == 0, "report says ok", "with problems", r.Problems)
	return r
}

func (h *house) checkpoint() []byte {
	h.t.Helper()
	return expect.Of(h.Checkpoint(h.t.Context(), acme))(h.t)
}
