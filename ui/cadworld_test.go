package ui

import (
	"context"
	"reflect"
	"strings"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// models is what the fake world has of CAD.
type models struct {
	makers    []cad.Agent
	spaces    []cad.Workspace
	entities  map[string][]model.Entity // by workspace
	journals  map[string][]model.Entry  // newest first
	conflicts map[string][]model.Conflict
	meshes    map[string]*mesh.Mesh // by workspace/entity
	flows     []cad.Workflow
	looks     int // how often surfaces were asked for
}

func sec(t time.Time) cad.Seconds { return cad.Seconds(float64(t.UnixMicro()) / 1e6) }

func (w fakeCAD) Agent(_ context.Context, _, id string) (cad.Agent, error) {
	return findID("agent_id", id, w.makers, func(a *cad.Agent) string { return a.AgentID })
}

func findID[T any](field, id string, all []T, of func(*T) string) (T, error) {
	for i := range all {
		if of(&all[i]) == id {
			return all[i], nil
		}
	}
	var none T
	return none, core.Missing(field, id)
}

func pageOf[T any](all []T, f core.Filter, text func(*T) string) (core.Page[T], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[T]{}, err
	}
	var kept []T
	for i := range all {
		if strings.Contains(text(&all[i]), f.Match) {
			kept = append(kept, all[i])
		}
	}
	from := min(f.Offset(), len(kept))
	return core.NewPage(kept[from:min(from+f.Size, len(kept))], f, len(kept)), nil
}

func (w fakeCAD) Agents(_ context.Context, _ string, f core.Filter) (core.Page[cad.Agent], error) {
	return pageOf(w.makers, f, func(a *cad.Agent) string { return a.AgentID + " " + a.Role })
}

func (w fakeCAD) Metrics(ctx context.Context, tenant, id string) (cad.Metrics, error) {
	a, err := w.Agent(ctx, tenant, id)
	if err != nil {
		return cad.Metrics{}, err
	}
	return cad.Metrics{
		AgentID: id, OperationCount: a.OperationCount, SuccessCount: a.SuccessCount, SuccessRate: float64(a.SuccessCount) / float64(max(a.OperationCount, 1)),
		Learning: cad.Stable, MeanMS: 3.25, P95MS: 12, Operations: []cad.MethodFacts{{Method: "solid.primitive", Count: 4, Successes: 4, MeanMS: 2, P95MS: 5}},
	}, nil
}

func (w fakeCAD) Role(_, name string) (cad.RoleTemplate, error) {
	return cad.RoleTemplate{Name: name, AllowedOperations: []string{"entity.create_point", "solid.extrude"}}, nil
}

func (w fakeCAD) Workspace(_ context.Context, _, id string) (cad.Workspace, error) {
	return findID("workspace_id", id, w.spaces, func(s *cad.Workspace) string { return s.WorkspaceID })
}

func (w fakeCAD) Workspaces(_ context.Context, _ string, f core.Filter) (core.Page[cad.Workspace], error) {
	return pageOf(w.spaces, f, func(s *cad.Workspace) string { return s.WorkspaceID })
}

func (w fakeCAD) Entities(_ context.Context, _, workspace string, f core.Filter) (core.Page[model.Entity], error) {
	var all []model.Entity
	for _, e := range w.entities[workspace] {
		if f.Kind == "" || f.Kind == string(e.Type) {
			all = append(all, e)
		}
	}
	return pageOf(all, f, func(e *model.Entity) string { return e.ID })
}

func (w fakeCAD) History(_ context.Context, _, workspace string, f core.Filter) (core.Page[model.Entry], error) {
	return pageOf(w.journals[workspace], f, func(e *model.Entry) string { return e.Method })
}

func (w fakeCAD) Conflicts(_ context.Context, _, workspace string) ([]model.Conflict, error) {
	return w.conflicts[workspace], nil
}

func (w fakeCAD) Surfaces(_ context.Context, _, workspace string, ids ...string) (all []cad.Surface, more int, err error) {
	w.looks++
	for _, e := range w.entities[workspace] {
		if m := w.meshes[workspace+"/"+e.ID]; m != nil && (len(ids) == 0 || ids[0] == e.ID) {
			all = append(all, cad.Surface{EntityID: e.ID, Mesh: m})
		}
	}
	if len(ids) > 0 && len(all) == 0 {
		return nil, 0, core.Missing("entity_id", ids[0])
	}
	return all, 0, nil
}

func (w fakeCAD) Workflow(_ context.Context, _, id string) (cad.Workflow, error) {
	return findID("workflow_id", id, w.flows, func(f *cad.Workflow) string { return f.WorkflowID })
}

func (w fakeCAD) Workflows(_ context.Context, _ string, f core.Filter) (core.Page[cad.Workflow], error) {
	return pageOf(w.flows, f, func(f *cad.Workflow) string { return f.WorkflowID + f.ScenarioName })
}

// poisonModels puts a text wherever CAD agents, their environment and files say
// something.
func (w *fakeWorld) poisonModels(text string) {
	for _, all := range w.entities {
		for i := range all {
			e := &all[i]
			id, kind := e.ID, e.Type
			poison(reflect.ValueOf(e), text, "")
			if e.Type = kind; kind == model.Solid {
				e.Properties = solidOf(e.WorkspaceID, id, w.meshes["ws_ann/plate"]).Properties
			}
			e.Origin, e.CreatedBy = text, text
		}
	}
	for _, all := range w.journals {
		poison(reflect.ValueOf(&all), text, "")
	}
	for space, all := range w.conflicts {
		for i := range all {
			all[i].Description = text
		}
		w.conflicts[space] = all
	}
}
