package op

import (
	"context"
	"strings"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

func cadWorkspaces() []*Op {
	type W = cad.Workspace
	id, workspace := arg("ID", "workspace"), arg("WORKSPACE", "workspace")
	var dir Path
	var target string
	return []*Op{
		cadWorkspaceCreate(),
		list(Op{
			Name: "cad workspace list", Short: "List the workspaces, newest first; --kind is a kernel, --agent who made it", ForAgents: true,
			Tool: Tool{
				Name: "cad_workspaces", By: []string{"kind", "agent_name", "since", "until", "match"},
				Names: map[string]string{"kind": "kernel", "agent_name": "agent_id"},
				About: "List the workspaces that CAD agents build in, newest first.",
			},
		},
			byTenant(func(c *Call) tenantRead[core.Filter, core.Page[W]] { return c.CAD.Workspaces })),
		show(Op{Name: "cad workspace show", Short: "Show a workspace"}, id,
			func(ctx context.Context, c *Call, id string) (W, error) { return c.CAD.Workspace(ctx, c.By.Tenant, id) }),
		listOf(Op{Name: "cad workspace entities", Short: "List what is in a workspace, by id; --kind is a type"}, id,
			func(ctx context.Context, c *Call, id string, f core.Filter) (core.Page[model.Entity], error) {
				return c.CAD.Entities(ctx, c.By.Tenant, id, f)
			}),
		listOf(Op{Name: "cad workspace history", Short: "List the operations of a workspace, newest first; --kind is a method"}, id,
			func(ctx context.Context, c *Call, id string, f core.Filter) (core.Page[model.Entry], error) {
				return c.CAD.History(ctx, c.By.Tenant, id, f)
			}),
		change(Op{Name: "cad workspace conflicts", Short: "List what merges into a workspace left undecided", Effect: Reads}, id,
			func(ctx context.Context, c *Call, id string) (core.Page[model.Conflict], error) {
				open, err := c.CAD.Conflicts(ctx, c.By.Tenant, id)
				return core.Page[model.Conflict]{Items: open}, err
			}),
		change(Op{
			Name: "cad workspace directory", Short: "Set where the files of a workspace lie; without DIR the default place", Done: "set the directory of",
			Params: []*Param{maybe(&dir, "DIR", "dir")},
		}, id, func(ctx context.Context, c *Call, id string) (W, error) {
			return c.CAD.SetDirectory(ctx, c.By, id, string(dir))
		}),
		change(Op{Name: "cad workspace undo", Short: "Take back the newest operation of a workspace", Undo: "cad workspace redo", Done: "took back the newest operation of"}, workspace,
			func(ctx context.Context, c *Call, id string) (cad.Done, error) { return c.CAD.Undo(ctx, c.By, id) }),
		change(Op{Name: "cad workspace redo", Short: "Bring back the operation that was taken back last", Undo: "cad workspace undo", Done: "brought back an operation of"}, workspace,
			func(ctx context.Context, c *Call, id string) (cad.Done, error) { return c.CAD.Redo(ctx, c.By, id) }),
		change(Op{
			Name: "cad workspace merge", Short: "Bring what changed in one workspace into another", Undo: "cad workspace undo", Done: "merged into",
			Long: "Bring what changed in one workspace into another. What changed on both sides, or overlaps, stays open as a\n" +
				"conflict of the target: see cad workspace conflicts and cad workspace resolve.",
			Params: []*Param{place(&target, "TARGET", "workspace")},
		}, arg("SOURCE", "workspace"), func(ctx context.Context, c *Call, source string) (cad.Done, error) {
			return c.CAD.MergeInto(ctx, c.By, source, target)
		}),
		cadResolve(),
	}
}

func cadWorkspaceCreate() *Op {
	var w cad.CreateWorkspace
	return define(Op{
		Name: "cad workspace create", Short: "Make a workspace, empty or as a copy of another", Done: "created",
		Example: "cad workspace create ws_lid --base main --kernel occt",
		Params: []*Param{
			place(&w.WorkspaceID, "ID", ""),
			flag(&w.Name, "name", "`NAME` for people (default the id)"),
			flag(&w.Base, "base", "begin as a copy of this workspace `ID`").from("workspace"),
			kernel(&w.Kernel, "what models its solids: `KERNEL` embedded or occt"),
			flag((*Path)(&w.Directory), "dir", "where its files lie: `DIR`").from("dir"),
		},
	}, func(ctx context.Context, c *Call) (cad.Workspace, error) { return c.CAD.CreateWorkspace(ctx, c.By, w) })
}

func cadResolve() *Op {
	var r cad.Resolve
	var keep string
	return change(Op{
		Name: "cad workspace resolve", Short: "Decide a conflict that a merge left open", Undo: "cad workspace undo", Done: "decided a conflict of",
		Long: "Decide a conflict that a merge into WORKSPACE left open. --keep source takes the source's, and of overlapping\n" +
			"solids removes the target's; --keep target leaves the target as it is; --keep merged takes --merged: the properties\n" +
			"of a curve, or {\"operation\":\"union\"|\"subtract\"|\"keep_both\"} of a solid.",
		Example: "cad workspace resolve main lid --from ws_lid --keep source\ncad workspace resolve main lid --from ws_lid --keep merged --merged '{\"operation\":\"union\"}'",
		Params: []*Param{
			place(&r.EntityID, "ENTITY", "entity"),
			flag(&r.Source, "from", "the `WORKSPACE` that was merged; may be left out when only one conflict of the entity is open").from("workspace"),
			need(&keep, "keep", "whose counts: source|target|merged").enum("source", "target", "merged"),
			flag(&r.Merged, "merged", "`JSON` that --keep merged takes").from("json"),
		},
		Check: func(*Call) error {
			r.Strategy = map[string]model.Strategy{"source": model.KeepSource, "target": model.KeepTarget, "merged": model.ManualMerge}[keep]
			if (keep == "merged") != (r.Merged != nil) {
				return usage("merged", "--merged: goes with --keep merged, and with that alone")
			}
			return nil
		},
	}, arg("WORKSPACE", "workspace"), func(ctx context.Context, c *Call, workspace string) (d cad.Done, err error) {
		r.Target = workspace
		if r.Source == "" {
			if r.Source, err = c.conflictFrom(ctx, workspace, r.EntityID); err != nil {
				return d, err
			}
		}
		return c.CAD.ResolveConflict(ctx, c.By, r)
	})
}

// conflictFrom is the only workspace from which an entity is in conflict.
func (c *Call) conflictFrom(ctx context.Context, target, entity string) (string, error) {
	open, err := c.CAD.Conflicts(ctx, c.By.Tenant, target)
	if err != nil {
		return "", err
	}
	var from []string
	for _, x := range open {
		if x.EntityID == entity {
			from = append(from, x.Source)
		}
	}
	switch len(from) {
	case 0:
		return "", core.Errorf(core.NotFound, "workspace %s: %s is in no open conflict", target, entity).With("field", "entity_id").With("value", entity)
	case 1:
		return from[0], nil
	}
	return "", core.Errorf(core.InvalidInput, "from: is missing: %s is in conflict from %s", entity, strings.Join(from, ", ")).With("field", "from")
}
