// Package host runs agents' processes on other machines, behind the system's ssh
// or another command that has a shell there run a script. The program puts itself
// there; its keeper (package hold) holds the processes in cells, as on this
// machine, and goes on with them while the link is away.
//
// What is promised of a run: its input arrives once, in order; its output and its
// end arrive once, whole unless the host had no room for it; pause, resume and
// stop take effect there before they are said to have. When the link is away for
// longer than the host's lease the run is over, there and here: there first.
//
// What a keeper says is bounded and names no one: who a run belongs to is known
// by this side alone.
package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/host"
)

// Options of New.
type Options struct {
	Cells *cell.Supervisor // owns what reaches the hosts
	// Epoch is that of a tenant's owner, higher with each owner; nil is 0 for ever.
	Epoch func(ctx context.Context, tenant string) (uint64, error)
	// Leased says that what runs on hosts does so only until a time that Hold gives, and
	// freezes then: the data may have another owner.
	Leased bool
	// Kept is told of what runs of a former engine have left on a host, before anything is
	// started there. The host says it: whose it is must be looked up. One that it fails for
	// is told again with the next link. Nil is nobody.
	Kept func(ctx context.Context, tenant, host string, k cell.Kept) error
	// Program is what is put on hosts; "" is this program.
	Program string
	// Agents are those that have their place on a host, by name.
	Agents func(tenant, host string) []string
	// Way takes a connection of a worker there that wants to go out, and closes it; it
	// returns when that is over. Nil is no way out for anybody.
	Way func(Way)
	// Over is told of a run, by its name, once all of that name are over with their
	// ways out. Nil is nobody.
	Over func(whose cell.Whose, run string)
	// Files and Held are as in cell.Options; of the rules a host has what a project guards.
	Files func(cell.Whose) (files.Places, error)
	Held  func(cell.Held)
	// Grace is how much longer than a host's lease a run is waited for, for what
	// ends there to have ended; 0 means 10 s.
	Grace time.Duration
}

// Pool has the links to all hosts. It is safe for concurrent use.
type Pool struct {
	opt    Options
	engine string // of this start
	until  atomic.Int64
	named  core.Counts[named] // runs that are not over with their connections

	digest func() (program, error)

	mu     sync.Mutex
	links  map[place]*link
	follow map[place][]*func(error) // copied before it is changed
}

type place struct{ tenant, name string }

var (
	_ host.Driver  = (*Pool)(nil)
	_ keeper.Hosts = (*Pool)(nil)
)

// New makes a pool without links.
func New(opt Options) *Pool {
	if opt.Program == "" {
		opt.Program = "/proc/self/exe"
	}
	if opt.Grace <= 0 {
		opt.Grace = 10 * time.Second
	}
	p := &Pool{opt: opt, engine: rand.Text(), links: map[place]*link{}, follow: map[place][]*func(error){}}
	p.digest = sync.OnceValues(func() (program, error) { return measure(opt.Program) })
	return p
}

// program is what is put on hosts.
type program struct {
	path   string
	digest string // sha256 in hex
	size   int64
}

func measure(path string) (p program, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, fmt.Errorf("read this program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if p.size, err = io.Copy(h, f); err != nil {
		return p, fmt.Errorf("read this program: %w", err)
	}
	p.path, p.digest = path, hex.EncodeToString(h.Sum(nil))
	return p, nil
}

// id names the keeper of a host: by the host's record alone, which each engine has that
// may own the tenant, wherever its records are by then.
func id(h host.Host) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", h.TenantID, h.Name, h.CreatedAt.UnixNano()))
	return hex.EncodeToString(sum[:8])
}

// link is that to a host, nil for none.
func (p *Pool) link(at place) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.links[at]
}

func (p *Pool) Keep(ctx context.Context, h host.Host) error {
	l, gone := p.begin(h)
	defer l.close()
	defer gone()
	return l.run(ctx)
}

// begin has a link to a host, until gone.
func (p *Pool) begin(h host.Host) (l *link, gone func()) {
	at := place{h.TenantID, h.Name}
	l = newLink(p, at, h)
	p.mu.Lock()
	p.links[at] = l
	p.mu.Unlock()
	return l, func() {
		p.mu.Lock()
		delete(p.links, at)
		p.mu.Unlock()
	}
}

func (p *Pool) Link(tenant, name string) host.Link {
	if l := p.link(place{tenant, name}); l != nil {
		return l.state()
	}
	return host.Link{State: host.Unlinked}
}

// away is the error of a host without a link.
func away(name, why string) error {
	return core.Errorf(core.Unavailable, "host %s can't be reached: %s", name, cmp.Or(why, "there is no link")).With("field", "host")
}

func (p *Pool) Start(tenant, name string, spec cell.Spec, o keeper.Hosted) (keeper.Screened, error) {
	l := p.link(place{tenant, name})
	if l == nil {
		return nil, away(name, "")
	}
	run, err := l.start(spec, o)
	if err != nil {
		return nil, err
	}
	return run, nil
}

func (p *Pool) Available(tenant, name string) error {
	l := p.link(place{tenant, name})
	if l == nil {
		return away(name, "")
	}
	return l.available()
}

func (p *Pool) Program(tenant, name string) string {
	l := p.link(place{tenant, name})
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.program
}

func (p *Pool) Follow(tenant, name string, tell func(error)) (stop func()) {
	f, at := &tell, place{tenant, name}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow[at] = append(p.follow[at], f)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.follow[at] = slices.DeleteFunc(slices.Clone(p.follow[at]), func(o *func(error)) bool { return o == f })
		if len(p.follow[at]) == 0 {
			delete(p.follow, at)
		}
	}
}

// tell tells those who follow a link that it is up, or why it is not.
func (p *Pool) tell(at place, why error) {
	p.mu.Lock()
	all := p.follow[at]
	p.mu.Unlock()
	for _, f := range all {
		(*f)(why)
	}
}

// epoch is that of a tenant's owner, as keepers are told.
func (p *Pool) epoch(ctx context.Context, tenant string) (uint64, error) {
	if p.opt.Epoch == nil {
		return 0, nil
	}
	epoch, err := p.opt.Epoch(ctx, tenant)
	if err != nil {
		return 0, fmt.Errorf("read the epoch of the tenant: %w", err)
	}
	return epoch, nil
}

// Hold lets what runs on hosts go on until then, and new processes start there, where
// Options.Leased says that this is needed.
func (p *Pool) Hold(until time.Time) { p.until.Store(int64(wire.SinceBoot() + time.Until(until))) }

// answer is what comes back with a beat.
func (p *Pool) answer(beat uint64) wire.Control {
	f := wire.Control{Beat: beat}
	if p.opt.Leased {
		f.HoldMS = max(0, (time.Duration(p.until.Load()) - wire.SinceBoot()).Milliseconds())
	}
	return f
}

// replaced is told that the host has a newer owner of the tenant, which has ended all
// that ran there.
func (l *link) replaced() {
	l.mu.Lock()
	runs := maps.Clone(l.runs)
	l.mu.Unlock()
	for _, p := range runs {
		p.lose("is lost: its host has a newer owner of the tenant")
	}
}
