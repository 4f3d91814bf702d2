package acp

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/secret"
)

// Options of NewRuntime.
type Options struct {
	// Dir is where an agent without a directory works, and what relative ones
	// start from. "" is the engine's working directory.
	Dir string
	// Own are the engine's own files, which are opened for no agent.
	Own *safeopen.Own
	// State is the directory for the agents' homes and the ids of their
	// conversations. It must be given.
	State string
	// Limits of every agent's processes; the zero value means
	// cell.DefaultLimits.
	Limits cell.Limits
	// Grace is how long an interrupted prompt may take until its process is
	// ended; 0 means 3 s. An agent must be idle within 5 s of a cancel.
	Grace time.Duration
	// Patience is how long an agent may take to start and to open a session, unless its
	// options say; 0 means 2 min.
	Patience time.Duration
	// Models records what agents say to their models; nil refuses agents that
	// ask for it.
	Models *modelproxy.Proxy
	// Pins holds the commands that agents have run here to the files that were
	// judged; nil holds them to none.
	Pins *pin.Keeper
	// Secrets gives agents what their environment refers to; nil knows none.
	Secrets secret.Resolver
	// Servers lists the MCP servers that an agent's sessions are given, made of this
	// program where the agent runs, "" for its own path here; nil gives none.
	Servers func(a fleet.Agent, program string) ([]acp.McpServer, error)
	// Read are files that those servers are made of, and Reach gives the ports of
	// the engine's loopback that they use. Nil gives none.
	Read  []string
	Reach func() ([]int, error)
	// Hosts run agents that have their place on another machine; nil refuses them.
	Hosts keeper.Hosts
}

// Runtime keeps agents of the Agent Client Protocol.
type Runtime struct {
	sup  *cell.Supervisor
	opt  Options
	pool pool
}

var (
	_ fleet.Runtime = (*Runtime)(nil)
	_ fleet.Keeper  = (*Runtime)(nil)
)

// NewRuntime returns a runtime whose processes the supervisor owns.
func NewRuntime(sup *cell.Supervisor, opt Options) (*Runtime, error) {
	if opt.State == "" {
		return nil, core.Invalid("state", "", "a directory")
	}
	for _, dir := range []*string{&opt.Dir, &opt.State} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return nil, fmt.Errorf("find the working directory: %w", err)
		}
		*dir = abs
	}
	if opt.Limits == (cell.Limits{}) {
		opt.Limits = cell.DefaultLimits()
	}
	if opt.Grace <= 0 {
		opt.Grace = 3 * time.Second
	}
	if opt.Patience <= 0 {
		opt.Patience = 2 * time.Minute
	}
	if opt.Servers == nil {
		opt.Servers = func(fleet.Agent, string) ([]acp.McpServer, error) { return nil, nil }
	}
	if opt.Secrets == nil {
		opt.Secrets = secret.Plain
	}
	r := &Runtime{sup: sup, opt: opt}
	r.pool = pool{r: r, peers: map[string][]*peer{}}
	return r, nil
}

// Check implements fleet.Runtime: the options must be known, the command
// runnable and its directory there.
func (r *Runtime) Check(c fleet.Create) error {
	p, err := r.place("t_check", c.Name, c.Role, c.Host, c.Command, c.Env, c.Dir, c.Options, c.Profile)
	if err != nil || p.there != nil {
		return err
	}
	return p.spec.Available()
}

// Open implements fleet.Runtime. The agent is idle once it has answered a greeting and
// opened a session in its mode; one that did so before is taken at its word, and nothing
// runs before its next prompt. Notify is called
// in order, must not block and must not call the handle. When ctx ends the
// agent is closed.
func (r *Runtime) Open(ctx context.Context, rec fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	p, err := r.placeOf(rec)
	if err != nil {
		return nil, err
	}
	a := &agent{
		r: r, rec: rec, place: p, want: wants{mode: p.Mode, model: p.Model},
	}
	if len(p.models) > 0 && !p.Shared { // a shared process has lines of its own
		if a.place.lines, err = r.opt.Models.Open(p.models, p.spec.Env, keeper.Masked(a.mask, keeper.Overhear(a.now, a.hear))); err != nil {
			return nil, err
		}
		a.place.spec.Env = a.place.lines.Environ(p.spec.Env)
		a.place.spec.Wall.Reach = a.place.lines.Ports()
	}
	a.keep = keeper.New(ctx, &a.mu, rec, notify, a.pid, a.retry)
	if p.there == nil {
		a.keep.Depends = func() (string, []string) { return p.spec.Program(), p.house().Logins() }
	}
	a.mu.Lock()
	a.keep.Greets = p.recall().Session == "" || rec.Trouble != nil
	a.keep.Check(p.machine().available())
	a.mu.Unlock()
	if rec.Host != "" {
		a.unfollow = r.opt.Hosts.Follow(rec.TenantID, rec.Host, func(why error) { go a.linked(why) })
	}
	a.unhook = context.AfterFunc(ctx, func() { _ = a.Close() })
	return a, nil
}
