//go:build linux

// Package app is the program: it opens an engine with all that it stands on, and
// knows the doors to it.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"swarmdeck/drivers/acp"
	"swarmdeck/drivers/builtin"
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/egress"
	"swarmdeck/drivers/mcp"
	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/cluster"
	"swarmdeck/engine/core"
	"swarmdeck/engine/place"
	"swarmdeck/engine/secret"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/ui/command"
	"swarmdeck/ui/serve"
)

// machine is what all engines of this process share.
type machine struct {
	dir   string // where commands run that name no directory
	clock core.Clock
	fail  func(error) // ends the command because the engine can't go on
	warn  func(error) // tells the operator what does not end the command
	seen  bool        // what warn says is
	here  func()      // is told that the command is carried out here
	conn  net.Conn    // to the process that has the data file, after command.ExitElsewhere
	// login is how conn is used when that is an engine on another machine.
	login *serve.Login
}

// instance holds one engine, and all it stands on.
type instance struct {
	*machine
	failed func(error) // is told that the engine can't go on

	// Of an engine that works on one tenant of a database.
	tenant string
	base   store.Store    // nil for the engine of a data file
	part   *postgres.Part // nil for one that only looks at all tenants
	sealer *audit.Sealer
	lease  *lease
	place  place.Place
	// cluster tells which engines there are; nil beside no other.
	cluster *cluster.Book

	mu   sync.Mutex
	need command.Need
	eng  *engine.Engine
	// running is eng for those who are called while mu is held.
	running atomic.Pointer[engine.Engine]
	sup     *cell.Supervisor                // nil for who only reads
	cells   atomic.Pointer[cell.Supervisor] // sup for those who are called while mu is held
	// gateway is where agents call the engine.
	gateway *mcp.Gateway
	client  *mcp.Client // uses the servers of others; nil for who only reads
	// egress carries the connections of cells; nil for who only reads.
	egress *egress.Proxy
	// shared has the processes that several agents share; nil for who only reads.
	shared  atomic.Pointer[acp.Runtime]
	tracing atomic.Pointer[tracing]
	// closers are called in reverse order.
	closers []func() error
}

// open gives the engine for a need: the one that is open when it is enough,
// else a new one in its place.
func (h *instance) open(ctx context.Context, need command.Need) (*engine.Engine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.eng != nil && (h.base != nil || need.Data == h.need.Data) && (need.Dir == "" || need.Dir == h.need.Dir) &&
		(need.ReadOnly || !h.need.ReadOnly) && (!need.Active || h.need.Active) {
		return h.eng, nil
	}
	if err := h.shut(); err != nil {
		return nil, err
	}
	eng, err := h.build(ctx, need)
	if err != nil {
		return nil, errors.Join(err, h.shut())
	}
	h.eng, h.need = eng, need
	return eng, nil
}

func (h *instance) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shut()
}

func (h *instance) shut() error {
	var errs []error
	for i := len(h.closers) - 1; i >= 0; i-- {
		errs = append(errs, h.closers[i]())
	}
	h.closers, h.eng, h.sup, h.client, h.gateway, h.egress = nil, nil, nil, nil, nil, nil
	h.tracing.Store(nil)
	h.shared.Store(nil)
	h.cells.Store(nil)
	return errors.Join(errs...)
}

// working gives the engine while it is open.
func (h *instance) working() (*engine.Engine, error) {
	if eng := h.running.Load(); eng != nil {
		return eng, nil
	}
	return nil, core.Errorf(core.Unavailable, "the engine is not open")
}

// Of implements command.Engines: the one engine has all tenants.
func (h *instance) Of(context.Context, string) (*engine.Engine, error) { return h.working() }

func (h *instance) All() []*engine.Engine {
	if eng, err := h.working(); err == nil {
		return []*engine.Engine{eng}
	}
	return nil
}

// beside is the directory beside the data file of all that belongs to the engine and is in
// no store; each tenant's on a database.
func (h *instance) beside(data string) string { return filepath.Join(data+".run", h.tenant) }

// stands gives the store that the engine stands on, and what seals its commits. The key
// is made only once the data file has proved usable; nothing is committed before that.
func (h *instance) stands(ctx context.Context, need command.Need) (store.Store, *audit.Sealer, error) {
	switch {
	case h.part != nil:
		return h.part, h.sealer, nil
	case h.base != nil:
		return h.base, h.sealer, nil
	}
	var sealer *audit.Sealer
	db, err := h.openStore(ctx, need, func() (store.Store, error) {
		return store.Open(need.Data, store.Options{ReadOnly: need.ReadOnly, OnFull: h.full, Seal: func(tx store.Tx) error { return sealer.Seal(tx) }})
	})
	if err != nil {
		return nil, nil, err
	}
	h.here()
	h.closers = append(h.closers, db.Close)
	sealer, err = openSealer(need, audit.OpenSealer)
	return db, sealer, err
}

// build opens the data file and makes an engine over it; what it opened is
// among the closers even when it fails.
func (h *instance) build(ctx context.Context, need command.Need) (*engine.Engine, error) {
	opt := engine.Options{
		Clock: h.clock, ReadOnly: need.ReadOnly, Place: h.place, Cluster: h.clusterIn(need),
		SecretKey: need.Data + ".secrets.key", Spill: need.Data + ".run/spill", Base: h.beside(need.Data),
	}
	var err error
	if opt.Store, opt.Sealer, err = h.stands(ctx, need); err != nil {
		return nil, err
	}
	if opt.Stuck, err = stuckLimits(os.Getenv); err != nil {
		return nil, err
	}
	if opt.Slots, err = slotsFrom(need.Slots, os.Getenv); err != nil {
		return nil, err
	}
	if opt.Deadline, err = deadlineFrom(need.Deadline, os.Getenv); err != nil {
		return nil, err
	}
	var values atomic.Pointer[secret.Secrets]
	log, end, err := logger(need.Log, &values)
	if err != nil {
		return nil, err
	}
	h.closers = append(h.closers, end)
	opt.Log = log
	var post builtin.Post
	var secrets secret.Late
	if err := h.drivers(need, &opt, &post, secrets.Resolve); err != nil {
		return nil, err
	}
	eng, err := engine.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	post.Open(eng.Bus, eng.Audit)
	secrets.Open(eng.Secrets)
	values.Store(eng.Secrets)
	if h.client != nil {
		h.client.Open(eng.Tools, eng.Trace, eng.Fleet)
	}
	h.running.Store(eng)
	h.closers = append(h.closers, func() error { h.running.Store(nil); return eng.Close() })
	if err := eng.KeyFaults(ctx); err != nil && !need.NoWait { // completion shows nothing
		eng.Health.Report("", "audit", "", err)
		h.warn(err)
	}
	h.missing(ctx, eng)
	if h.egress != nil {
		h.egress.Open(eng.Egress)
		h.closers = append(h.closers, h.egress.Close) // before the engine, which writes the sums down
	}
	if need.Active {
		if err := h.trace(ctx, need, eng); err != nil {
			return nil, err
		}
		h.gateway.Open(eng)
		h.closers = append(h.closers, h.gateway.Close, h.start(ctx, need, eng))
		if h.base == nil {
			keep := core.HeapFloor()
			h.closers = append(h.closers, func() error { keep(); return nil }, h.listen(need.Data))
		}
	}
	return eng, nil
}

// onHost are the agents of the engine that have their place on a host.
func (h *instance) onHost(tenant, name string) []string {
	if eng := h.running.Load(); eng != nil {
		return eng.OnHost(tenant, name)
	}
	return nil
}

// full tells the engine that the disk is full, and no longer is.
func (h *instance) full(full *store.FullError) {
	if eng := h.running.Load(); eng != nil {
		eng.StorageFull(full)
	}
}

// openSealer loads the key that signs the audit log, beside the data file. A
// reader does without one rather than make it.
func openSealer(need command.Need, open func(path string) (*audit.Sealer, error)) (*audit.Sealer, error) {
	path := need.Data + ".key"
	if need.ReadOnly {
		if _, err := os.Stat(path); err != nil {
			return nil, nil
		}
	}
	sealer, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: open its signing key: %w", store.ErrUnusable, err)
	}
	return sealer, nil
}

// start runs the engine until the returned function stops it. The run ends
// in order at close, not with the command's context; one that ends by itself
// ends the command. What a former engine left running is ended first, beside
// what the door does meanwhile: it takes longer the more processes there are.
func (h *instance) start(ctx context.Context, need command.Need, eng *engine.Engine) func() error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	sup := h.sup
	run := func() error {
		if _, err := sup.Sweep(ctx); err != nil {
			return fmt.Errorf("end what a former engine left running: %w", err)
		}
		// Before any of its tasks is tried again.
		eng.Health.Report("", "cells", "what a former engine's runs left", sup.Collect(func(k cell.Kept) error { return takeOver(ctx, eng, k) }))
		return eng.Run(ctx)
	}
	go func() {
		defer close(done)
		if err := run(); err != nil && ctx.Err() == nil {
			h.failed(err)
		}
	}()
	return func() error {
		cancel()
		<-done
		return nil
	}
}
