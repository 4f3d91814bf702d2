package coder

import (
	"context"
	"errors"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// Options of New.
type Options struct {
	// State is the directory of what is kept of each agent's workspace. It
	// must be given; it is made when there is an agent.
	State string
	// Grace is how long an agent may work on after an interrupt until its
	// workspace is started anew; 0 means 3500 ms. It must be idle 5 s after a
	// cancel.
	Grace time.Duration
	// Patience is how long a deployment may be away during a task until that
	// fails; 0 means 2 min.
	Patience time.Duration
}

// Runtime keeps agents in Coder workspaces. It does nothing until it has one.
type Runtime struct {
	opt  Options
	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup // removals under way

	mu       sync.Mutex
	sites    map[string]*shared
	removing map[string]bool // by file
	closed   bool
}

// shared is a site with the number of those who hold it.
type shared struct {
	*site
	holders int
}

var (
	_ fleet.Runtime = (*Runtime)(nil)
	_ fleet.Keeper  = (*Runtime)(nil)
)

// New makes a runtime; Close ends what it does.
func New(opt Options) (*Runtime, error) {
	if opt.State == "" {
		return nil, core.Invalid("state", "", "a directory")
	}
	if opt.Grace <= 0 {
		opt.Grace = 3500 * time.Millisecond
	}
	if opt.Patience <= 0 {
		opt.Patience = 2 * time.Minute
	}
	r := &Runtime{opt: opt, sites: map[string]*shared{}, removing: map[string]bool{}}
	r.life, r.end = context.WithCancel(context.Background())
	return r, nil
}

// Close ends the removals under way; the next runtime goes on with them.
func (r *Runtime) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.end()
	r.work.Wait()
	return nil
}

// Check implements fleet.Runtime. The deployment is asked for its templates and
// roles; one that does not answer within checkLimit refuses nothing.
func (r *Runtime) Check(c fleet.Create) error {
	if err := check(c); err != nil {
		return err
	}
	set, err := readSettings(c.Options)
	if err != nil {
		return err
	}
	if set.Adopt { // a workspace that is there needs no template
		return nil
	}
	site, done, err := r.site(set)
	if err != nil {
		return err
	}
	defer done()
	ctx, stop := context.WithTimeout(context.Background(), checkLimit)
	defer stop()
	// What the deployment can't say now shows when the workspace is made.
	p, preset, err := site.find(ctx, c.Project, set.Template, c.Role)
	if err == nil {
		err = site.fits(ctx, p, preset, set)
	}
	if errors.Is(err, core.Kind(core.InvalidInput)) {
		return err
	}
	return nil
}

// checkLimit is how long a deployment may take to say what templates it has.
const checkLimit = 5 * time.Second

// Open implements fleet.Runtime: the agent gets a workspace if it never had
// one, and is followed. One that is stopped stays so until Restart.
func (r *Runtime) Open(ctx context.Context, rec fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	set, err := readSettings(rec.Options)
	if err != nil {
		return nil, err
	}
	m, err := r.recall(rec)
	if err != nil {
		return nil, err
	}
	if m.Gone {
		return nil, errors.New("its workspace is being deleted")
	}
	site, done, err := r.site(set)
	if err != nil {
		return nil, err
	}
	a := newAgent(r, rec, set, m, site, notify)
	a.leave = done
	a.start(ctx)
	return a, nil
}

// site gives the deployment of these settings, the same for all that share it.
// done gives it back.
func (r *Runtime) site(s settings) (_ *site, done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := s.key()
	sh := r.sites[key]
	if sh == nil {
		made, err := newSite(s)
		if err != nil {
			return nil, nil, err
		}
		sh = &shared{site: made}
		r.sites[key] = sh
	}
	sh.holders++
	return sh.site, sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if sh.holders--; sh.holders == 0 && r.sites[key] == sh {
			delete(r.sites, key)
			sh.http.closeIdle()
		}
	}), nil
}

// Outlasts implements fleet.Outlasting: the work is in the workspaces.
func (*Runtime) Outlasts() bool { return true }
