// Package acp runs agents that speak the Agent Client Protocol, version 1,
// over their standard input and output.
//
// What is asked of the operator's judgement passes the fleet's gate: each
// session/request_permission, and each file or terminal method that we serve.
// An approval is answered allow_once and never allow_always, which would move
// the decision into the agent for good. The protocol's permissions are
// cooperative: a call that an agent did not ask about is recorded as such, and
// a change of the agent's own permission mode is audited.
//
// What an agent says is data. Kinds of updates that this version does not know
// are kept as they came and never guessed; every message is bounded.
//
// An agent is one conversation: its tasks are prompts in one session, which is
// taken up again after a restart where the agent offers that. Its process
// starts with the first prompt and then stays.
package acp

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// Options of NewRuntime. State is where the ids of the agents' conversations are kept, too,
// and must be given.
type Options struct {
	keeper.Local
	// Patience is how long an agent may take to start and to open a session, unless its
	// options say; 0 means 2 min.
	Patience time.Duration
	// Servers lists the MCP servers that an agent's sessions are given, made of this
	// program where the agent runs, "" for its own path here; nil gives none.
	Servers func(a fleet.Agent, program string) ([]acp.McpServer, error)
	// Read are files that those servers are made of, and Ports gives those of the
	// engine's loopback that they use. Nil gives none.
	Read  []string
	Ports func() ([]int, error)
}

// Runtime keeps agents of the Agent Client Protocol.
type Runtime struct {
	Options
	pool pool
}

var (
	_ fleet.Runtime = (*Runtime)(nil)
	_ fleet.Keeper  = (*Runtime)(nil)
)

// NewRuntime returns a runtime whose processes the supervisor owns.
func NewRuntime(sup *cell.Supervisor, opt Options) (_ *Runtime, err error) {
	if opt.State == "" {
		return nil, core.Invalid("state", "", "a directory")
	}
	if opt.State, err = filepath.Abs(opt.State); err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	opt.Cells = sup
	if opt.Local, err = opt.Filled(); err != nil {
		return nil, err
	}
	if opt.Patience <= 0 {
		opt.Patience = 2 * time.Minute
	}
	if opt.Servers == nil {
		opt.Servers = func(fleet.Agent, string) ([]acp.McpServer, error) { return nil, nil }
	}
	r := &Runtime{Options: opt}
	r.pool = pool{r: r, peers: map[string][]*peer{}}
	return r, nil
}

// Check implements fleet.Runtime: the options must be known, the command
// runnable and its directory there.
func (r *Runtime) Check(c fleet.Create) error {
	p, err := r.placeOf(keeper.Planned(c))
	if err != nil || p.Host != "" {
		return err
	}
	return p.Spec.Available()
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
	a := &agent{r: r, rec: rec, place: p, want: wants{mode: p.Mode, model: p.Model}}
	a.Place = &a.place.Place
	if !p.Shared { // a shared process has lines of its own
		if err := a.Record(a.mask, keeper.Overhear(a.Now, a.hear)); err != nil {
			return nil, err
		}
	}
	a.Open(ctx, rec, notify, keeper.Ways{
		Retry: a.retry, Greets: p.recall().Session == "" || rec.Trouble != nil, Anew: func() { a.Keep.Greets = true }, Leave: a.leave,
	})
	return a, nil
}

// Keep implements fleet.Keeper: what is kept for agents that are no more goes.
func (r *Runtime) Keep(_ context.Context, agents []fleet.Agent) error {
	var shared []string
	for _, a := range agents {
		if p, err := r.placeOf(a); err == nil && p.Home != nil {
			shared = append(shared, filepath.Dir(p.Home.Path))
		}
	}
	return home.Keep(r.State, agents, shared...)
}

// pool holds the processes of all agents, by the key of their places.
//
// Lock order: agent.mu, then pool.mu, then peer.mu, then what is below them.
type pool struct {
	r *Runtime

	mu    sync.Mutex
	peers map[string][]*peer
}

// join gives an agent the process of its place, and starts one unless there is
// one that it can use. Who joined must leave.
func (p *pool) join(ctx context.Context, a *agent) (*peer, error) {
	p.mu.Lock()
	var found *peer
	for _, pe := range p.peers[a.place.key] {
		if pe.welcomes(a) {
			found = pe
			break
		}
	}
	if found == nil {
		found = &peer{
			Run: &keeper.Run{Over: make(chan struct{})}, pool: p, place: a.place, ready: make(chan struct{}), members: map[*agent]struct{}{},
			sessions: map[string]*session{}, early: map[string][]item{}, paused: map[*agent]struct{}{},
		}
		p.peers[a.place.key] = append(p.peers[a.place.key], found)
		found.admit(a)
		go found.run()
	} else {
		found.admit(a)
	}
	p.mu.Unlock()
	select {
	case <-found.ready:
	case <-ctx.Done():
		_ = p.leave(context.WithoutCancel(ctx), found, a)
		return nil, keeper.ErrStopped
	}
	if found.failure != nil {
		a.Mu.Lock()
		a.Keep.Said = found.lastLines()
		a.Mu.Unlock()
		_ = p.leave(ctx, found, a)
		return nil, found.failure
	}
	return found, nil
}

// leave gives a process up. It ends with its last agent; leave returns when
// that is done, or with ctx.
func (p *pool) leave(ctx context.Context, pe *peer, a *agent) error {
	p.mu.Lock()
	last, sessions := pe.dismiss(a)
	p.mu.Unlock()
	for _, s := range sessions {
		if has(pe.can.AgentCapabilities.SessionCapabilities.Close) && !last {
			pe.conn.Start(acp.AgentMethodSessionClose, acp.CloseSessionRequest{SessionId: acp.SessionId(s.id)})
		}
		s.close()
	}
	if !last {
		return nil
	}
	pe.end("nobody needs it any more", cell.Grace{Interrupt: -1})
	return pe.gone(ctx)
}

// forget takes a process out that has ended.
func (p *pool) forget(pe *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := pe.place.key
	p.peers[key] = slices.DeleteFunc(p.peers[key], func(o *peer) bool { return o == pe })
	if len(p.peers[key]) == 0 {
		delete(p.peers, key)
	}
}

// gone waits until nothing of a process is left.
func (pe *peer) gone(ctx context.Context) error {
	select {
	case <-pe.Over:
		return pe.stopErr
	case <-ctx.Done():
		return fmt.Errorf("wait for the agent's process to end: %w", ctx.Err())
	}
}

// Sharing names the agents that share the process of a run now, sorted; none
// for the run of one agent alone.
func (r *Runtime) Sharing(run string) (names []string) {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	for _, pe := range r.pool.peers[run] {
		if !pe.place.Shared {
			continue
		}
		pe.mu.Lock()
		for _, a := range pe.agents() {
			names = append(names, a.rec.Name)
		}
		pe.mu.Unlock()
	}
	slices.Sort(names)
	return slices.Compact(names)
}
