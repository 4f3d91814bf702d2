package model

import (
	"iter"
	"maps"
	"slices"
	"strconv"

	"swarmdeck/engine/core"
)

// Main is the workspace that others are branched from unless they say
// otherwise.
const Main = "main"

// Workspace is the state that a journal leads to. What an operation costs
// depends on what it changes, not on how many there were before. A Workspace
// belongs to one goroutine; the slices and values it hands out are not to be
// modified.
type Workspace struct {
	record Record
	seq    int

	entities map[string]*item
	order    []*item                    // by place
	last     int                        // the highest place given
	refs     map[string]map[string]bool // constraints by the entity they refer to
	shapes   map[string]Shape
	blobs    map[string][]byte

	base map[string]string  // hashes at the branch
	used map[string]bool    // ids that were ever given, so that none is given twice
	next map[EntityType]int // no number below is free
	gone map[string]bool    // ids that an operation in effect removed

	open    []Conflict                   // never changed in place
	settled map[string]map[string]string // source, entity: the source's hash when it was decided

	done   []*step // in effect, the oldest first
	future []*step // undone, the one to redo last
}

// item is an entity with its place in the order of making. It is never changed.
type item struct {
	Entity

	place int
}

func empty(r Record) *Workspace {
	return &Workspace{
		record: r, entities: map[string]*item{}, refs: map[string]map[string]bool{},
		shapes: map[string]Shape{}, blobs: map[string][]byte{},
		base: map[string]string{}, used: map[string]bool{}, next: map[EntityType]int{}, gone: map[string]bool{},
		settled: map[string]map[string]string{},
	}
}

// Record is the workspace itself.
func (w *Workspace) Record() Record { return w.record }

// ID is the workspace's id.
func (w *Workspace) ID() string { return w.record.ID }

// Seq is that of the last entry.
func (w *Workspace) Seq() int { return w.seq }

// Len is the number of entities.
func (w *Workspace) Len() int { return len(w.order) }

// Entity finds an entity by id.
func (w *Workspace) Entity(id string) (Entity, bool) {
	if it := w.entities[id]; it != nil {
		return it.Entity, true
	}
	return Entity{}, false
}

// Filter narrows a list of entities. Zero fields do not.
type Filter struct {
	Type          EntityType
	Offset, Limit int
}

// Entities lists entities in the order in which they were made, and how many
// there are in all that the filter lets through.
func (w *Workspace) Entities(f Filter) (page []Entity, total int) {
	for e := range w.All() {
		if f.Type != "" && e.Type != f.Type {
			continue
		}
		if total >= f.Offset && (f.Limit <= 0 || len(page) < f.Limit) {
			page = append(page, e)
		}
		total++
	}
	return page, total
}

// All goes through the entities in the order in which they were made.
func (w *Workspace) All() iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		for _, it := range w.order {
			if !yield(it.Entity) {
				return
			}
		}
	}
}

// Shape finds a shape by its hash.
func (w *Workspace) Shape(hash string) (Shape, bool) {
	s, ok := w.shapes[hash]
	return s, ok
}

// Blob finds the content of a file by its hash.
func (w *Workspace) Blob(hash string) ([]byte, bool) {
	b, ok := w.blobs[hash]
	return b, ok
}

// Constraints lists the constraints that refer to an entity, sorted.
func (w *Workspace) Constraints(id string) []string {
	return slices.Sorted(maps.Keys(w.refs[id]))
}

// Conflicts lists what merges into this workspace left open, the oldest first.
func (w *Workspace) Conflicts() []Conflict { return slices.Clone(w.open) }

// NextID is an id for a new entity: point_1 in the main workspace and
// WORKSPACE_point_1 elsewhere, so that ids of several workspaces meet only
// where somebody chose them. An id that was used before, even one that was
// undone, is not given again.
func (w *Workspace) NextID(t EntityType) string { return w.NextIDs(t, 1)[0] }

// NextIDs are ids for that many new entities of one change.
func (w *Workspace) NextIDs(t EntityType, count int) []string {
	prefix := string(t) + "_"
	if w.record.ID != Main {
		prefix = w.record.ID + "_" + prefix
	}
	var ids []string
	for n := max(1, w.next[t]); len(ids) < count; n++ {
		id := prefix + strconv.Itoa(n)
		if w.used[id] {
			continue
		}
		if ids == nil {
			w.next[t] = n
		}
		ids = append(ids, id)
	}
	return ids
}

// at is where an item of a place stands in the order, or would.
func (w *Workspace) at(place int) (int, bool) {
	return slices.BinarySearchFunc(w.order, place, func(it *item, place int) int { return it.place - place })
}

// replace takes an entity from one state to another; nil is absent.
func (w *Workspace) replace(before, after *item) {
	if before != nil {
		w.unlink(before.Entity)
		if after == nil || after.place != before.place {
			at, _ := w.at(before.place)
			w.order = slices.Delete(w.order, at, at+1)
			delete(w.entities, before.ID)
		}
	}
	if after == nil {
		return
	}
	if at, there := w.at(after.place); there {
		w.order[at] = after
	} else {
		w.order = slices.Insert(w.order, at, after)
	}
	w.entities[after.ID] = after
	w.link(after.Entity)
}

func (w *Workspace) link(e Entity) {
	for _, id := range referred(e) {
		if w.refs[id] == nil {
			w.refs[id] = map[string]bool{}
		}
		w.refs[id][e.ID] = true
	}
}

func (w *Workspace) unlink(e Entity) {
	for _, id := range referred(e) {
		delete(w.refs[id], e.ID)
		if len(w.refs[id]) == 0 {
			delete(w.refs, id)
		}
	}
}

// referred lists the entities that a constraint holds, each once; nothing for
// any other entity.
func referred(e Entity) []string {
	if e.Type != Constraint {
		return nil
	}
	var p struct {
		Entities []string `json:"entity_ids"`
	}
	if core.DecodeStored(e.Properties, &p) != nil {
		return nil
	}
	var ids []string
	for _, ref := range p.Entities {
		if id := ref[:len(ref)-len(part(ref))]; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Difference is one entity that two workspaces do not hold alike.
type Difference struct {
	EntityID string     `json:"entity_id"`
	Type     EntityType `json:"entity_type"`
	Change   string     `json:"change"` // added, removed or changed
	Before   *Entity    `json:"before,omitzero"`
	After    *Entity    `json:"after,omitzero"`
}

// Diff lists what makes b another than a: what was changed and removed, in a's
// order, then what was added, in b's.
func Diff(a, b *Workspace) (list []Difference) {
	for _, it := range a.order {
		other := b.entities[it.ID]
		switch before := it.Entity; {
		case other == nil:
			list = append(list, Difference{EntityID: it.ID, Type: it.Type, Change: "removed", Before: &before})
		case other.Hash != it.Hash:
			after := other.Entity
			list = append(list, Difference{EntityID: it.ID, Type: after.Type, Change: "changed", Before: &before, After: &after})
		}
	}
	for _, it := range b.order {
		if after := it.Entity; a.entities[it.ID] == nil {
			list = append(list, Difference{EntityID: it.ID, Type: after.Type, Change: "added", After: &after})
		}
	}
	return list
}
