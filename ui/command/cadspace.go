package command

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// cadWorkspaces has more commands appended.
func (t *tree) cadWorkspaces(more ...*cobra.Command) *cobra.Command {
	return t.group("workspace", "What the CAD agents build", append([]*cobra.Command{
		t.cadWorkspaceCreate(),
		lists(t, spec{
			use: "list", short: "List the workspaces, newest first; --kind is a kernel, --agent who made it", effect: Reads,
		}, nil, workspaceColumns, func(c *call, f core.Filter) (core.Page[cad.Workspace], error) {
			return c.eng.CAD.Workspaces(c.ctx, c.by.Tenant, f)
		}),
		t.command(spec{
			use: "show ID", short: "Show a workspace", effect: Reads, args: []string{"workspace"},
			run: shows(func(c *call, id string) (cad.Workspace, error) { return c.eng.CAD.Workspace(c.ctx, c.by.Tenant, id) }),
		}),
		paged(t, "entities ID", "List what is in a workspace, by id; --kind is a type", entityColumns, func(c *call, id string, f core.Filter) (core.Page[model.Entity], error) {
			return c.eng.CAD.Entities(c.ctx, c.by.Tenant, id, f)
		}),
		paged(t, "history ID", "List the operations of a workspace, newest first; --kind is a method", entryColumns, func(c *call, id string, f core.Filter) (core.Page[model.Entry], error) {
			return c.eng.CAD.History(c.ctx, c.by.Tenant, id, f)
		}),
		t.command(spec{
			use: "conflicts ID", short: "List what merges into a workspace left undecided", effect: Reads, args: []string{"workspace"},
			run: func(c *call, args []string) error {
				open, err := c.eng.CAD.Conflicts(c.ctx, c.by.Tenant, args[0])
				if err != nil {
					return err
				}
				return list(c, core.Page[model.Conflict]{Items: open}, conflictColumns())
			},
		}),
		t.command(spec{
			use: "directory ID [DIR]", short: "Set where the files of a workspace lie; without DIR the default place", effect: Writes, args: []string{"workspace", "dir"},
			run: func(c *call, args []string) error {
				dir := ""
				if len(args) == 2 {
					dir = c.env.path(args[1])
				}
				made, err := c.eng.CAD.SetDirectory(c.ctx, c.by, args[0], dir)
				if err != nil {
					return err
				}
				return record(c, made, workspaceColumns(c))
			},
		}),
	}, more...)...)
}

// paged makes a command that prints a page of what a workspace has.
func paged[T any](t *tree, use, short string, cols func(*call) []column[T], page func(*call, string, core.Filter) (core.Page[T], error)) *cobra.Command {
	var l filter
	var f core.Filter
	return t.command(spec{
		use: use, short: short, effect: Reads, args: []string{"workspace"},
		flags: func(set *pflag.FlagSet) { l.bind(set) },
		check: func(c *call, _ []string) (err error) { f, err = l.read(c); return err },
		run: func(c *call, args []string) error {
			found, err := page(c, args[0], f)
			if err != nil {
				return err
			}
			return list(c, found, cols(c))
		},
	})
}

func (t *tree) cadWorkspaceCreate() *cobra.Command {
	var w cad.CreateWorkspace
	return t.command(spec{
		use: "create ID", short: "Make a workspace, empty or as a copy of another", effect: Writes,
		example: "cad workspace create ws_lid --base main --kernel occt",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&w.Name, "name", "", "`NAME` for people (default the id)")
			f.StringVar(&w.Base, "base", "", "begin as a copy of this workspace `ID`")
			f.StringVar(&w.Kernel, "kernel", "", "what models its solids: `KERNEL` embedded or occt")
			f.StringVar(&w.Directory, "dir", "", "where its files lie: `DIR`")
			source(f, "base", "workspace")
			source(f, "kernel", "enum:embedded,occt")
			source(f, "dir", "dir")
		},
		run: func(c *call, args []string) error {
			w.WorkspaceID = args[0]
			if w.Directory != "" {
				w.Directory = c.env.path(w.Directory)
			}
			made, err := c.eng.CAD.CreateWorkspace(c.ctx, c.by, w)
			if err != nil {
				return err
			}
			return record(c, made, workspaceColumns(c))
		},
	})
}

func workspaceColumns(c *call) []column[cad.Workspace] {
	type W = cad.Workspace
	return []column[W]{
		{title: "WORKSPACE", text: func(w W) string { return w.WorkspaceID }},
		{title: "NAME", wide: true, text: func(w W) string { return w.Name }},
		{title: "BASE", text: func(w W) string { return w.Base }},
		{title: "KERNEL", text: func(w W) string { return cmp.Or(w.Kernel, "default") }},
		{title: "ENTITIES", right: true, text: func(w W) string { return count(int64(w.EntityCount)) }},
		{title: "SOLIDS", right: true, text: func(w W) string { return count(int64(w.SolidCount)) }},
		{title: "CONFLICTS", right: true, text: func(w W) string { return count(int64(w.Conflicts)) }},
		{title: "OPERATIONS", right: true, text: func(w W) string { return count(int64(w.Seq)) }},
		{title: "CHANGED", right: true, text: func(w W) string { return c.age(w.UpdatedAt.Time()) }},
		{title: "BY", text: func(w W) string { return w.AgentID }},
		{title: "CREATED", wide: true, text: func(w W) string { return stamp(w.CreatedAt.Time()) }},
		{title: "DIRECTORY", wide: true, text: func(w W) string { return w.Directory }},
	}
}

func entityColumns(*call) []column[model.Entity] {
	type E = model.Entity
	return []column[E]{
		{title: "ENTITY", text: func(e E) string { return e.ID }},
		{title: "TYPE", text: func(e E) string { return string(e.Type) }},
		{title: "BY", text: func(e E) string { return e.CreatedBy }},
		{title: "HASH", wide: true, text: func(e E) string { return e.Hash }},
		{title: "SHAPE", wide: true, text: func(e E) string { return e.Shape }},
		{title: "PROPERTIES", most: 80, text: func(e E) string { return string(e.Properties) }},
	}
}

func entryColumns(c *call) []column[model.Entry] {
	type E = model.Entry
	return []column[E]{
		{title: "SEQ", right: true, text: func(e E) string { return fmt.Sprint(e.Seq) }},
		{title: "METHOD", text: func(e E) string { return e.Method }},
		{title: "BY", text: func(e E) string { return e.AgentID }},
		{title: "AGE", right: true, text: func(e E) string {
			at, err := time.Parse(time.RFC3339Nano, e.At)
			if err != nil {
				return ""
			}
			return c.age(at)
		}},
		{title: "PUT", right: true, text: func(e E) string { return count(int64(len(e.Put))) }},
		{title: "REMOVED", right: true, text: func(e E) string { return count(int64(len(e.Removed))) }},
		{title: "PARAMS", most: 60, text: func(e E) string { return string(e.Params) }},
	}
}

func conflictColumns() []column[model.Conflict] {
	type C = model.Conflict
	return []column[C]{
		{title: "ENTITY", text: func(c C) string { return c.EntityID }},
		{title: "CONFLICT", text: func(c C) string { return string(c.Type) }},
		{title: "SOURCE", text: func(c C) string { return c.Source }},
		{title: "WITH", text: func(c C) string { return c.WithID }},
		{title: "DESCRIPTION", most: 80, text: func(c C) string { return c.Description }},
	}
}
