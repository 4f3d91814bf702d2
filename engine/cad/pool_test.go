package cad_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// fakePool computes without geometry: workspaces and journals are real, a solid
// is a box of what its parameters say.
type fakePool struct {
	mu      sync.Mutex
	free    *sync.Cond
	most    int // workers at once
	workers []*fakeWorker
	made    int
	calls   []cad.Call
	loads   []cad.Load
	// before and after run around each call; an error ends the worker's process.
	before, after func(ctx context.Context, w *fakeWorker, c cad.Call) error
	unload        error
	// answers are those of methods that the fake does not know.
	answers map[string]func(cad.Call) string
}

func newPool() *fakePool {
	p := &fakePool{most: 2}
	p.free = sync.NewCond(&p.mu)
	return p
}

func (p *fakePool) Kernels() []cad.Kernel {
	return []cad.Kernel{{Name: "embedded"}, {Name: "occt", Why: "FreeCAD is not installed"}}
}

func (p *fakePool) Lease(ctx context.Context, at cad.Site) (cad.Worker, error) {
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock() // not between looking at ctx and waiting
		defer p.mu.Unlock()
		p.free.Broadcast()
	})
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for ctx.Err() == nil {
		var best *fakeWorker
		for _, w := range p.workers {
			if !w.leased && w.tenant == at.Tenant && (best == nil || w.spaces[at.Workspace] != nil) {
				best = w
			}
		}
		if best == nil && len(p.workers) < p.most {
			p.made++
			best = &fakeWorker{pool: p, tenant: at.Tenant, spaces: map[string]*model.Workspace{}, dirs: map[string]string{}}
			p.workers = append(p.workers, best)
		}
		if best != nil {
			best.leased = true
			return best, nil
		}
		p.free.Wait()
	}
	return nil, ctx.Err()
}

func (p *fakePool) on(before, after func(context.Context, *fakeWorker, cad.Call) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.after = before, after
}

// of counts the calls of a method.
func (p *fakePool) of(method string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c.Method == method {
			n++
		}
	}
	return n
}

// fakeWorker is one process.
type fakeWorker struct {
	pool         *fakePool
	tenant       string
	leased, dead bool
	spaces       map[string]*model.Workspace
	dirs         map[string]string
}

var errKilled = errors.New("signal: killed")

func (w *fakeWorker) Release() {
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	w.leased = false
	if w.dead {
		for i, o := range p.workers {
			if o == w {
				p.workers = append(p.workers[:i], p.workers[i+1:]...)
				break
			}
		}
	}
	p.free.Broadcast()
}

func (w *fakeWorker) Seq(id string) int {
	if w.spaces[id] == nil {
		return 0
	}
	return w.spaces[id].Seq()
}

func (w *fakeWorker) Load(_ context.Context, l cad.Load) error {
	w.pool.mu.Lock()
	w.pool.loads = append(w.pool.loads, l)
	w.pool.mu.Unlock()
	w.dirs[l.WorkspaceID] = l.Directory
	if l.From == 1 {
		space, err := model.Load(l.Entries)
		w.spaces[l.WorkspaceID] = space
		return err
	}
	for _, e := range l.Entries {
		if err := w.spaces[l.WorkspaceID].Apply(e); err != nil {
			return err
		}
	}
	return nil
}

func (w *fakeWorker) Unload(_ context.Context, id string) error {
	if w.pool.unload != nil {
		return w.pool.unload
	}
	delete(w.spaces, id)
	return nil
}

func (w *fakeWorker) Call(ctx context.Context, c cad.Call) (cad.Reply, error) {
	p := w.pool
	p.mu.Lock()
	before, after := p.before, p.after
	p.calls = append(p.calls, c)
	p.mu.Unlock()
	if before != nil {
		if err := before(ctx, w, c); err != nil {
			return cad.Reply{}, w.die(err)
		}
	}
	reply, err := w.do(c)
	if err == nil && after != nil {
		if err := after(ctx, w, c); err != nil {
			return cad.Reply{}, w.die(err)
		}
	}
	reply.Elapsed = time.Millisecond
	return reply, err
}

// die ends the process unless it only refuses.
func (w *fakeWorker) die(err error) error {
	var refused *cad.Fault
	w.dead = !errors.As(err, &refused)
	return err
}

func fault(code int, name, field, message string) error {
	return &cad.Fault{Code: code, Name: name, Field: field, Message: message, Suggestion: "give another"}
}

// asked are the parameters that the fake understands.
type asked struct {
	WorkspaceID string   `json:"workspace_id"`
	AgentID     string   `json:"agent_id"`
	EntityID    string   `json:"entity_id"`
	EntityIDs   []string `json:"entity_ids"`
	Source      string   `json:"source_workspace_id"`
	Target      string   `json:"target_workspace_id"`
	Strategy    string   `json:"strategy"`
	Merged      core.Raw `json:"merged_properties"`
	FilePath    string   `json:"file_path"`
	X           float64  `json:"x"`
	Width       float64  `json:"width"`
}

func (w *fakeWorker) do(c cad.Call) (cad.Reply, error) {
	var p asked
	if err := core.DecodeStored(c.Params, &p); err != nil {
		return cad.Reply{}, fault(-32602, "INVALID_PARAMETER", "params", err.Error())
	}
	space := w.spaces[p.WorkspaceID]
	if space == nil {
		return cad.Reply{}, fault(-32001, "ENTITY_NOT_FOUND", "workspace_id", "workspace "+p.WorkspaceID+" is not loaded")
	}
	change := model.Change{Method: c.Method, Params: c.Params, AgentID: p.AgentID, At: "2026-01-02T03:04:05Z"}
	if kind, ok := strings.CutPrefix(c.Method, "entity.create_"); ok {
		if p.Width < 0 {
			return cad.Reply{}, fault(-32603, "INVALID_GEOMETRY", "width", "width: -1 is not allowed")
		}
		id := p.EntityID
		if id == "" {
			id = space.NextID(model.EntityType(kind))
		}
		change.Put = []model.Entity{{ID: id, Type: model.EntityType(kind), Properties: core.MustEncode(map[string]float64{"x": p.X})}}
		return commit(space, change, map[string]string{"entity_id": id})
	}
	switch c.Method {
	case "entity.list":
		_, total := space.Entities(model.Filter{})
		return cad.Reply{Data: core.MustEncode(map[string]int{"total_count": total})}, nil
	case "entity.delete":
		change.Removed = []string{p.EntityID}
		return commit(space, change, map[string]string{"entity_id": p.EntityID})
	case "solid.extrude":
		shape, err := model.NewShape("box", core.MustEncode(map[string]float64{"width": p.Width}), nil, "")
		if err != nil {
			return cad.Reply{}, err
		}
		id := space.NextID(model.Solid)
		change.Shapes = []model.Shape{shape}
		change.Put = []model.Entity{{ID: id, Type: model.Solid, Shape: shape.Hash, Properties: core.Raw(`{"bounding_box":{"max":[1,1,1],"min":[0,0,0]}}`)}}
		return commit(space, change, map[string]string{"entity_id": id})
	case "view.mesh":
		solid, _ := space.Entity(p.EntityIDs[0])
		shape, _ := space.Shape(solid.Shape)
		var size asked
		if err := core.DecodeStored(shape.Params, &size); err != nil {
			return cad.Reply{}, err
		}
		return cad.Reply{Data: core.MustEncode(map[string]any{"solids": []any{map[string]any{
			"entity_id": solid.ID, "vertices": [][3]float64{{0, 0, 0}, {size.Width, 0, 0}, {0, 1, 0}}, "triangles": [][3]int{{0, 1, 2}}, "tolerance": 0.5,
		}}})}, nil
	case "history.undo":
		e, err := space.Undo(change)
		return reply(e, map[string]int{"undone": e.Undoes}, err)
	case "history.redo":
		e, err := space.Redo(change)
		return reply(e, map[string]int{"redone": e.Redoes}, err)
	case "workspace.merge":
		out, err := model.Merge(w.spaces[p.Source], space, apart{})
		return w.settle(space, change, out, err)
	case "workspace.resolve_conflict":
		out, err := model.Resolve(w.spaces[p.Source], space, model.Resolution{EntityID: p.EntityID, Strategy: model.Strategy(p.Strategy), Merged: p.Merged}, apart{})
		return w.settle(space, change, out, err)
	case "file.export":
		if err := os.WriteFile(filepath.Join(w.dirs[p.WorkspaceID], p.FilePath), []byte("solid"), 0o600); err != nil {
			return cad.Reply{}, fault(-32602, "INVALID_PARAMETER", "file_path", err.Error())
		}
		return cad.Reply{Data: core.MustEncode(map[string]string{"file_path": p.FilePath})}, nil
	}
	if answer := w.pool.answers[c.Method]; answer != nil {
		return cad.Reply{Data: core.Raw(answer(c))}, nil
	}
	return cad.Reply{}, fault(-32601, "INVALID_COMMAND", "method", "the fake has no "+c.Method)
}

func (w *fakeWorker) settle(space *model.Workspace, c model.Change, out model.Outcome, err error) (cad.Reply, error) {
	if err != nil {
		return cad.Reply{}, fault(-32007, "WORKSPACE_CONFLICT", "", err.Error())
	}
	data := map[string]any{"merge_result": "success", "entities_added": out.Added, "conflicts": out.Conflicts}
	if out.Change.Empty() {
		return cad.Reply{Data: core.MustEncode(data)}, nil
	}
	o := out.Change
	o.Method, o.Params, o.AgentID, o.At = c.Method, c.Params, c.AgentID, c.At
	return commit(space, o, data)
}

func commit(space *model.Workspace, c model.Change, data any) (cad.Reply, error) {
	e, err := space.Commit(c)
	return reply(e, data, err)
}

func reply(e model.Entry, data any, err error) (cad.Reply, error) {
	if err != nil {
		return cad.Reply{}, fault(-32007, "WORKSPACE_CONFLICT", "", err.Error())
	}
	return cad.Reply{Data: core.MustEncode(data), Entry: &e}, nil
}

// apart is a geometry in which nothing overlaps.
type apart struct{}

func (apart) Overlap(model.Entity, model.Entity) (float64, error) { return 0, nil }
func (apart) Build(model.Shape) (core.Raw, error)                 { return core.Raw(`{}`), nil }
