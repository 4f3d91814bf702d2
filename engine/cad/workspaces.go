package cad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Main is the workspace that every tenant has.
const Main = model.Main

// Workspace is one workspace as lists show it. Its content is its journal.
type Workspace struct {
	TenantID    string  `json:"tenant_id"`
	WorkspaceID string  `json:"workspace_id"`
	Name        string  `json:"workspace_name"`
	Base        string  `json:"base_workspace_id,omitempty"`
	AgentID     string  `json:"agent_id,omitempty"`  // that made it
	Kernel      string  `json:"kernel,omitempty"`    // "" is the pool's default
	Directory   string  `json:"directory,omitempty"` // where its files lie; "" is the default place
	Seq         int     `json:"seq"`                 // of the newest entry
	EntityCount int     `json:"entity_count"`
	SolidCount  int     `json:"solid_count"`
	Conflicts   int     `json:"conflict_count"` // of merges, open
	CreatedAt   Seconds `json:"created_at"`
	UpdatedAt   Seconds `json:"updated_at"`
	AuditSeq    uint64  `json:"audit_seq,omitzero"`
}

// CreateWorkspace asks for a workspace. A base that has content is branched
// from, which takes a worker.
type CreateWorkspace struct {
	WorkspaceID string `json:"workspace_id"`
	Name        string `json:"workspace_name,omitempty"`    // "" is the id
	Base        string `json:"base_workspace_id,omitempty"` // "" begins empty
	AgentID     string `json:"agent_id,omitempty"`
	Kernel      string `json:"kernel,omitempty"`
	Directory   string `json:"directory,omitempty"` // absolute
}

// begun is a workspace that is ready to be stored.
type begun struct {
	space Workspace
	draft *draft
}

// CreateWorkspace makes a workspace: empty, or as a copy of another.
func (c *modelling) CreateWorkspace(ctx context.Context, by core.Caller, w CreateWorkspace) (Workspace, error) {
	b, err := c.begin(ctx, by, w, "workspace.create", nil)
	if err != nil {
		return Workspace{}, err
	}
	err = c.ledger.Update(ctx, by, func(tx *audit.Tx) error { return c.beginIn(tx, b) })
	return b.space, audit.Explain("create workspace "+w.WorkspaceID, err)
}

// spaceFor is the workspace that a new agent's request makes along with it, nil
// when it is there. Main is there for everybody.
func (c *modelling) spaceFor(ctx context.Context, by core.Caller, w CreateAgent) (*begun, error) {
	if err := model.CheckWorkspaceID(w.WorkspaceID); err != nil {
		return nil, err
	}
	var own CreateWorkspace
	if w.Workspace != nil {
		own = *w.Workspace
	}
	there, err := c.ownSpace(by.Tenant, w.WorkspaceID)
	switch {
	case err == nil:
		if own.Kernel != "" && own.Kernel != there.Kernel {
			return nil, core.Errorf(core.Conflict, "kernel: workspace %s is built with %s, not %s", w.WorkspaceID, cmp.Or(there.Kernel, "the default kernel"), own.Kernel).With("field", "kernel").With("value", own.Kernel)
		}
		return nil, nil
	case w.Workspace == nil && w.WorkspaceID != Main:
		_, err = c.space(ctx, by, w.WorkspaceID) // refuses one of another tenant by that
		return nil, err
	}
	own.WorkspaceID, own.AgentID = w.WorkspaceID, w.AgentID
	return c.begin(ctx, by, own, "workspace.create", nil)
}

// begin makes the first entry of a workspace.
func (c *modelling) begin(ctx context.Context, by core.Caller, w CreateWorkspace, method string, params core.Raw) (*begun, error) {
	if err := c.checkWorkspace(&w); err != nil {
		return nil, err
	}
	at := c.ledger.Clock().Now().UTC().Truncate(time.Microsecond)
	record := model.Record{ID: w.WorkspaceID, Name: w.Name, AgentID: w.AgentID, CreatedAt: at.Format(time.RFC3339Nano)}
	change := model.Change{Method: method, Params: params, AgentID: w.AgentID, At: record.CreatedAt}
	_, entry, err := model.New(record, change)
	if w.Base != "" {
		base, absent := c.space(ctx, by, w.Base)
		if absent == nil {
			w.Kernel, w.Directory = cmp.Or(w.Kernel, base.Kernel), cmp.Or(w.Directory, base.Directory)
			from, err := c.replay(ctx, by.Tenant, w.Base)
			if err != nil {
				return nil, err
			}
			if _, entry, err = model.Branch(from, record, change); err != nil {
				return nil, fmt.Errorf("workspace %s: %w", w.WorkspaceID, err)
			}
		} else if w.Base != Main || !errors.Is(absent, core.Kind(core.NotFound)) { // which would be empty
			return nil, absent
		}
	}
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", w.WorkspaceID, err)
	}
	d, err := prepare(entry)
	if err != nil {
		return nil, err
	}
	return &begun{draft: d, space: Workspace{
		TenantID: by.Tenant, WorkspaceID: w.WorkspaceID, Name: w.Name, Base: entry.Record.Base, AgentID: w.AgentID,
		Kernel: w.Kernel, Directory: w.Directory, CreatedAt: seconds(at),
	}}, nil
}

func (c *modelling) checkWorkspace(w *CreateWorkspace) error {
	w.Name = cmp.Or(w.Name, w.WorkspaceID)
	if err := cmp.Or(model.CheckWorkspaceID(w.WorkspaceID), checkText("workspace_name", w.Name, 100)); err != nil {
		return err
	}
	if w.AgentID != "" {
		if err := checkAgentID("agent_id", w.AgentID); err != nil {
			return err
		}
	}
	return cmp.Or(checkDirectory("directory", w.Directory), c.checkKernel(w.Kernel))
}

// checkDirectory reports a path that depends on where somebody is; "" is none.
func checkDirectory(field, dir string) error {
	if dir != "" && !filepath.IsAbs(dir) {
		return core.Invalid(field, dir, "an absolute path")
	}
	return nil
}

// checkKernel reports a kernel that there is not.
func (c *modelling) checkKernel(name string) error {
	kernels := []Kernel{{Name: "embedded"}, {Name: "occt"}}
	if c.opt.Pool != nil {
		kernels = c.opt.Pool.Kernels()
	}
	switch k := first(kernels, func(k *Kernel) bool { return k.Name == name }); {
	case name == "":
		return nil
	case k == nil:
		return core.Invalid("kernel", name, strings.Join(namesOf(kernels, func(k Kernel) string { return k.Name }), ", "))
	case k.Why != "":
		return core.Errorf(core.Unavailable, "kernel %s: %s", name, k.Why).With("field", "kernel").With("value", name)
	}
	return nil
}

// beginIn stores a workspace.
func (c *modelling) beginIn(tx *audit.Tx, b *begun) error {
	if was, err := c.kinds.workspace.Load(tx, b.space.WorkspaceID); err != nil {
		return err
	} else if was != nil {
		return isTaken("workspace_id", b.space.WorkspaceID, "there is a workspace of this name")
	}
	if err := b.draft.append(tx, &b.space); err != nil {
		return err
	}
	return c.saveWorkspace(tx, &b.space, record.Event{Type: "cad.workspace.created", Detail: map[string]string{
		"base_workspace_id": b.space.Base, "agent_id": b.space.AgentID,
	}})
}

// replay is the content of a workspace.
func (c *modelling) replay(ctx context.Context, tenant, id string) (*model.Workspace, error) {
	entries, err := c.Journal(ctx, tenant, id, 1)
	if err != nil {
		return nil, err
	}
	content, err := model.Load(entries)
	if err != nil {
		return nil, fmt.Errorf("replay workspace %s: %w", id, err)
	}
	return content, nil
}

// SetDirectory names where the files of a workspace lie from now on: an
// absolute path, or "" for the default place.
func (c *modelling) SetDirectory(ctx context.Context, by core.Caller, id, dir string) (Workspace, error) {
	if err := checkDirectory("directory", dir); err != nil {
		return Workspace{}, err
	}
	if _, err := c.space(ctx, by, id); err != nil {
		return Workspace{}, err
	}
	var out Workspace
	err := c.update(ctx, by, func(tx *audit.Tx) error {
		w, err := c.loadWorkspace(tx, id)
		if err != nil {
			return err
		}
		if out = *w; out.Directory == dir {
			return errSame
		}
		out.Directory = dir
		return c.saveWorkspace(tx, &out, record.Event{Type: "cad.workspace.moved", Detail: map[string]string{"directory": dir}})
	})
	return out, audit.Explain("set the directory of workspace "+id, err)
}

// directory is where a workspace's files lie; "" when it has none.
func (c *modelling) directory(w *Workspace) string {
	switch {
	case w.Directory != "":
		return w.Directory
	case c.opt.Dir != "":
		return filepath.Join(c.opt.Dir, w.TenantID, w.WorkspaceID)
	}
	return ""
}

// Workspace returns one workspace.
func (c *modelling) Workspace(ctx context.Context, tenant, id string) (Workspace, error) {
	w, err := c.space(ctx, reader(tenant), id)
	if err != nil {
		return Workspace{}, err
	}
	return *w, nil
}

// Workspaces lists workspaces, newest first. Agent is who made it, Kind a
// kernel; Since and Until are of its creation; Match looks into id and name.
func (c *modelling) Workspaces(_ context.Context, tenant string, f core.Filter) (core.Page[Workspace], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[Workspace]{}, err
	}
	return core.PageOf(slices.DeleteFunc(c.spaces(tenant), func(w Workspace) bool {
		return !core.Wants(f.Agent, w.AgentID) || !core.Wants(f.Kind, w.Kernel) || !f.Within(w.CreatedAt.Time()) || !f.Finds(w.WorkspaceID, w.Name, w.Kernel, w.AgentID)
	}), f), nil
}

// spaces are a tenant's workspaces, the newest first.
func (c *modelling) spaces(name string) (all []Workspace) {
	c.look(name, func(t *tenantState) {
		for _, w := range t.spaces {
			all = append(all, *w)
		}
	})
	core.Sort(all, func(a, b Workspace) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(a.WorkspaceID, b.WorkspaceID))
	})
	return all
}

// Entities lists what is in a workspace, by id. Kind is an entity's type, Agent
// who made it; Match looks into the id.
func (c *modelling) Entities(ctx context.Context, tenant, id string, f core.Filter) (core.Page[model.Entity], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[model.Entity]{}, err
	}
	g := core.Gather[model.Entity]{Filter: f}
	plain := !f.Narrows()
	err = c.viewSpace(ctx, tenant, id, "entities", func(tx *audit.Tx, w *Workspace) error {
		err := entities.Within(tx, record.Text(id), nil, nil, false, func(_ record.Parts, found record.Found[model.Entity]) (bool, error) {
			if plain && !g.Shows() {
				g.Total++
				return len(g.Items) < f.Size, nil
			}
			e, err := found.Value()
			if err == nil && core.Wants(f.Kind, string(e.Type)) && core.Wants(f.Agent, e.CreatedBy) && f.Finds(e.ID) {
				g.Add(e)
			}
			return true, err
		})
		if plain {
			g.Total = w.EntityCount
		}
		return err
	})
	return g.Result(), err
}

// AllEntities is all that is in a workspace, by id.
func (c *modelling) AllEntities(ctx context.Context, tenant, id string) (all []model.Entity, err error) {
	err = c.viewSpace(ctx, tenant, id, "entities", func(tx *audit.Tx, _ *Workspace) error {
		return entities.Each(tx, record.Text(id), func(_ record.Parts, e model.Entity) (bool, error) {
			all = append(all, e)
			return true, nil
		})
	})
	return all, err
}

// viewSpace reads what is kept of a workspace; what names it in errors.
func (c *modelling) viewSpace(ctx context.Context, tenant, id, what string, read func(*audit.Tx, *Workspace) error) error {
	w, err := c.space(ctx, reader(tenant), id)
	if err != nil {
		return err
	}
	return audit.Explain("read the "+what+" of "+id, c.ledger.View(ctx, tenant, func(tx *audit.Tx) error { return read(tx, w) }))
}

// Conflicts are those that merges into a workspace left open, the oldest first.
func (c *modelling) Conflicts(ctx context.Context, tenant, id string) (open []model.Conflict, err error) {
	err = c.viewSpace(ctx, tenant, id, "conflicts", func(tx *audit.Tx, _ *Workspace) (err error) {
		open, _, err = conflicts.Get(tx, record.Key(id))
		return err
	})
	return open, err
}

// History lists the journal of a workspace, newest first, without shapes and
// files. Kind is a method, Agent an agent; the page is found by arithmetic
// unless something narrows it.
func (c *modelling) History(ctx context.Context, tenant, id string, f core.Filter) (core.Page[model.Entry], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[model.Entry]{}, err
	}
	g := core.Gather[model.Entry]{Filter: f}
	err = c.viewSpace(ctx, tenant, id, "journal", func(tx *audit.Tx, _ *Workspace) error {
		w, err := c.loadWorkspace(tx, id)
		if err != nil {
			return err
		}
		var to record.Key
		plain := !f.Narrows()
		if plain {
			g.Total = w.Seq
			to = record.Seq(uint64(max(0, w.Seq-f.Offset())) + 1)
		}
		return entries.Within(tx, record.Text(id), nil, to, true, func(_ record.Parts, found record.Found[kept]) (bool, error) {
			k, err := found.Value()
			if err != nil {
				return false, err
			}
			e := k.Entry
			at, _ := time.Parse(time.RFC3339Nano, e.At)
			if plain {
				g.Items = append(g.Items, e)
				return len(g.Items) < f.Size, nil
			}
			if core.Wants(f.Kind, e.Method) && core.Wants(f.Agent, e.AgentID) && f.Within(at) && f.Finds(e.Method, e.AgentID, string(e.Params)) {
				g.Add(e)
			}
			return true, nil
		})
	})
	return g.Result(), err
}
