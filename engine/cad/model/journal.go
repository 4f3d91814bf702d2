package model

import (
	"fmt"
	"slices"
	"strconv"

	"swarmdeck/engine/core"
)

// Change is what one operation does to a workspace. Of the entities put, ID,
// Type, Properties and Shape are given; what follows from them is filled in.
type Change struct {
	Method  string
	Params  core.Raw
	AgentID string
	At      string

	Put       []Entity
	Removed   []string
	Shapes    []Shape // that the entities put need; those the workspace has are left out
	Blobs     []Blob
	Resolved  []Resolved
	Conflicts []Conflict
}

// Empty reports a change that changes nothing.
func (c Change) Empty() bool {
	return len(c.Put)+len(c.Removed)+len(c.Resolved)+len(c.Conflicts) == 0
}

// entry is the change as the next entry of a workspace, its content still as
// it was given.
func (c Change) entry(w *Workspace) Entry {
	return Entry{WorkspaceID: w.record.ID, Seq: w.seq + 1, Method: c.Method, Params: c.Params, AgentID: c.AgentID, At: c.At}
}

// New makes an empty workspace. Of the change, who did it and how counts.
func New(r Record, c Change) (*Workspace, Entry, error) {
	if r.Base != "" {
		return nil, Entry{}, core.Invalid("base_workspace_id", r.Base, "nothing for a workspace that starts empty")
	}
	return begin(r, c.entry(empty(r)))
}

// Branch makes a workspace that starts as a copy of another. Its first entry
// holds all it needs.
func Branch(base *Workspace, r Record, c Change) (*Workspace, Entry, error) {
	r.Base = base.record.ID
	e := c.entry(empty(r))
	need := newNeeds(empty(r))
	for b := range base.All() {
		b.WorkspaceID, b.Base = r.ID, b.Hash
		e.Put = append(e.Put, b)
		need.add(base, b)
	}
	e.Shapes, e.Blobs = need.shapes, need.blobs
	return begin(r, e)
}

func begin(r Record, e Entry) (*Workspace, Entry, error) {
	e.Record = &r
	w := empty(r)
	if err := w.Apply(e); err != nil {
		return nil, Entry{}, err
	}
	return w, e, nil
}

// Load replays a journal from its first entry.
func Load(entries []Entry) (*Workspace, error) {
	if len(entries) == 0 || entries[0].Record == nil {
		return nil, core.Errorf(core.InvalidInput, "a journal begins with the entry that made the workspace")
	}
	w := empty(*entries[0].Record)
	for _, e := range entries {
		if err := w.Apply(e); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Apply replays the next entry. One that does not follow, or that does not say
// what it must, is refused and changes nothing.
func (w *Workspace) Apply(e Entry) error {
	if e.WorkspaceID != w.record.ID {
		return core.Errorf(core.InvalidInput, "entry %d is of workspace %q, not of %q", e.Seq, e.WorkspaceID, w.record.ID)
	}
	if e.Seq != w.seq+1 {
		return core.Errorf(core.InvalidInput, "workspace %s: entry %d can't follow entry %d", w.record.ID, e.Seq, w.seq)
	}
	if err := w.play(e); err != nil {
		return fmt.Errorf("workspace %s: entry %d: %w", w.record.ID, e.Seq, err)
	}
	return nil
}

func (w *Workspace) play(e Entry) error {
	if (e.Record != nil) != (e.Seq == 1) {
		return core.Errorf(core.InvalidInput, "the first entry, and no other, makes the workspace")
	}
	if e.Undoes != 0 || e.Redoes != 0 {
		return w.replay(e)
	}
	if e.Record != nil {
		if err := e.Record.check(e); err != nil {
			return err
		}
	}
	s, err := w.prepare(e)
	if err != nil {
		return err
	}
	w.do(s, e)
	w.future = nil
	return nil
}

// Commit does a change, all of it or nothing, and returns its entry.
func (w *Workspace) Commit(c Change) (Entry, error) {
	if c.Empty() {
		return Entry{}, core.Errorf(core.InvalidInput, "%s changes nothing", c.Method)
	}
	e := c.entry(w)
	e.Removed, e.Blobs = slices.Clone(c.Removed), slices.Clone(c.Blobs)
	e.Resolved, e.Conflicts = slices.Clone(c.Resolved), slices.Clone(c.Conflicts)
	for _, s := range c.Shapes {
		if _, have := w.shapes[s.Hash]; !have {
			e.Shapes = append(e.Shapes, s)
		}
	}
	e.Blobs = slices.DeleteFunc(e.Blobs, func(b Blob) bool { return w.blobs[b.Hash] != nil })
	for _, p := range c.Put {
		p, err := w.complete(p, e)
		if err != nil {
			return Entry{}, err
		}
		e.Put = append(e.Put, p)
	}
	if err := w.play(e); err != nil {
		return Entry{}, err
	}
	return e, nil
}

// complete fills in what follows from the definition of an entity.
func (w *Workspace) complete(p Entity, e Entry) (Entity, error) {
	var err error
	if p.Properties, err = object("properties", p.Properties, MaxProperties); err != nil {
		return Entity{}, fmt.Errorf("entity %s: %w", p.ID, err)
	}
	if p.Hash, err = hashEntity(p); err != nil {
		return Entity{}, fmt.Errorf("entity %s: %w", p.ID, err)
	}
	p.WorkspaceID, p.Base = w.record.ID, w.base[p.ID]
	if old := w.entities[p.ID]; old != nil {
		p.Origin, p.CreatedBy = either(p.Origin, old.Origin), either(p.CreatedBy, old.CreatedBy)
	}
	p.Origin, p.CreatedBy = either(p.Origin, w.record.ID+":"+strconv.Itoa(e.Seq)), either(p.CreatedBy, e.AgentID)
	return p, nil
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
