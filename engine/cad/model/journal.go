package model

import (
	"cmp"
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
	e.Removed, e.Resolved, e.Conflicts = slices.Clone(c.Removed), slices.Clone(c.Resolved), slices.Clone(c.Conflicts)
	e.Shapes = slices.DeleteFunc(slices.Clone(c.Shapes), func(s Shape) bool { return w.shapes[s.Hash].Hash != "" })
	e.Blobs = slices.DeleteFunc(slices.Clone(c.Blobs), func(b Blob) bool { return w.blobs[b.Hash] != nil })
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
	if p.Properties, err = object("properties", p.Properties, MaxProperties); err == nil {
		p.Hash, err = hashEntity(p)
	}
	if err != nil {
		return Entity{}, fmt.Errorf("entity %s: %w", p.ID, err)
	}
	p.WorkspaceID, p.Base = w.record.ID, w.base[p.ID]
	old := w.entities[p.ID]
	if old == nil {
		old = &item{}
	}
	p.Origin = cmp.Or(p.Origin, old.Origin, w.record.ID+":"+strconv.Itoa(e.Seq))
	p.CreatedBy = cmp.Or(p.CreatedBy, old.CreatedBy, e.AgentID)
	return p, nil
}

// needs gathers the shapes and files behind solids that a workspace lacks,
// inputs before what is made of them.
type needs struct {
	w      *Workspace
	taken  map[string]bool
	shapes []Shape
	blobs  []Blob
}

func newNeeds(w *Workspace) *needs { return &needs{w: w, taken: map[string]bool{}} }

// add takes what an entity of another workspace needs.
func (n *needs) add(from *Workspace, e Entity) {
	if e.Type == Solid {
		n.shape(from, e.Shape)
	}
}

func (n *needs) shape(from *Workspace, hash string) {
	if n.w.shapes[hash].Hash != "" || n.taken[hash] {
		return
	}
	n.taken[hash] = true
	s := from.shapes[hash]
	for _, input := range s.Inputs {
		n.shape(from, input)
	}
	if s.Blob != "" && n.w.blobs[s.Blob] == nil && !n.taken[s.Blob] {
		n.taken[s.Blob] = true
		n.blobs = append(n.blobs, Blob{Hash: s.Blob, Data: from.blobs[s.Blob]})
	}
	n.shapes = append(n.shapes, s)
}
