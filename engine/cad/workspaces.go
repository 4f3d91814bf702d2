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

// begun is a workspace that is ready to be stored.
type begun struct {
	space Workspace
	draft *draft
}

// CreateWorkspace makes a workspace: empty, or as a copy of another.
func (c *Controller) CreateWorkspace(ctx context.Context, by core.Caller, w CreateWorkspace) (Workspace, error) {
	b, err := c.begin(ctx, by, w, "workspace.create", nil)
	if err != nil {
		return Workspace{}, err
	}
	err = c.ledger.Update(ctx, by, func(tx *audit.Tx) error { return c.beginIn(tx, b) })
	return b.space, explain("create workspace "+w.WorkspaceID, err)
}

// spaceFor is the workspace that a new agent's request makes along with it, nil
// when it is there. Main is there for everybody.
func (c *Controller) spaceFor(ctx context.Context, by core.Caller, w CreateAgent) (*begun, error) {
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
func (c *Controller) begin(ctx context.Context, by core.Caller, w CreateWorkspace, method string, params core.Raw) (*begun, error) {
	if err := c.checkWorkspace(&w); err != nil {
		return nil, err
	}
	if w.AgentID != "" {
		if err := checkAgentID("agent_id", w.AgentID); err != nil {
			return nil, err
		}
	}
	at := c.ledger.Clock().Now().UTC().Truncate(time.Microsecond)
	record := model.Record{ID: w.WorkspaceID, Name: w.Name, AgentID: w.AgentID, CreatedAt: at.Format(time.RFC3339Nano)}
	change := model.Change{Method: method, Params: params, AgentID: w.AgentID, At: record.CreatedAt}
	_, entry, err := model.New(record, change)
	kernel := w.Kernel
	if w.Base != "" {
		var base *Workspace
		if base, err = c.space(ctx, by, w.Base); err != nil {
			if w.Base == Main && errors.Is(err, core.Kind(core.NotFound)) { // it would be empty
				_, entry, err = model.New(record, change)
				return c.ready(by, w, kernel, at, entry, err)
			}
			return nil, err
		}
		kernel, w.Directory = cmp.Or(kernel, base.Kernel), cmp.Or(w.Directory, base.Directory)
		var from *model.Workspace
		if from, err = c.replay(ctx, by.Tenant, w.Base); err != nil {
			return nil, err
		}
		_, entry, err = model.Branch(from, record, change)
	}
	return c.ready(by, w, kernel, at, entry, err)
}

func (c *Controller) ready(by core.Caller, w CreateWorkspace, kernel string, at time.Time, entry model.Entry, err error) (*begun, error) {
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", w.WorkspaceID, err)
	}
	d, err := prepare(entry)
	if err != nil {
		return nil, err
	}
	return &begun{draft: d, space: Workspace{
		TenantID: by.Tenant, WorkspaceID: w.WorkspaceID, Name: w.Name, Base: entry.Record.Base, AgentID: w.AgentID,
		Kernel: kernel, Directory: w.Directory, CreatedAt: seconds(at),
	}}, nil
}

func (c *Controller) checkWorkspace(w *CreateWorkspace) error {
	if err := model.CheckWorkspaceID(w.WorkspaceID); err != nil {
		return err
	}
	w.Name = cmp.Or(w.Name, w.WorkspaceID)
	if err := checkText("workspace_name", w.Name, 100); err != nil {
		return err
	}
	if w.Directory != "" && !filepath.IsAbs(w.Directory) {
		return core.Invalid("directory", w.Directory, "an absolute path")
	}
	return c.checkKernel(w.Kernel)
}

// checkKernel reports a kernel that there is not.
func (c *Controller) checkKernel(name string) error {
	if name == "" || c.opt.Pool == nil && slices.Contains([]string{"embedded", "occt"}, name) {
		return nil
	}
	names := []string{"embedded", "occt"}
	if c.opt.Pool != nil {
		names = nil
		for _, k := range c.opt.Pool.Kernels() {
			names = append(names, k.Name)
			if k.Name == name && k.Why != "" {
				return core.Errorf(core.Unavailable, "kernel %s: %s", name, k.Why).With("field", "kernel").With("value", name)
			}
		}
	}
	if !slices.Contains(names, name) {
		return core.Invalid("kernel", name, strings.Join(names, ", "))
	}
	return nil
}

// beginIn stores a workspace.
func (c *Controller) beginIn(tx *audit.Tx, b *begun) error {
	if was, err := c.kinds.workspace.Load(tx, b.space.WorkspaceID); err != nil {
		return err
	} else if was != nil {
		return taken("workspace_id", b.space.WorkspaceID, "there is a workspace of this name")
	}
	if err := b.draft.append(tx, &b.space); err != nil {
		return err
	}
	return c.saveWorkspace(tx, &b.space, record.Event{Type: "cad.workspace.created", Detail: map[string]string{
		"base_workspace_id": b.space.Base, "agent_id": b.space.AgentID,
	}})
}

// replay is the content of a workspace.
func (c *Controller) replay(ctx context.Context, tenant, id string) (*model.Workspace, error) {
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
func (c *Controller) SetDirectory(ctx context.Context, by core.Caller, id, dir string) (Workspace, error) {
	if dir != "" && !filepath.IsAbs(dir) {
		return Workspace{}, core.Invalid("directory", dir, "an absolute path")
	}
	if _, err := c.space(ctx, by, id); err != nil {
		return Workspace{}, err
	}
	var out Workspace
	err := c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
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
	if errors.Is(err, errSame) {
		err = nil
	}
	return out, explain("set the directory of workspace "+id, err)
}

// directory is where a workspace's files lie; "" when it has none.
func (c *Controller) directory(w *Workspace) string {
	switch {
	case w.Directory != "":
		return w.Directory
	case c.opt.Dir != "":
		return filepath.Join(c.opt.Dir, w.TenantID, w.WorkspaceID)
	}
	return ""
}

// Workspace returns one workspace.
func (c *Controller) Workspace(ctx context.Context, tenant, id string) (Workspace, error) {
	w, err := c.space(ctx, reader(tenant), id)
	if err != nil {
		return Workspace{}, err
	}
	return *w, nil
}

// Workspaces lists workspaces, newest first. Agent is who made it, Kind a
// kernel; Since and Until are of its creation; Match looks into id and name.
func (c *Controller) Workspaces(_ context.Context, tenant string, f core.Filter) (core.Page[Workspace], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[Workspace]{}, err
	}
	all := c.spaces(tenant)
	all = slices.DeleteFunc(all, func(w *Workspace) bool {
		return !core.Wants(f.Agent, w.AgentID) || !core.Wants(f.Kind, w.Kernel) || !f.Within(w.CreatedAt.Time()) || !f.Finds(w.WorkspaceID, w.Name)
	})
	return pageOf(all, f), nil
}

// spaces are a tenant's workspaces, the newest first.
func (c *Controller) spaces(tenant string) []*Workspace {
	c.mu.RLock()
	var all []*Workspace
	if t := c.tenants[tenant]; t != nil {
		for _, w := range t.spaces {
			all = append(all, w)
		}
	}
	c.mu.RUnlock()
	slices.SortFunc(all, func(a, b *Workspace) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(a.WorkspaceID, b.WorkspaceID))
	})
	return all
}

// Entities lists what is in a workspace, by id. Kind is an entity's type, Agent
// who made it; Match looks into the id.
func (c *Controller) Entities(ctx context.Context, tenant, id string, f core.Filter) (core.Page[model.Entity], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[model.Entity]{}, err
	}
	w, err := c.space(ctx, reader(tenant), id)
	if err != nil {
		return core.Page[model.Entity]{}, err
	}
	var items []model.Entity
	total := 0
	plain := !f.Narrows()
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		err := entities.Within(tx, record.Text(id), nil, nil, false, func(_ record.Parts, found record.Found[model.Entity]) (bool, error) {
			inPage := total >= f.Offset() && len(items) < f.Size
			if plain && !inPage {
				total++
				return len(items) < f.Size, nil
			}
			e, err := found.Value()
			if err == nil && core.Wants(f.Kind, string(e.Type)) && core.Wants(f.Agent, e.CreatedBy) && f.Finds(e.ID) {
				if inPage {
					items = append(items, e)
				}
				total++
			}
			return true, err
		})
		if plain {
			total = w.EntityCount
		}
		return err
	})
	return core.NewPage(items, f, total), explain("list the entities of "+id, err)
}

// AllEntities is all that is in a workspace, by id.
func (c *Controller) AllEntities(ctx context.Context, tenant, id string) (all []model.Entity, err error) {
	if _, err := c.space(ctx, reader(tenant), id); err != nil {
		return nil, err
	}
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return entities.Each(tx, record.Text(id), func(_ record.Parts, e model.Entity) (bool, error) {
			all = append(all, e)
			return true, nil
		})
	})
	return all, explain("read the entities of "+id, err)
}

// Conflicts are those that merges into a workspace left open, the oldest first.
func (c *Controller) Conflicts(ctx context.Context, tenant, id string) (open []model.Conflict, err error) {
	if _, err := c.space(ctx, reader(tenant), id); err != nil {
		return nil, err
	}
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		open, _, err = conflicts.Get(tx, record.Key(id))
		return err
	})
	return open, explain("read the conflicts of "+id, err)
}

// History lists the journal of a workspace, newest first, without shapes and
// files. Kind is a method, Agent an agent; the page is found by arithmetic
// unless something narrows it.
func (c *Controller) History(ctx context.Context, tenant, id string, f core.Filter) (core.Page[model.Entry], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[model.Entry]{}, err
	}
	if _, err := c.space(ctx, reader(tenant), id); err != nil {
		return core.Page[model.Entry]{}, err
	}
	var items []model.Entry
	total := 0
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		w, err := c.loadWorkspace(tx, id)
		if err != nil {
			return err
		}
		var to record.Key
		plain := !f.Narrows()
		if plain {
			total = w.Seq
			to = record.Seq(uint64(max(0, w.Seq-f.Offset())) + 1)
		}
		return entries.Within(tx, record.Text(id), nil, to, true, func(_ record.Parts, found record.Found[kept]) (bool, error) {
			k, err := found.Value()
			if err != nil {
				return false, err
			}
			e := k.Entry
			at, _ := time.Parse(time.RFC3339Nano, e.At)
			switch {
			case plain:
				items = append(items, e)
				return len(items) < f.Size, nil
			case core.Wants(f.Kind, e.Method) && core.Wants(f.Agent, e.AgentID) && f.Within(at) && f.Finds(e.Method, e.AgentID, string(e.Params)):
				if total >= f.Offset() && len(items) < f.Size {
					items = append(items, e)
				}
				total++
			}
			return true, nil
		})
	})
	return core.NewPage(items, f, total), explain("read the journal of "+id, err)
}

// Shape is the recipe of a solid.
func (c *Controller) Shape(ctx context.Context, tenant, hash string) (s model.Shape, err error) {
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		there := false
		if s, there, err = shapes.Get(tx, record.Key(hash)); err == nil && !there {
			err = core.Missing("shape", hash)
		}
		return err
	})
	return s, err
}

// Journal is the journal of a workspace from an entry on, whole: with shapes
// and files, so that replaying it gives the workspace.
func (c *Controller) Journal(ctx context.Context, tenant, id string, from int) (all []model.Entry, err error) {
	if _, err := c.space(ctx, reader(tenant), id); err != nil {
		return nil, err
	}
	for {
		var some []model.Entry
		err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
			some, err = journalFrom(tx, id, from+len(all))
			return err
		})
		if all = append(all, some...); err != nil || len(some) == 0 {
			return all, err
		}
	}
}
