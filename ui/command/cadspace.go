package command

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
)

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

func conflictColumns(*call) []column[model.Conflict] {
	type C = model.Conflict
	return []column[C]{
		{title: "ENTITY", text: func(c C) string { return c.EntityID }},
		{title: "CONFLICT", text: func(c C) string { return string(c.Type) }},
		{title: "SOURCE", text: func(c C) string { return c.Source }},
		{title: "WITH", text: func(c C) string { return c.WithID }},
		{title: "DESCRIPTION", most: 80, text: func(c C) string { return c.Description }},
	}
}

func doneColumns(*call) []column[cad.Done] {
	type D = cad.Done
	return []column[D]{
		{title: "WORKSPACE", text: func(d D) string { return d.WorkspaceID }},
		{title: "SEQ", right: true, text: func(d D) string {
			if d.Seq == 0 {
				return "unchanged"
			}
			return fmt.Sprint(d.Seq)
		}},
		{title: "PUT", most: 60, text: func(d D) string { return strings.Join(d.Entities, ",") }},
		{title: "REMOVED", most: 40, text: func(d D) string { return strings.Join(d.Removed, ",") }},
	}
}
