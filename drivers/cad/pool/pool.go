// Package pool runs the processes that compute geometry for the engine, each a
// `cad env --journal` behind JSON-RPC on its standard input and output.
//
// What it promises:
//   - a process serves one tenant with one kernel, and one lease at a time;
//   - a workspace goes where it is loaded already, if that process is free;
//   - no more processes run than there are processors;
//   - one that nobody needed for a while is ended, and one that grew too large,
//     that does not answer, or that spoke nonsense is ended and replaced: all it
//     knows can be loaded again;
//   - with the engine, or with the pool's Close, all of them end.
package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
)

// Kernel is a kernel that a pool's processes can be started with.
type Kernel struct {
	Name string
	// Find reports why the kernel can't be used here. Without it, it can.
	Find func(ctx context.Context) error
	// Extra is what its processes may write besides, and more of their environment.
	Extra func() (write []string, env map[string]string)
}

// Options of New. Zero fields have the defaults that they name.
type Options struct {
	Supervisor *cell.Supervisor
	// Command starts a process; --kernel NAME is added.
	Command []string
	Env     map[string]string
	Dir     string // absolute, where processes start; / unless given
	// Files is an absolute directory that holds one for each tenant, which the
	// tenant's processes may write; "" is none. They write the directories of
	// leased sites too, and see nothing else of anybody's.
	Files string
	// Kernels that can be asked for, the default first; embedded alone unless
	// given.
	Kernels []Kernel

	Max   int           // processes that may run at once; one per processor: more would only take memory
	Idle  time.Duration // before a process that nobody needs is ended; 2 minutes
	Start time.Duration // before a process that does not greet is given up; 20 seconds
	Grace time.Duration // between asking for the end of a call and killing the process; 2 seconds
	Held  int           // workspaces that a process keeps; the one not needed the longest is unloaded first; 32

	// Resident is how many bytes of memory a process may hold on to between two
	// leases: above it, it is replaced, though not before it has served 16 leases,
	// or what is large by nature would be built again each time; 1 GiB. Limits
	// bound what it may ask of the system at any time; see usualLimits.
	Resident uint64
	Limits   cell.Limits
}

// leastLeases is how many a process serves before it can be too large.
const leastLeases = 16

// usualLimits keep one operation from taking the machine's memory. A process
// that has just begun reserves 1.7 GiB of address space and holds 30 MiB; one
// with a hundred thousand facets 200 MiB.
var usualLimits = cell.Limits{Memory: 8 << 30, Files: 1024, Size: 4 << 30}

// Pool implements cad.Pool. It is safe for concurrent use.
type Pool struct {
	opt Options

	mu      sync.Mutex
	closed  bool
	workers []*worker // that run, start or end: all that take a place
	waiting []*want   // the first to be served first
	kernels []*finding
	places  map[string]places // by tenant
	wg      sync.WaitGroup    // lives of workers
}

var _ cad.Pool = (*Pool)(nil)

// New makes a pool. It starts nothing before a lease needs it.
func New(o Options) *Pool {
	o.Dir = cmp.Or(o.Dir, "/")
	o.Max = cmp.Or(o.Max, runtime.NumCPU())
	o.Idle = cmp.Or(o.Idle, 2*time.Minute)
	o.Start = cmp.Or(o.Start, 20*time.Second)
	o.Grace = cmp.Or(o.Grace, 2*time.Second)
	o.Held = cmp.Or(o.Held, 32)
	o.Resident = cmp.Or(o.Resident, 1<<30)
	o.Limits = cmp.Or(o.Limits, usualLimits)
	if len(o.Kernels) == 0 {
		o.Kernels = []Kernel{{Name: "embedded"}}
	}
	kernels := core.Map(o.Kernels, func(k Kernel) *finding { return &finding{Kernel: k} })
	return &Pool{opt: o, kernels: kernels, places: map[string]places{}}
}

// want is a lease that waits for a place.
type want struct {
	site  cad.Site
	there os.FileInfo  // its directory, nil where every worker of its tenant reaches it
	given chan *worker // one slot
}

func (p *Pool) Lease(ctx context.Context, at cad.Site) (cad.Worker, error) {
	at.Kernel = cmp.Or(at.Kernel, p.kernels[0].Name)
	if err := p.find(ctx, at.Kernel); err != nil {
		return nil, err
	}
	there, err := p.own(at)
	if err != nil {
		return nil, err
	}
	for {
		w, err := p.place(ctx, at, there)
		if err != nil {
			return nil, err
		}
		fresh, err := w.begin(ctx, p)
		if err == nil {
			return &lease{pool: p, w: w}, nil
		}
		p.release(w)
		if fresh || ctx.Err() != nil {
			return nil, err
		}
	}
}

// place waits for a worker, which may have to be started yet.
func (p *Pool) place(ctx context.Context, at cad.Site, there os.FileInfo) (*worker, error) {
	wish := &want{site: at, there: there, given: make(chan *worker, 1)}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	p.waiting = append(p.waiting, wish)
	p.serve()
	p.mu.Unlock()
	select {
	case w := <-wish.given:
		if w == nil {
			return nil, errClosed
		}
		return w, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.waiting = slices.DeleteFunc(p.waiting, func(o *want) bool { return o == wish })
	p.mu.Unlock()
	select {
	case w := <-wish.given: // it came in the same moment
		if w != nil {
			p.release(w)
		}
	default:
	}
	return nil, fmt.Errorf("wait for a CAD worker: %w", context.Cause(ctx))
}

var errClosed = core.Errorf(core.Unavailable, "the CAD workers are being ended")

// serve gives places to those who wait, in order, as far as there are some. One
// who can't be served yet does not hold up those behind who can: they take
// nothing that it could use. p.mu is held.
func (p *Pool) serve() {
	p.waiting = slices.DeleteFunc(p.waiting, func(o *want) bool {
		w := p.choose(o.site, o.there)
		if w == nil {
			return false
		}
		w.state = leased
		w.stopClock()
		o.given <- w
		return true
	})
}

// choose finds a place for a site: a free worker that has its workspace, else
// any free one of its tenant and kernel that reaches its directory, else a new one, where there is room or
// where a free worker of others can make some.
func (p *Pool) choose(at cad.Site, there os.FileInfo) *worker {
	var best, other *worker
	room := len(p.workers) < p.opt.Max
	for _, w := range p.workers {
		if w.state == leaving {
			room = true // soon, and then all are served again
		}
		if w.state != idle {
			continue
		}
		if w.tenant != at.Tenant || w.kernel != at.Kernel || !w.places.has(at.Directory, there) {
			if other == nil || w.since.Before(other.since) {
				other = w
			}
			continue
		}
		if best == nil || w.suits(best, at.Workspace) {
			best = w
		}
	}
	if best != nil {
		return best
	}
	if !room && other != nil {
		p.end(other) // all are served again when it has ended
	}
	if len(p.workers) >= p.opt.Max {
		return nil
	}
	w := &worker{
		tenant: at.Tenant, kernel: at.Kernel, seqs: map[string]int{}, used: map[string]time.Time{},
		heard: make(chan struct{}), ended: make(chan struct{}),
	}
	w.places = maps.Clone(p.places[at.Tenant])
	p.workers = append(p.workers, w)
	p.wg.Add(1)
	return w
}

// release takes a worker back.
func (p *Pool) release(w *worker) {
	w.leases++
	large := w.leases >= leastLeases && w.resident() > p.opt.Resident
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.state != leased { // it has ended
		return
	}
	if w.proc == nil { // it never began
		p.drop(w)
		p.wg.Done()
		return
	}
	w.state, w.since = idle, time.Now()
	if large || w.lost() || p.closed {
		p.end(w)
	} else {
		w.clock = time.AfterFunc(p.opt.Idle, func() { p.expire(w) })
	}
	p.serve()
}

// expire ends a worker that nobody needed for a while.
func (p *Pool) expire(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.state == idle && time.Since(w.since) >= p.opt.Idle {
		p.end(w)
	}
}

// end begins to end a worker; p.mu is held.
func (p *Pool) end(w *worker) {
	w.stopClock()
	w.state = leaving
	w.ask()
}

// drop takes a worker out that is no more, and gives its place away; p.mu is
// held.
func (p *Pool) drop(w *worker) {
	w.stopClock()
	w.state = leaving
	p.workers = slices.DeleteFunc(p.workers, func(o *worker) bool { return o == w })
	p.serve()
}

// Running tells how many processes there are, and how many of them are leased.
func (p *Pool) Running() (all, busy int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		if w.state == leased {
			busy++
		}
	}
	return len(p.workers), busy
}

// Close ends all processes, also those that are leased, and waits for them.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	for _, wish := range p.waiting {
		wish.given <- nil
	}
	p.waiting = nil
	for _, w := range p.workers {
		w.stopClock()
		w.ask()
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("CAD workers are still ending"), context.Cause(ctx))
	}
}
