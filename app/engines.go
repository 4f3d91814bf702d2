//go:build linux

package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"swarmdeck/drivers/origin"
	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/cluster"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/place"
	"swarmdeck/store"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/socket"
)

// engines are those of this process. A data file has one, which has all its tenants.
// A database has one for each tenant that is worked on here, as other processes have
// the others: a tenant comes and goes with its engine.
type engines struct {
	*machine
	file    *instance // of a data file
	peers   peers
	retakes retakes
	given   given
	cluster *cluster.Book // of a database

	// opening is written to while the database is opened or closed, and read while the
	// engine of a tenant is, for which it is that tenant's turn.
	opening sync.RWMutex
	sealer  *audit.Sealer
	place   place.Place
	signing signing
	end     []func() error // closes what serves all engines, in reverse order

	mu        sync.Mutex
	at        command.Need
	base      *onDatabase          // nil while no database is open
	instances map[string]*instance // by tenant; that of "" works on none
	leases    map[string]*lease
	named     map[string]bool  // tenants that the command of this process is about
	turns     map[string]*turn // by tenant, of those that somebody opens or closes
	drops     sync.WaitGroup
}

func newEngines(p *machine) *engines {
	d := &engines{machine: p, file: &instance{machine: p, failed: func(why error) { p.fail(stopped(why)) }}, instances: map[string]*instance{}, leases: map[string]*lease{}, named: map[string]bool{}, turns: map[string]*turn{}}
	d.peers.d, d.cluster = d, cluster.New(d.look)
	return d
}

// open gives the engine for a need of this process's command.
func (d *engines) open(ctx context.Context, need command.Need) (*engine.Engine, error) {
	if command.DatabaseIn(need.Data) == "" {
		return d.file.open(ctx, need)
	}
	return d.engine(ctx, need, true)
}

// openFor gives the engine for a need of another process's command.
func (d *engines) openFor(ctx context.Context, need command.Need) (*engine.Engine, error) {
	d.mu.Lock()
	at, base, h := d.at, d.base, d.instances[need.Tenant]
	d.mu.Unlock()
	switch {
	case base == nil:
		return d.file.working()
	case h != nil && need.Tenant != "":
		if eng, err := h.working(); err == nil {
			return eng, nil
		}
	}
	at.Tenant, at.ReadOnly, at.NoWait, at.Shared, at.Alone = need.Tenant, false, need.NoWait, need.Shared, false
	return d.engine(ctx, at, false)
}

func (d *engines) Of(ctx context.Context, tenant string) (*engine.Engine, error) {
	return d.openFor(ctx, command.Need{Tenant: tenant})
}

func (d *engines) All() (all []*engine.Engine) {
	for _, h := range d.all() {
		if eng, err := h.working(); err == nil {
			all = append(all, eng)
		}
	}
	return all
}

// all are the instances, in the order of their tenants.
func (d *engines) all() []*instance {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.base == nil {
		return []*instance{d.file}
	}
	var all []*instance
	for _, tenant := range slices.Sorted(maps.Keys(d.instances)) {
		all = append(all, d.instances[tenant])
	}
	return all
}

// takenError is that another engine has a tenant.
type takenError struct {
	error
	tenant string
}

func (e takenError) Unwrap() error { return e.error }

// engine gives the engine for a need on a database. A tenant that another engine has is
// waited for, until its lease would have run out.
func (d *engines) engine(ctx context.Context, need command.Need, mine bool) (*engine.Engine, error) {
	wait := command.OtherPatience
	if need.NoWait {
		wait = 0
	}
	for end := time.Now().Add(wait); ; {
		eng, err := d.try(ctx, need, mine)
		var taken takenError
		if !errors.As(err, &taken) || !time.Now().Before(end) {
			return eng, err
		}
		if !need.NoWait && !need.Alone {
			owner, here, unknown := d.peers.owner(ctx, taken.tenant)
			switch {
			case unknown != nil && !mine:
				return nil, unknown
			case unknown != nil && need.Watch:
				return nil, err
			case unknown != nil || here:
			case mine:
				if err := d.peers.reach(ctx, need.Data, owner, taken.tenant); err == nil {
					return nil, &command.ExitError{Code: command.ExitElsewhere}
				}
			default:
				return nil, &socket.OtherEngineError{Tenant: taken.tenant}
			}
		}
		if core.Within(ctx.Done(), lockPoll) {
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

func (d *engines) try(ctx context.Context, need command.Need, mine bool) (*engine.Engine, error) {
	if mine {
		d.opening.Lock()
		err := d.enter(ctx, need)
		d.opening.Unlock()
		if err != nil {
			return nil, err
		}
	} else if err := ctx.Err(); err != nil {
		return nil, err
	} else {
		ctx = context.WithoutCancel(ctx) // who asked first may go; the engine is for those after them too
	}
	if need.Tenant == "" && !need.Shared {
		only, err := d.only(ctx)
		if err != nil {
			return nil, err
		}
		need.Tenant = only
	}
	eng, err := d.engineOf(ctx, need, mine)
	if need.Tenant != "" && (errors.Is(err, store.ErrNoTenant) || errors.As(err, new(*store.AwayError))) {
		need.Tenant = "" // the one that works on none, whose commands say so
		return d.engineOf(ctx, need, mine)
	}
	return eng, err
}

// enter opens the database, unless it is open in the way that is needed. The caller
// holds opening.
func (d *engines) enter(ctx context.Context, need command.Need) error {
	if d.base != nil && (need.Data != d.at.Data || d.at.ReadOnly != need.ReadOnly && (d.at.ReadOnly || need.Watch)) {
		if err := d.shut(); err != nil {
			return err
		}
	}
	if d.base == nil {
		st, err := d.openStore(ctx, need, func() (store.Store, error) { return d.openDatabase(ctx, need) })
		if err != nil {
			return err
		}
		d.here()
		base := st.(onDatabase)
		if d.sealer, err = openSealer(need, audit.OpenShared); err != nil {
			return errors.Join(err, base.Close())
		}
		if d.place, err = placeOf(need); err != nil {
			return errors.Join(err, base.Close())
		}
		d.mu.Lock()
		d.base, d.at = &base, need
		d.at.Active = false
		d.mu.Unlock()
		if need.ReadOnly && need.Watch {
			d.end = append(d.end, d.follow(ctx))
		} else if need.ReadOnly {
			d.end = append(d.end, d.lookOn(ctx))
		}
	}
	if need.Active && !d.at.Active {
		d.mu.Lock()
		d.at = need
		d.mu.Unlock()
		return d.begin(ctx, need)
	}
	return nil
}

// begin has this process share the tenants with the others, and lets this user's other
// processes in.
func (d *engines) begin(ctx context.Context, need command.Need) error {
	if err := d.base.Join(ctx, d.self()); err != nil {
		return err
	}
	keep := core.HeapFloor()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.share(ctx)
	}()
	d.end = append(d.end, func() error {
		keep()
		cancel()
		<-done
		return nil
	}, d.listen(need.Data))
	return nil
}

// stopped ends the command whose engine can't go on.
func stopped(why error) error {
	code := command.ExitFailed
	if store.IsFault(why) {
		code = command.ExitStore
	}
	return &command.ExitError{Code: code, Err: fmt.Errorf("the engine stopped: %w", why)}
}

// find tells whose a process of this machine is.
func (d *engines) find(pid int, alive func() bool) operator.Origin {
	found := operator.Origin{Kind: operator.Person}
	for _, h := range d.all() {
		if sup := h.cells.Load(); sup != nil && found.Kind == operator.Person {
			found = origin.Find(sup, pid, alive)
		}
	}
	return found
}

// troubles are what is wrong in all engines here.
func (d *engines) troubles(ctx context.Context, _ string) (all []health.Trouble, err error) {
	var errs []error
	for _, eng := range d.All() {
		found, err := inspected(ctx, eng)
		all, errs = append(all, found...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// ready says why no work can be taken here: an engine is closed, its disk is full, or
// the database does not answer.
func (d *engines) ready(ctx context.Context) error {
	d.mu.Lock()
	base := d.base
	d.mu.Unlock()
	if base != nil {
		_, _, err := base.Engines(ctx)
		return err
	}
	eng, err := d.file.working()
	if err != nil {
		return err
	}
	if full := eng.Audit.Room().Full(); full != nil {
		return full
	}
	return nil
}

// tracing is how the engines here tell of their work.
func (d *engines) tracing() (all tracings) {
	for _, h := range d.all() {
		all = append(all, h.tracing.Load())
	}
	return all
}

func (d *engines) close() error {
	err := d.file.close()
	d.opening.Lock()
	err = errors.Join(err, d.shut())
	d.opening.Unlock()
	d.drops.Wait()
	return err
}

// stuck is why the state of the engines here can't be reached or written, and since when.
func (d *engines) stuck() (since time.Time, why error) {
	d.mu.Lock()
	base := d.base
	d.mu.Unlock()
	if base != nil {
		return base.Stuck()
	}
	return d.file.stuck()
}

func (h *instance) stuck() (since time.Time, why error) {
	if eng, err := h.working(); err == nil {
		if full := eng.Audit.Room().Full(); full != nil {
			return eng.Audit.Room().Outage().From, full
		}
	}
	return time.Time{}, nil
}

// How long the end of this process waits for what can't be written: a moment where its
// line failed of that, else as long as agents need to stop.
const (
	endPatience  = 2 * time.Second
	stopPatience = 10 * time.Second
)

// leaves closes all, unless that takes too long while the state can't be written: what is left
// undone then is as after a crash.
func (d *engines) leaves(failed bool) error {
	patience := stopPatience
	if failed {
		patience = endPatience
	}
	done := make(chan error, 1)
	go func() { done <- d.close() }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			if _, why := d.stuck(); why != nil {
				if failed { // and said so
					return nil
				}
				return why
			}
		}
	}
}

// shut closes all engines on a database, and it. The caller holds opening.
func (d *engines) shut() error {
	if d.base == nil {
		return nil
	}
	d.opening.Unlock() // who shares or serves may wait for it
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	_ = d.base.Drain(ctx) // else others wait for some of its tenants until it is gone
	cancel()
	for _, end := range slices.Backward(d.end) {
		errs = append(errs, end())
	}
	d.opening.Lock()
	d.end = nil
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, h := range d.all() {
		all.Go(func() {
			err := d.leave(h, "")
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	all.Wait()
	errs = append(errs, d.base.Close())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.base, d.at, d.named = nil, command.Need{}, map[string]bool{}
	return errors.Join(errs...)
}
