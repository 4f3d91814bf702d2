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
