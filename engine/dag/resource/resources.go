// Package resource looks after what agents work on, the resources of their
// record (model 4): it attaches and detaches them, probes them, keeps their
// state and makes it again, and forks an agent together with them.
//
// What is done outside of the record is done by a driver, and as an intent: it
// is recorded before it begins, and what came of it when it is done. Both are
// the controller's, which tries again after a failure or a crash. Only what was
// attached here is ever touched: a record from elsewhere may name any path.
//
// # The state at an event
//
// Of a resource that an agent may write, a state is kept before each of its
// tool calls and at the end of each run, unless nothing has changed. So the
// state at an event is the one kept before it when no call lies between, else
// the one kept after it when no call lies between; of what agents do outside of
// calls nothing is known. A fork says which it got.
//
// # A fork's conversation
//
// The protocols of agents can take up a conversation, or fork it, at its end
// only; none says which of its turns belongs to an event. So a fork's
// conversation is always made again from the record: before its first prompt
// the new agent is given what was said and done up to the event, and told that
// this is a record. It is said wherever the fork is shown: continued from
// record. What an agent knew beside that, such as its reasoning, is not in it.
package resource

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/place"
)

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	DAG     *dag.DAG
	Intents *control.Controller
	Agents  Agents
	// Drivers by the word that a target begins with: files, git, process, ….
	Drivers map[string]Driver
	// Dir is where forks get their directories; "" makes none.
	Dir string
	// Place is where the files are that the drivers keep, and all that they look after.
	Place place.Place
}

// Agents are the agents that have resources and are forked. The engine
// provides them.
type Agents interface {
	// Agent tells of an agent; NOT_FOUND when there is none.
	Agent(ctx context.Context, tenant, name string) (Agent, error)
	// Fork makes the agent of a fork, once for each intent.
	Fork(ctx context.Context, by core.Caller, f Made) error
	// Check says what Fork would refuse.
	Check(ctx context.Context, tenant string, f Made) error
	// Undo removes the agent that an intent made.
	Undo(ctx context.Context, tenant, name, intent string) error
	// Assign gives the agent its first task.
	Assign(ctx context.Context, by core.Caller, name, text, key string) error
}

// Agent is what a fork needs to know of an agent.
type Agent struct {
	Name      string
	Dir       string // where it works; "" is the engine's own directory
	Elsewhere bool   // it works on another machine
	Running   bool   // a process of it is running
	CreatedAt time.Time
	Alone     bool          // each of its tasks is a conversation of its own
	Forked    *fleet.Origin // nil for one that is no fork
}

// FromRecord is how every conversation goes on.
const FromRecord = "record"

// Made asks for the agent of a fork.
type Made struct {
	Name   string
	Dir    string
	Origin fleet.Origin
}

// Resources looks after the resources of every tenant. Its methods may be
// called from any goroutine.
type Resources struct {
	opt Options

	mu      sync.Mutex
	tooSlow map[[2]string]bool // tenant and resource whose states cost too much to keep them at each call
}

// The actions of the intents.
const (
	actSnapshot = "resource.snapshot"
	actRestore  = "resource.restore"
	actReplace  = "resource.replace" // a restore in place
	actFork     = "agent.fork"
)

// New makes the service and registers its actions.
func New(opt Options) (*Resources, error) {
	r := &Resources{opt: opt, tooSlow: map[[2]string]bool{}}
	for action, kind := range map[string]control.Kind{
		actSnapshot: {Effect: snapshotting{r}, Timeout: 10 * time.Minute},
		actRestore:  {Effect: restoring{r}, Timeout: 10 * time.Minute},
		actReplace:  {Effect: restoring{r}, Timeout: 10 * time.Minute, Destructive: true},
		actFork:     {Effect: forking{r}, Timeout: time.Minute},
	} {
		if err := opt.Intents.Register(action, kind); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// driver is what looks after a resource.
func (r *Resources) driver(res *dag.Resource) (Driver, error) {
	name := metadataOf(res).Driver
	d := r.opt.Drivers[name]
	if d == nil {
		return nil, core.Errorf(core.Unavailable, "resource: nothing here looks after %s (driver %q)", res.ID, name).With("field", "resource")
	}
	return d, nil
}

// look finds what a target stands for. One without the word of a driver is a
// path: of a git worktree, or of files.
func (r *Resources) look(ctx context.Context, target string) (dag.Resource, error) {
	word, rest, ok := strings.Cut(target, ":")
	if d := r.opt.Drivers[word]; ok && d != nil {
		return d.Look(ctx, rest)
	}
	if d := r.opt.Drivers["git"]; d != nil {
		res, err := d.Look(ctx, target)
		if err == nil || !errors.Is(err, core.Kind(core.NotFound)) {
			return res, err
		}
	}
	d := r.opt.Drivers["files"]
	if d == nil {
		return dag.Resource{}, core.Invalid("target", target, strings.Join(slices.Sorted(maps.Keys(r.opt.Drivers)), ":…, ")+":…")
	}
	return d.Look(ctx, target)
}

// operators refuses agents what no gate stands before.
func operators(by core.Caller, what string) error {
	if by.Kind == core.Agent {
		return core.Errorf(core.Denied, "%s: agent %s may not; allowed: operators", what, by.Name)
	}
	return nil
}
