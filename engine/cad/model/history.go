package model

import (
	"slices"

	"swarmdeck/engine/core"
)

// Operation is one operation of a workspace's history.
type Operation struct {
	Seq     int      `json:"seq"`
	Method  string   `json:"method"`
	Params  core.Raw `json:"params,omitzero"`
	AgentID string   `json:"agent_id,omitzero"`
	At      string   `json:"at,omitzero"`
	Added   []string `json:"added,omitzero"` // ids of entities
	Updated []string `json:"updated,omitzero"`
	Removed []string `json:"removed,omitzero"`
	Undone  bool     `json:"undone,omitzero"`
}

// History lists the operations in effect, the newest first, and how many there
// are. With the future it begins with those that were undone and can be done
// again.
func (w *Workspace) History(limit, offset int, includeFuture bool) (page []Operation, total int) {
	future := w.future
	if !includeFuture {
		future = nil
	}
	total = len(future) + len(w.done)
	for i := max(0, offset); i < total && (limit <= 0 || len(page) < limit); i++ {
		if i < len(future) {
			op := future[i].op
			op.Undone = true
			page = append(page, op)
			continue
		}
		page = append(page, w.done[total-1-i].op)
	}
	return page, total
}

// Undo takes back the newest operation in effect. Of the change, who did it
// and how counts.
func (w *Workspace) Undo(c Change) (Entry, error) {
	if len(w.done) < 2 { // the first made the workspace
		return Entry{}, core.Errorf(core.Conflict, "workspace %s: nothing to undo", w.record.ID)
	}
	e := c.entry(w)
	w.done[len(w.done)-1].backwards(&e)
	return e, w.play(e)
}

// Redo does again what was undone last. Nothing can be done again after a new
// operation.
func (w *Workspace) Redo(c Change) (Entry, error) {
	if len(w.future) == 0 {
		return Entry{}, core.Errorf(core.Conflict, "workspace %s: nothing to redo", w.record.ID)
	}
	e := c.entry(w)
	w.future[len(w.future)-1].forwards(&e)
	return e, w.play(e)
}

// replay carries out an entry that undoes or redoes another.
func (w *Workspace) replay(e Entry) error {
	if err := e.checkHead(); err != nil {
		return err
	}
	from, to, name, kept := &w.done, &w.future, "undo", 1 // the first made the workspace
	if e.Redoes != 0 {
		from, to, name, kept = &w.future, &w.done, "redo", 0
	}
	if len(*from) <= kept {
		return core.Errorf(core.Conflict, "nothing to %s", name)
	}
	s := (*from)[len(*from)-1]
	want := Entry{WorkspaceID: e.WorkspaceID, Seq: e.Seq, Method: e.Method, Params: e.Params, AgentID: e.AgentID, At: e.At}
	if e.Undoes != 0 {
		s.backwards(&want)
	} else {
		s.forwards(&want)
	}
	if !e.same(want) {
		return core.Errorf(core.InvalidInput, "it does not %s operation %d", name, s.op.Seq)
	}
	if e.Undoes != 0 {
		w.backward(s)
	} else {
		w.forward(s)
	}
	*from, *to = (*from)[:len(*from)-1], append(*to, s)
	w.seq = e.Seq
	return nil
}

// backwards writes what taking a step back changes into an entry.
func (s *step) backwards(e *Entry) {
	e.Undoes = s.op.Seq
	for _, c := range s.changes {
		e.write(c.id, c.before)
	}
}

func (s *step) forwards(e *Entry) {
	e.Redoes = s.op.Seq
	for _, c := range s.changes {
		e.write(c.id, c.after)
	}
}

func (e *Entry) write(id string, it *item) {
	if it == nil {
		e.Removed = append(e.Removed, id)
	} else {
		e.Put = append(e.Put, it.Entity)
	}
}

// same compares what two entries change and nothing else.
func (e Entry) same(o Entry) bool {
	return e.Undoes == o.Undoes && e.Redoes == o.Redoes && slices.Equal(e.Removed, o.Removed) &&
		slices.EqualFunc(e.Put, o.Put, func(a, b Entity) bool {
			same := string(a.Properties) == string(b.Properties)
			a.Properties, b.Properties = nil, nil
			return same && equalEntity(a, b)
		}) && len(e.Shapes)+len(e.Blobs)+len(e.Conflicts)+len(e.Resolved) == 0
}

func equalEntity(a, b Entity) bool {
	return a.ID == b.ID && a.Type == b.Type && a.WorkspaceID == b.WorkspaceID && a.Shape == b.Shape &&
		a.Hash == b.Hash && a.Base == b.Base && a.Origin == b.Origin && a.CreatedBy == b.CreatedBy
}
