package pane

import (
	"context"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// CADWorld is what the cockpit reads of CAD agents, what they build and their
// workflows.
type CADWorld interface {
	CADAgent(ctx context.Context, tenant, id string) (cad.Agent, error)
	CADAgents(ctx context.Context, tenant string, f core.Filter) (core.Page[cad.Agent], error)
	CADMetrics(ctx context.Context, tenant, id string) (cad.Metrics, error)
	CADRole(tenant, name string) (cad.RoleTemplate, error)

	Workspace(ctx context.Context, tenant, id string) (cad.Workspace, error)
	Workspaces(ctx context.Context, tenant string, f core.Filter) (core.Page[cad.Workspace], error)
	Entities(ctx context.Context, tenant, workspace string, f core.Filter) (core.Page[model.Entity], error)
	Entity(ctx context.Context, tenant, workspace, id string) (model.Entity, error)
	Journal(ctx context.Context, tenant, workspace string, f core.Filter) (core.Page[model.Entry], error)
	Conflicts(ctx context.Context, tenant, workspace string) ([]model.Conflict, error)
	// Surfaces computes: it may take a moment.
	Surfaces(ctx context.Context, tenant, workspace string, ids ...string) (all []cad.Surface, more int, err error)

	Workflow(ctx context.Context, tenant, id string) (cad.Workflow, error)
	Workflows(ctx context.Context, tenant string, f core.Filter) (core.Page[cad.Workflow], error)
}

// Viewer is a pane whose thing can be looked at as a picture.
type Viewer interface {
	// Picture is what to open for that, empty for nothing.
	Picture(env Env) Item
}

func (w world) CADAgent(ctx context.Context, tenant, id string) (cad.Agent, error) {
	return w.CAD.Agent(ctx, tenant, id)
}

func (w world) CADAgents(ctx context.Context, tenant string, f core.Filter) (core.Page[cad.Agent], error) {
	return w.CAD.Agents(ctx, tenant, f)
}

func (w world) CADMetrics(ctx context.Context, tenant, id string) (cad.Metrics, error) {
	return w.CAD.Metrics(ctx, tenant, id)
}

func (w world) CADRole(tenant, name string) (cad.RoleTemplate, error) {
	return w.CAD.Role(tenant, name)
}

func (w world) Workspace(ctx context.Context, tenant, id string) (cad.Workspace, error) {
	return w.CAD.Workspace(ctx, tenant, id)
}

func (w world) Workspaces(ctx context.Context, tenant string, f core.Filter) (core.Page[cad.Workspace], error) {
	return w.CAD.Workspaces(ctx, tenant, f)
}

func (w world) Entities(ctx context.Context, tenant, workspace string, f core.Filter) (core.Page[model.Entity], error) {
	return w.CAD.Entities(ctx, tenant, workspace, f)
}

func (w world) Entity(ctx context.Context, tenant, workspace, id string) (model.Entity, error) {
	page, err := w.CAD.Entities(ctx, tenant, workspace, core.Filter{Match: id, Size: core.MaxPageSize})
	if err != nil {
		return model.Entity{}, err
	}
	for _, e := range page.Items {
		if e.ID == id {
			return e, nil
		}
	}
	return model.Entity{}, core.Missing("entity_id", id)
}

func (w world) Journal(ctx context.Context, tenant, workspace string, f core.Filter) (core.Page[model.Entry], error) {
	return w.CAD.History(ctx, tenant, workspace, f)
}

func (w world) Conflicts(ctx context.Context, tenant, workspace string) ([]model.Conflict, error) {
	return w.CAD.Conflicts(ctx, tenant, workspace)
}

func (w world) Surfaces(ctx context.Context, tenant, workspace string, ids ...string) ([]cad.Surface, int, error) {
	return w.CAD.Surfaces(ctx, tenant, workspace, ids...)
}

func (w world) Workflow(ctx context.Context, tenant, id string) (cad.Workflow, error) {
	return w.CAD.Workflow(ctx, tenant, id)
}

func (w world) Workflows(ctx context.Context, tenant string, f core.Filter) (core.Page[cad.Workflow], error) {
	return w.CAD.Workflows(ctx, tenant, f)
}
