package cad

import (
	"cmp"
	"context"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// local carries out what the controller itself answers: what is about several
// workspaces, or about agents.
func (x *execution) local(ctx context.Context) (Done, error) {
	began := x.c.ledger.Clock().Now()
	reply := func(v any) Reply {
		return Reply{Data: core.MustEncode(v), Elapsed: max(time.Microsecond, x.c.ledger.Clock().Now().Sub(began))}
	}
	nothing := func(*audit.Tx, *Agent, *Done) error { return nil }
	if x.method.Effect == Creates {
		return x.create(ctx, reply)
	}
	var p commonParams
	if err := x.read(&p); err != nil {
		return Done{}, err
	}
	switch x.method.Name {
	case "agent.metrics":
		m, err := x.c.Metrics(ctx, x.by.Tenant, cmp.Or(p.AgentID, x.m.id))
		if err != nil {
			return Done{}, x.refused("agent_id", err)
		}
		return x.commit(ctx, reply(m), nothing)
	case "workspace.switch":
		return x.change(ctx, p.WorkspaceID, reply)
	}
	return x.commit(ctx, reply(workspaceList(x.c.spaces(x.by.Tenant))), nothing)
}

// commonParams are those that every method has.
type commonParams struct {
	WorkspaceID string  `json:"workspace_id"`
	AgentID     string  `json:"agent_id"`
	DeadlineMS  float64 `json:"deadline_ms"`
}

func (x *execution) read(into any) error {
	if err := core.Decode(x.params, into); err != nil {
		e := core.AsError(err)
		return invalid(fieldOf(e), nil, e.Message)
	}
	return nil
}

// refused is a refusal of the controller's own as one of an operation.
func (x *execution) refused(field string, err error) error {
	e := core.AsError(err)
	f := invalid(cmp.Or(fieldOf(e), field), nil, e.Message)
	switch e.Code {
	case core.NotFound:
		f.Class, f.Code, f.Name = EntityNotFound, codeEntityNotFound, "ENTITY_NOT_FOUND"
	case core.Conflict:
		f.Class, f.Code, f.Name = WorkspaceError, codeWorkspaceConflict, "WORKSPACE_CONFLICT"
	case core.Internal:
		return err
	}
	return f
}

// spaceLine is a workspace as workspace.list tells of it.
type spaceLine struct {
	ID        string `json:"workspace_id"`
	Name      string `json:"workspace_name"`
	Base      string `json:"base_workspace_id,omitempty"`
	AgentID   string `json:"agent_id,omitempty"`
	Entities  int    `json:"entity_count"`
	Solids    int    `json:"solid_count"`
	Conflicts int    `json:"conflict_count"`
	Seq       int    `json:"seq"`
}

func lineOf(w *Workspace) spaceLine {
	return spaceLine{w.WorkspaceID, w.Name, w.Base, w.AgentID, w.EntityCount, w.SolidCount, w.Conflicts, w.Seq}
}

// mostListed bounds what workspace.list tells; the newest come first.
const mostListed = 1000

func workspaceList(all []Workspace) any {
	out := struct {
		Workspaces []spaceLine `json:"workspaces"`
		Total      int         `json:"total_count"`
	}{[]spaceLine{}, len(all)}
	for _, w := range all[:min(len(all), mostListed)] {
		out.Workspaces = append(out.Workspaces, lineOf(&w))
	}
	return out
}

// change gives the agent another workspace that is there.
func (x *execution) change(ctx context.Context, id string, reply func(any) Reply) (Done, error) {
	if id == "" {
		return Done{}, invalid("workspace_id", nil, "workspace_id: is missing; it names a workspace")
	}
	to, err := x.find(ctx, id)
	if err != nil {
		return Done{}, err
	}
	return x.commit(ctx, reply(lineOf(to)), func(_ *audit.Tx, a *Agent, done *Done) error {
		a.WorkspaceID, done.WorkspaceID = to.WorkspaceID, to.WorkspaceID
		return nil
	})
}

// create makes a workspace: a copy of a base, which is main unless the
// parameters name another; "" begins empty. The parameters are those of the
// environment.
func (x *execution) create(ctx context.Context, reply func(any) Reply) (Done, error) {
	var p struct {
		commonParams

		Name string  `json:"workspace_name"`
		Base *string `json:"base_workspace_id"`
	}
	if err := x.read(&p); err != nil {
		return Done{}, err
	}
	if p.Name == "" {
		return Done{}, invalid("workspace_name", nil, "workspace_name: is missing; it names the new workspace")
	}
	w := CreateWorkspace{WorkspaceID: cmp.Or(p.WorkspaceID, model.WorkspaceIDOf(p.Name)), Name: p.Name, Base: Main, AgentID: x.m.id}
	if p.Base != nil {
		w.Base = *p.Base
	}
	if w.Base != "" {
		leave, err := x.t.turns.take(ctx, []string{w.Base})
		if err != nil {
			return Done{}, context.Cause(ctx)
		}
		defer leave()
	}
	b, err := x.c.begin(ctx, x.by, w, x.method.Name, x.params)
	if err != nil {
		return Done{}, x.refused("workspace_name", err)
	}
	return x.commit(ctx, reply(nil), func(tx *audit.Tx, _ *Agent, done *Done) error {
		if err := x.c.beginIn(tx, b); err != nil {
			return x.refused("workspace_name", err)
		}
		done.WorkspaceID, done.Seq, done.Data = w.WorkspaceID, b.space.Seq, core.MustEncode(lineOf(&b.space))
		return nil
	})
}
