package env

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// state is what there is to tell of a workspace.
type state struct {
	model.Record

	Entities  map[model.EntityType]int `json:"entities"`
	Count     int                      `json:"entity_count"`
	Volume    float64                  `json:"volume"` // of all solids, mm³
	Seq       int                      `json:"seq"`
	Conflicts []model.Conflict         `json:"conflicts"`
	Current   bool                     `json:"current"` // of this connection
}

func (c *call) stateOf(w *model.Workspace) state {
	s := state{Record: w.Record(), Entities: map[model.EntityType]int{}, Count: w.Len(), Seq: w.Seq(), Conflicts: w.Conflicts()}
	for e := range w.All() {
		s.Entities[e.Type]++
		if e.Type == model.Solid {
			s.Volume += measured(e).Volume
		}
	}
	s.Current = s.ID == c.conn.workspace
	return s
}

// measured is what is stored of a solid's measures, as far as it can be read.
func measured(solid model.Entity) model.Facts {
	f, _ := model.FactsOf(solid)
	return f
}

type createWorkspace struct {
	Name string `json:"workspace_name" need:""`
	// ID of the new workspace; made of the name where nothing is given.
	ID string `json:"workspace_id"`
	// Base is main where nothing is given; "" starts empty.
	Base *string `json:"base_workspace_id"`
}

func (c *call) createWorkspace(p createWorkspace) (any, error) {
	if p.Name == "" || len(p.Name) > 200 || !core.Printable(p.Name) {
		return nil, Invalid("workspace_name", p.Name, "1 to 200 printable bytes")
	}
	p.ID = cmp.Or(p.ID, model.WorkspaceIDOf(p.Name))
	if err := model.CheckWorkspaceID(p.ID); err != nil {
		return nil, err
	}
	if c.env.workspaces[p.ID] != nil {
		return nil, Refuse(WorkspaceConflict, "workspace_id", p.ID, fmt.Sprintf("workspace %s exists", p.ID), "give another workspace_id")
	}
	if err := c.env.room(p.ID); err != nil {
		return nil, err
	}
	record := model.Record{ID: p.ID, Name: p.Name, AgentID: c.AgentID, CreatedAt: c.env.now()}
	base := given(p.Base, model.Main)
	var w *model.Workspace
	var entry model.Entry
	if base == "" {
		var err error
		if w, entry, err = model.New(record, c.signed(model.Change{})); err != nil {
			return nil, err
		}
	} else {
		from, err := c.env.workspace("base_workspace_id", base)
		if err != nil {
			return nil, err
		}
		if w, entry, err = model.Branch(from, record, c.signed(model.Change{})); err != nil {
			return nil, err
		}
		if dir, ok := c.env.places[base]; ok {
			c.env.places[p.ID] = dir
		}
	}
	c.env.keep(w)
	c.entry = &entry
	return c.stateOf(w), nil
}

func (c *call) listWorkspaces(none) (any, error) {
	list := []state{}
	for _, id := range c.env.order {
		list = append(list, c.stateOf(c.env.workspaces[id]))
	}
	return map[string]any{"workspaces": list, "total_count": len(list)}, nil
}

type namedWorkspace struct {
	ID string `json:"workspace_id" need:""`
}

// switchWorkspace changes what requests of this connection mean that name no
// workspace.
func (c *call) switchWorkspace(p namedWorkspace) (any, error) {
	w, err := c.env.workspace("workspace_id", p.ID)
	if err != nil {
		return nil, err
	}
	c.conn.workspace = p.ID
	return c.stateOf(w), nil
}

func (c *call) workspaceStatus(none) (any, error) { return c.stateOf(c.ws), nil }

type between struct {
	From string `json:"source_workspace_id" need:""`
	To   string `json:"target_workspace_id" need:""`
}

// diff lists what makes the source another than the target.
func (c *call) diff(p between) (any, error) {
	source, err := c.env.workspace("source_workspace_id", p.From)
	if err != nil {
		return nil, err
	}
	target, err := c.env.workspace("target_workspace_id", p.To)
	if err != nil {
		return nil, err
	}
	list := model.Diff(target, source)
	return map[string]any{"source_workspace_id": p.From, "target_workspace_id": p.To, "differences": list, "total_count": len(list)}, nil
}

type loadWorkspace struct {
	ID   string `json:"workspace_id" need:""`
	From int    `json:"from"` // the seq of the first entry
	// Entries are those of the journal that are not here yet; from 1 on they
	// replace what is here.
	Entries core.Raw `json:"entries"`
	// Directory is where the workspace's files lie from now on.
	Directory string `json:"directory"`
}

// load takes the journal of a workspace over from an engine. An entry that does
// not fit unloads the workspace, so that it is loaded from the beginning.
func (c *call) load(p loadWorkspace) (any, error) {
	if !c.env.options.Journal {
		return nil, Refuse(OperationInvalid, "method", c.method, "workspaces are loaded only into an environment with a journal", "start it with --journal")
	}
	var entries []model.Entry
	if len(p.Entries) > 0 {
		if err := core.DecodeStored(p.Entries, &entries); err != nil {
			return nil, Refuse(InvalidParameter, "entries", nil, err.Error(), "give entries as this environment made them")
		}
	}
	if slices.ContainsFunc(entries, func(e model.Entry) bool { return e.WorkspaceID != p.ID }) {
		return nil, Invalid("entries", nil, "entries of workspace "+p.ID)
	}
	if len(entries) > 0 && entries[0].Seq != p.From {
		return nil, Invalid("from", p.From, fmt.Sprintf("%d, the seq of the first entry", entries[0].Seq))
	}
	w := c.env.workspaces[p.ID]
	switch {
	case len(entries) > 0 && p.From == 1:
		if err := c.env.room(p.ID); err != nil {
			return nil, err
		}
		fresh, err := model.Load(entries)
		if err != nil {
			return nil, err
		}
		w = fresh
		c.env.keep(w)
	case w == nil:
		return nil, Refuse(WorkspaceConflict, "from", p.From, fmt.Sprintf("workspace %v is not loaded", shown(p.ID)), "load it from entry 1")
	case len(entries) > 0 && p.From != w.Seq()+1:
		return nil, Refuse(WorkspaceConflict, "from", p.From, fmt.Sprintf("workspace %s is at entry %d", p.ID, w.Seq()), fmt.Sprintf("load it from entry %d, or from 1", w.Seq()+1))
	default:
		for _, e := range entries {
			if err := w.Apply(e); err != nil {
				c.env.drop(p.ID)
				return nil, err
			}
		}
	}
	if p.Directory != "" {
		c.env.places[p.ID] = p.Directory
	}
	return map[string]any{"workspace_id": p.ID, "seq": w.Seq(), "loaded": len(entries)}, nil
}

func (c *call) unload(p namedWorkspace) (any, error) {
	if !c.env.options.Journal {
		return nil, Refuse(OperationInvalid, "method", c.method, "workspaces are unloaded only from an environment with a journal", "start it with --journal")
	}
	_, known := c.env.workspaces[p.ID]
	c.env.drop(p.ID)
	return map[string]any{"workspace_id": p.ID, "unloaded": known}, nil
}

type listHistory struct {
	Limit  *int `json:"limit" is:"1 to 1000; 10 where nothing is given"`
	Offset int  `json:"offset"`
	Future bool `json:"include_future" is:"also what was undone and can be redone"`
}

func (p listHistory) check() error {
	_, err := window(p.Limit, p.Offset, 10)
	return err
}

func (c *call) listHistory(p listHistory) (any, error) {
	limit, err := window(p.Limit, p.Offset, 10)
	if err != nil {
		return nil, err
	}
	page, total := c.ws.History(limit, p.Offset, p.Future)
	return map[string]any{
		"operations": append([]model.Operation{}, page...), "total_count": total, "workspace_id": c.ws.Record().ID, "seq": c.ws.Seq(),
	}, nil
}

func (c *call) undo(none) (any, error) { return c.travel(c.ws.Undo) }
func (c *call) redo(none) (any, error) { return c.travel(c.ws.Redo) }

// travel takes one operation back, or brings it back.
func (c *call) travel(step func(model.Change) (model.Entry, error)) (any, error) {
	entry, err := step(c.signed(model.Change{}))
	if err != nil {
		err = Refused(err, OperationInvalid)
		if refused, ok := errors.AsType[*Error](err); ok && refused.Data.Suggestion == "" {
			refused.Data.Suggestion = "history.list with include_future tells what can be undone and redone"
		}
		return nil, err
	}
	c.entry = &entry
	return map[string]any{
		"workspace_id": c.ws.Record().ID, "seq": entry.Seq, "undoes": entry.Undoes, "redoes": entry.Redoes,
		"put": idsOf(entry.Put), "removed": append([]string{}, entry.Removed...),
	}, nil
}
