// Package enginetest is the world in which tests of the engine's services stand:
// a data file with a signed audit log, that can be opened again as after a
// restart or a crash, and the loops of the services. What a service needs
// beside that, its own test adds in Build.
package enginetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

// Options of New. Each may be left out.
type Options struct {
	Path    string     // of the data file; "" is one of the test's own
	File    bool       // the data is in a file, whatever DataEnv says: a bubble has no server
	Tenants []string   // to be made; nil is Acme and Other
	Clock   core.Clock // nil is the system's
	// Over stands between the services and the store.
	Over func(store.Store) store.Store
	// Full reports that nothing can be written.
	Full func() bool
	// Build makes the services, at each opening.
	Build func(*World)
	// Changed learns of what a commit changed, on the store's goroutine.
	Changed func(core.Change)
}

// Tenants of a world, and an operator of the first.
const (
	Acme  = "t_acme"
	Other = "t_other"
)

// Alice is an operator of Acme at the command line.
func Alice() core.Caller {
	return core.Caller{Tenant: Acme, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
}

// World is an open data file.
type World struct {
	T      testing.TB
	Path   string
	Dir    string // for files of the services
	DB     store.Store
	Store  store.Store // what the services see
	Ledger *audit.Ledger
	Sealer *audit.Sealer

	opt   Options
	end   func() // stops the loops
	mu    sync.Mutex
	bells []chan struct{}
}

// New opens a world, which is closed when the test ends.
func New(t testing.TB, opt Options) *World {
	t.Helper()
	w := &World{T: t, Path: opt.Path, Dir: t.TempDir(), opt: opt}
	if w.Path == "" {
		w.Path = filepath.Join(w.Dir, "data.db")
	}
	w.Open()
	t.Cleanup(w.Close)
	return w
}

// Open opens the data file of a world that was closed.
func (w *World) Open() {
	w.T.Helper()
	var err error
	w.Sealer, err = audit.OpenSealer(w.Path + ".key")
	w.No(err)
	w.DB, err = w.open(store.Options{Seal: w.seal})
	w.No(err)
	if w.Store = w.DB; w.opt.Over != nil {
		w.Store = w.opt.Over(w.DB)
	}
	tenants := w.opt.Tenants
	if tenants == nil {
		tenants = []string{Acme, Other}
	}
	for _, tenant := range tenants {
		if err := w.DB.CreateTenant(context.Background(), tenant); !errors.Is(err, store.ErrTenantExists) {
			w.No(err)
		}
	}
	w.build()
}

// DataEnv names the variable with the DSN of a PostgreSQL database in which worlds
// have their data, each in a schema of its own, instead of in a file.
const DataEnv = "SWARMDECK_TEST_DATA"

func (w *World) open(opt store.Options) (store.Store, error) {
	dsn := os.Getenv(DataEnv)
	if dsn == "" || w.opt.File {
		return store.Open(w.Path, opt)
	}
	return postgrestest.Open(dsn, w.Path, postgres.Options{Options: opt})
}

// Sealed opens the data file of a directory: for processes that are killed.
func Sealed(dir string) (store.Store, error) {
	sealer, err := audit.OpenSealer(filepath.Join(dir, "crash.db.key"))
	if err != nil {
		return nil, err
	}
	return store.Open(filepath.Join(dir, "crash.db"), store.Options{Seal: sealer.Seal})
}

// File is the data file of a store. A test that needs one is skipped where worlds
// are in a database.
func File(t testing.TB, st store.Store) *store.DB {
	t.Helper()
	db, ok := st.(*store.DB)
	if !ok {
		t.Skip("is about the data file")
	}
	return db
}

// On is a world over a store that the caller opened, and closes.
func On(t testing.TB, st store.Store, opt Options) *World {
	w := &World{T: t, Dir: t.TempDir(), opt: opt}
	w.On(st)
	return w
}

// On makes the services anew, over another store.
func (w *World) On(st store.Store) {
	w.Store = st
	w.build()
}

func (w *World) build() {
	opt := audit.Options{Clock: w.opt.Clock, OnChange: w.changed}
	if w.Sealer != nil {
		opt.Trusted = w.Sealer.Trusted
	}
	w.Ledger = audit.New(w.Store, opt)
	if w.opt.Build != nil {
		w.opt.Build(w)
	}
}

func (w *World) seal(tx store.Tx) error {
	if w.opt.Full != nil && w.opt.Full() {
		return errors.New("the disk is full")
	}
	return w.Sealer.Seal(tx)
}

func (w *World) changed(c core.Change) {
	if w.opt.Changed != nil {
		w.opt.Changed(c)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, bell := range w.bells {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}

// Watch is a bell that rings after commits.
func (w *World) Watch(context.Context) <-chan struct{} {
	bell := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bells = append(w.bells, bell)
	return bell
}

// Start starts loops of the services, until Stop or Close.
func (w *World) Start(loops ...func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, loop := range loops {
		all.Go(func() {
			if err := loop(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrClosed) {
				w.T.Errorf("a loop ended: %v", err)
			}
		})
	}
	before := w.end
	w.end = func() {
		cancel()
		all.Wait()
		if before != nil {
			before()
		}
	}
}

// Stop ends the loops.
func (w *World) Stop() {
	if w.end != nil {
		w.end()
		w.end = nil
	}
}

// Close ends the loops and closes the data file.
func (w *World) Close() {
	w.T.Helper()
	w.Stop()
	if w.DB != nil {
		expect.No(w.T, w.DB.Close(), "close the data file")
		w.DB = nil
	}
}

// Crash closes the data file first, so that nothing of the loops' end is kept.
func (w *World) Crash() {
	expect.No(w.T, w.DB.Close(), "close the data file")
	w.DB = nil
	w.Stop()
}

// Copy copies the data file as it is, with its key: what is left when the engine
// is killed now.
func (w *World) Copy() (path string) {
	w.T.Helper()
	File(w.T, w.DB)
	path = filepath.Join(w.T.TempDir(), "copy.db")
	for _, end := range []string{"", ".key"} {
		data, err := os.ReadFile(w.Path + end)
		w.No(err)
		w.No(os.WriteFile(path+end, data, 0o600))
	}
	return path
}

// Reopen is a restart.
func (w *World) Reopen() {
	w.T.Helper()
	w.Close()
	w.Open()
}

// No fails the test for an error.
func (w *World) No(err error) {
	w.T.Helper()
	expect.No(w.T, err)
}

// Await waits until ok holds.
func (w *World) Await(what string, ok func() bool) {
	w.T.Helper()
	expect.Await(w.T, what, ok)
}

// Proven checks that a tenant's records are what the audit log says.
func (w *World) Proven(tenant string) {
	w.T.Helper()
	deltas, err := w.Ledger.Reconcile(context.Background(), tenant)
	w.No(err)
	if len(deltas) > 0 {
		w.T.Errorf("the log says otherwise: %+v", deltas)
	}
}
