package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// Limits of an environment.
const (
	// MaxWorkspaces bounds what one process holds.
	MaxWorkspaces = 1000

	defaultDeadline = 60_000  // ms
	longestDeadline = 600_000 // ms
)

// Options of New.
type Options struct {
	// Open starts a kernel: once at the beginning, and again whenever one is
	// lost.
	Open func(ctx context.Context) (Kernel, error)
	// Dir is where the files of workspaces lie that were not loaded with a
	// directory of their own. Empty refuses files.
	Dir string
	// Journal adds the entry of what changed to each answer, lets an engine load
	// journals, and starts without any workspace. Otherwise there is an empty
	// workspace main at the start.
	Journal bool
	// Tolerance is the chord tolerance in mm of solids that name none; 0 leaves
	// it to the kernel.
	Tolerance float64
	Version   string     // of this program
	Clock     core.Clock // nil means the system's
}

// Env is a set of workspaces and the kernel behind them.
type Env struct {
	options Options
	methods map[string]method

	mu         sync.Mutex // one request at a time, whatever connection it comes by
	bench      *bench
	workspaces map[string]*model.Workspace
	order      []string
	dirs       map[string]*os.Root // by path
	places     map[string]string   // the directory of a workspace, where it has its own
	agents     map[string]*tally
}

// New opens a kernel and makes an environment.
func New(ctx context.Context, o Options) (*Env, error) {
	o.Clock = cmp.Or[core.Clock](o.Clock, core.SystemClock{})
	if err := chord(o.Tolerance); err != nil {
		return nil, err
	}
	e := &Env{
		options: o, methods: methods(), workspaces: map[string]*model.Workspace{},
		dirs: map[string]*os.Root{}, places: map[string]string{}, agents: map[string]*tally{},
	}
	var err error
	if e.bench, err = newBench(ctx, o.Open); err != nil {
		return nil, err
	}
	if !o.Journal {
		w, _, err := model.New(model.Record{ID: model.Main, Name: model.Main, CreatedAt: e.now()}, model.Change{Method: "workspace.create", At: e.now()})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make workspace main: %w", err), e.bench.close())
		}
		e.keep(w)
	}
	return e, nil
}

// Close ends the kernel.
func (e *Env) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	errs := []error{e.bench.close()}
	for _, root := range e.dirs {
		errs = append(errs, root.Close())
	}
	e.dirs = map[string]*os.Root{}
	return errors.Join(errs...)
}

// About tells what the kernel is and can do.
func (e *Env) About() About { return e.bench.about }

func (e *Env) now() string {
	return e.options.Clock.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// keep holds a workspace from now on.
func (e *Env) keep(w *model.Workspace) {
	id := w.Record().ID
	if e.workspaces[id] == nil {
		e.order = append(e.order, id)
	}
	e.workspaces[id] = w
}

func (e *Env) drop(id string) {
	delete(e.workspaces, id)
	delete(e.places, id)
	e.order = slices.DeleteFunc(e.order, func(other string) bool { return other == id })
}

// workspace finds a workspace.
func (e *Env) workspace(field, id string) (*model.Workspace, error) {
	if w := e.workspaces[id]; w != nil {
		return w, nil
	}
	suggestion := "create it first"
	if near := nearest(id, e.order); near != "" {
		suggestion = "did you mean " + near + "?"
	}
	return nil, Refuse(EntityNotFound, field, id, fmt.Sprintf("workspace %v: not found", shown(id)), suggestion)
}

// room refuses one workspace more than there may be.
func (e *Env) room(id string) error {
	if e.workspaces[id] == nil && len(e.workspaces) >= MaxWorkspaces {
		return Refuse(InsufficientMemory, "workspace_id", id, fmt.Sprintf("there are %d workspaces already", MaxWorkspaces), "unload those that are done")
	}
	return nil
}

// refusal maps an error of any layer to what a client is told.
func refusal(err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if known, ok := errors.AsType[*core.Error](err); ok {
		code, ok := map[core.Code]Code{
			core.InvalidInput: InvalidParameter, core.NotFound: EntityNotFound, core.Conflict: WorkspaceConflict, core.Denied: InvalidParameter,
		}[known.Code]
		if own, is := errors.AsType[*Error](Refused(err, code)); ok && is {
			return own
		}
	}
	return internal(err)
}

// commit does a change in the call's workspace.
func (c *call) commit(change model.Change) error {
	return c.commitTo(c.ws, change)
}

func (c *call) commitTo(w *model.Workspace, change model.Change) error {
	if err := c.ctx.Err(); err != nil {
		return ended(c.ctx)
	}
	entry, err := w.Commit(c.signed(change))
	if err != nil {
		return err
	}
	c.entry = &entry
	return nil
}

// signed says by whom and how a change was asked for.
func (c *call) signed(change model.Change) model.Change {
	change.Method, change.Params, change.AgentID, change.At = c.method, c.params, c.AgentID, c.env.now()
	return change
}
