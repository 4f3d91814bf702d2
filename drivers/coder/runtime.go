// Package coder keeps agents in workspaces of a Coder deployment.
//
// An agent of this runtime is a workspace. Its project is a template with a
// display name and the parameters ai_prompt and system_prompt, its role one of
// that template's presets. The program that works in it is reached through
// the deployment's app proxy, where it serves agentapi; what differs between a
// plain workspace and one that belongs to a Task is behind the backend.
//
// What an agent is comes from streams: one for each workspace, one for each
// conversation, and one of the whole owner's that says when to look again. A slow read once a minute is all
// the polling there is. The deployment is never needed to list or show an
// agent, and one that does not answer makes its agents offline until it does.
//
// The token is read from the environment or a file whenever it is needed. It
// is in no argument, record or log, and leaves for no other host than the one
// that the options name.
//
// The client, codersdk, imports parts of Coder's server, and these much that
// only a server needs. The modules below unused declare what of that has to
// compile and define next to nothing, so that it is not in the program.
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
