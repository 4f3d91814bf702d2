package cad

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// Surface is how a solid looks.
type Surface struct {
	EntityID string
	Mesh     *mesh.Mesh
}

// Bounds of what is looked at.
const (
	maxSurfaces  = 100
	finestLook   = 0.01 // mm
	coarsestLook = 100  // mm
	lookParts    = 400  // of the box's longest side: finer is not seen on a screen
	coarserBy    = 8
)

// Surfaces are the surfaces of solids for a screen, in the order of their ids:
// of those named, or of the first 100 in the workspace; more tells how many are
// left out then. A worker facets those that were not looked at lately, as finely
// as a screen can show. It changes nothing, so neither a role nor a rule is
// asked. The meshes are shared: they must not be modified.
func (c *modelling) Surfaces(ctx context.Context, tenant, workspace string, ids ...string) (all []Surface, more int, err error) {
	by := reader(tenant)
	space, err := c.space(ctx, by, workspace)
	if err != nil {
		return nil, 0, err
	}
	if all, _, more, err = c.lately(ctx, space, ids); err != nil || !slices.ContainsFunc(all, unseen) {
		return all, more, err
	}
	if c.opt.Pool == nil {
		return nil, 0, core.Errorf(core.Unavailable, "nothing here computes geometry: this engine has no CAD environment")
	}
	leave, err := c.of(tenant).turns.take(ctx, []string{workspace})
	if err != nil {
		return nil, 0, context.Cause(ctx)
	}
	defer leave()
	all, solids, more, err := c.lately(ctx, space, ids) // as they are now that nobody changes them
	if err != nil {
		return nil, 0, err
	}
	worker, err := c.lease(ctx, by, Site{Tenant: tenant, Workspace: workspace, Kernel: space.Kernel}, false, workspace)
	if err != nil {
		return nil, 0, fmt.Errorf("look at workspace %s: %w", workspace, err)
	}
	defer worker.Release()
	for i := range all {
		if !unseen(all[i]) {
			continue
		}
		e := &solids[i]
		if all[i], err = lookAt(ctx, worker, e); err != nil {
			return nil, 0, fmt.Errorf("look at %s of workspace %s: %w", e.ID, workspace, err)
		}
		c.facets.keep(facetKey{tenant, space.Kernel, e.Shape}, all[i])
	}
	return all, more, nil
}

// lately are the solids to look at, and the surfaces of those that were looked
// at lately.
func (c *modelling) lately(ctx context.Context, space *Workspace, ids []string) (all []Surface, solids []model.Entity, more int, err error) {
	if len(ids) > maxSurfaces {
		return nil, nil, 0, core.Invalid("entity_ids", len(ids), fmt.Sprintf("at most %d", maxSurfaces))
	}
	there, err := c.AllEntities(ctx, space.TenantID, space.WorkspaceID)
	if err != nil {
		return nil, nil, 0, err
	}
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	for _, e := range there {
		switch {
		case len(ids) > 0 && !wanted[e.ID]:
		case e.Type != model.Solid && len(ids) == 0:
		case e.Type != model.Solid:
			return nil, nil, 0, core.Invalid("entity_id", e.ID, "a solid; this is a "+string(e.Type))
		case len(solids) == maxSurfaces:
			more++
		default:
			solids = append(solids, e)
			all = append(all, c.facets.of(facetKey{space.TenantID, space.Kernel, e.Shape}, e.ID))
		}
		delete(wanted, e.ID)
	}
	if i := slices.IndexFunc(ids, func(id string) bool { return wanted[id] }); i >= 0 {
		return nil, nil, 0, core.Missing("entity_id", ids[i])
	}
	return all, solids, more, nil
}

func unseen(s Surface) bool { return s.Mesh == nil }

// lookAt has a worker facet one solid: as finely as is seen, and coarser when
// that is too much.
func lookAt(ctx context.Context, worker Worker, e *model.Entity) (Surface, error) {
	facts, err := model.FactsOf(*e)
	if err != nil {
		return Surface{}, err
	}
	size := facts.Bounds.Size()
	deflection := max(size[0], size[1], size[2]) / lookParts
	if math.IsNaN(deflection) {
		deflection = finestLook
	}
	for deflection = min(max(deflection, finestLook), coarsestLook); ; deflection *= coarserBy {
		params := core.MustEncode(map[string]any{"workspace_id": e.WorkspaceID, "entity_ids": []string{e.ID}, "deflection": deflection})
		reply, err := worker.Call(ctx, Call{Method: "view.mesh", Params: params})
		var refused *Fault
		switch {
		case errors.As(err, &refused) && refused.Field == "entity_ids" && deflection*coarserBy <= coarsestLook:
			continue
		case refused != nil:
			return Surface{}, failure(refused)
		case err != nil:
			return Surface{}, err
		}
		return readSurface(reply.Data)
	}
}

func readSurface(data core.Raw) (Surface, error) {
	var got struct {
		Solids []struct {
			EntityID string `json:"entity_id"`
			mesh.Mesh
		} `json:"solids"`
	}
	if err := core.DecodeStored(data, &got); err != nil {
		return Surface{}, fmt.Errorf("read its surface: %w", err)
	}
	if len(got.Solids) != 1 {
		return Surface{}, fmt.Errorf("the CAD environment answered %d surfaces for one", len(got.Solids))
	}
	return Surface{got.Solids[0].EntityID, &got.Solids[0].Mesh}, nil
}

// facets keeps the surfaces that were looked at last, so that a screen that is
// drawn anew asks a worker for nothing but what has changed. A shape is what
// its hash says, so what is kept never grows old.
type facets struct {
	most int // bytes

	mu   sync.Mutex
	size int
	used *list.List // of *faceted, the one used last first
	by   map[facetKey]*list.Element
}

// facetKey names a surface: no tenant sees what another has looked at.
type facetKey struct{ tenant, kernel, shape string }

type faceted struct {
	facetKey

	surface Surface // without an entity's id
	size    int
}

// mostFacets is about 700,000 triangles.
const mostFacets = 32 << 20

func newFacets(most int) *facets {
	return &facets{most: most, used: list.New(), by: map[facetKey]*list.Element{}}
}

// of finds the surface of a shape, as the entity that is made of it. It has no
// mesh when it is not kept.
func (f *facets) of(k facetKey, entity string) Surface {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.by[k]
	if at == nil {
		return Surface{EntityID: entity}
	}
	f.used.MoveToFront(at)
	s := at.Value.(*faceted).surface
	s.EntityID = entity
	return s
}

// keep keeps a surface, and lets go of those that were not used for longest.
func (f *facets) keep(k facetKey, s Surface) {
	size := bytesOf(s.Mesh)
	if size > f.most/4 {
		return // one must not drive out all others
	}
	s.EntityID = ""
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by[k] != nil { // two looked at once
		return
	}
	f.by[k] = f.used.PushFront(&faceted{k, s, size})
	for f.size += size; f.size > f.most; {
		last := f.used.Remove(f.used.Back()).(*faceted)
		delete(f.by, last.facetKey)
		f.size -= last.size
	}
}

func bytesOf(m *mesh.Mesh) int {
	return 24*len(m.Vertices) + 12*len(m.Triangles) + 4*len(m.Faces) + 256
}
