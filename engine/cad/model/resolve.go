package model

import (
	"fmt"
	"slices"

	"swarmdeck/engine/core"
)

// Resolution is how somebody decides about an entity of a source.
type Resolution struct {
	EntityID string
	Strategy Strategy
	// Merged is a JSON object for manual_merge: the new properties of a point, a
	// curve or a constraint, or {"operation": …} with
	//   union      of solids: one solid of all that were in conflict, under the
	//              source's id
	//   subtract   of solids that overlap: the source's solid is cut out of the
	//              target's, and all stay
	//   keep_both  of solids that overlap: all stay as they are; where an id
	//              means two things: the source's comes in under a new id, or
	//              under "entity_id"
	Merged core.Raw
}

// Resolve decides what is open of an entity of a source.
//
// keep_source makes the target hold what the source holds: solids of the target
// that overlap it go, what it was made from goes, constraints on what was
// deleted go, and a constraint brings what it refers to. keep_target leaves the
// target as it is. With what is kept of the source come the constraints that
// only waited for it.
//
// A conflict that has changed since it was reported is refused: merge again. A
// version that overlaps a solid which nobody was told of is not taken; that
// overlap is left open instead, for the next resolution.
func Resolve(source, target *Workspace, r Resolution, g Geometry) (Outcome, error) {
	m, err := newMerger(source, target, g)
	if err != nil {
		return Outcome{}, err
	}
	open := target.openOf(source.record.ID)[r.EntityID]
	if len(open) == 0 {
		return Outcome{}, core.Missing("open conflict of entity", r.EntityID).With("field", "entity_id")
	}
	d := &decision{merger: m, id: r.EntityID, s: source.entities[r.EntityID], t: target.entities[r.EntityID], r: r, open: open, need: newNeeds(target)}
	if err := d.fresh(); err != nil {
		return Outcome{}, err
	}
	m.compare()
	m.findRemovals()
	if err := d.decide(); err != nil {
		return Outcome{}, err
	}
	d.c.Shapes, d.c.Blobs = append(d.need.shapes, d.made...), d.need.blobs
	return target.outcome(d.c, source.record.ID), nil
}

type decision struct {
	*merger

	id   string
	s, t *item // what the source and the target hold
	r    Resolution
	open []Conflict
	c    Change
	need *needs
	made []Shape
}

// fresh reports a conflict that is not any more what was reported.
func (d *decision) fresh() error {
	v, _ := d.pair(d.id).judge()
	for _, c := range d.open {
		was := c.TargetHash
		if c.Type == GeometryOverlap { // that hash is of the other solid
			was = c.BaseHash
		}
		if c.SourceHash != hashOf(d.s) || was != hashOf(d.t) && (c.Type != GeometryOverlap || v != take) {
			return core.Errorf(core.Conflict, "entity %s has changed since the merge reported it; merge again", d.id).With("field", "entity_id")
		}
	}
	return nil
}

func (d *decision) decide() error {
	switch d.r.Strategy {
	case KeepTarget:
		d.resolved(d.id, KeepTarget)
		if d.s != nil && d.s.Type == Solid {
			for _, id := range d.consumed(d.s.Entity) {
				d.resolved(id, KeepTarget)
			}
		}
		return nil
	case KeepSource:
		return d.keepSource()
	case ManualMerge:
		return d.manual()
	}
	return core.Invalid("strategy", string(d.r.Strategy), "keep_source, keep_target or manual_merge")
}

func (d *decision) resolved(id string, s Strategy) {
	d.c.Resolved = append(d.c.Resolved, Resolved{EntityID: id, Source: d.source.record.ID, SourceHash: hashOf(d.source.entities[id]), Strategy: s})
}

func (d *decision) keepSource() error {
	if d.s == nil {
		d.remove(d.id)
		d.resolved(d.id, KeepSource)
		return nil
	}
	if d.s.Type == Solid {
		over, told, err := d.overlaps()
		if err != nil || !told {
			return err
		}
		for _, id := range over {
			d.remove(id)
		}
		d.replaces(KeepSource)
	}
	d.bring(d.s.Entity)
	d.resolved(d.id, KeepSource)
	d.follow()
	return nil
}

// replaces removes what the source's solid was made from.
func (d *decision) replaces(s Strategy) {
	for _, id := range d.consumed(d.s.Entity) {
		d.remove(id)
		d.resolved(id, s)
	}
}

// overlaps lists the solids of the target that the source's solid overlaps. If
// there is one that was not told of, they are left open instead.
func (d *decision) overlaps() (ids []string, told bool, err error) {
	mine := boundsOf(d.s.Entity)
	used := d.consumed(d.s.Entity)
	var near []*solidBounds
	for _, it := range d.target.order {
		if it.Type == Solid && it.ID != d.id && !d.pair(it.ID).brought() && !slices.Contains(used, it.ID) {
			near = append(near, boundsOf(it.Entity))
		}
	}
	list, err := d.overlapping(mine, near)
	if err != nil {
		return nil, false, err
	}
	for _, c := range list {
		if !slices.ContainsFunc(d.open, func(o Conflict) bool { return o.Type == GeometryOverlap && o.WithID == c.WithID }) {
			for i := range list {
				list[i].BaseHash = hashOf(d.t) // it is decided that this may go
			}
			d.c.Conflicts = list
			return nil, false, nil
		}
		ids = append(ids, c.WithID)
	}
	return ids, true, nil
}

// bring puts an entity of the source into the target, with what a constraint
// refers to and the target lacks.
func (d *decision) bring(e Entity) {
	for _, id := range referred(e) {
		if it := d.source.entities[id]; d.target.entities[id] == nil && it != nil && !d.putting(id) {
			d.bring(it.Entity)
			d.resolved(id, KeepSource)
		}
	}
	d.c.Put = append(d.c.Put, e)
	d.need.add(d.source, e)
}

func (d *decision) putting(id string) bool {
	return slices.ContainsFunc(d.c.Put, func(e Entity) bool { return e.ID == id })
}

// remove takes an entity out of the target with the constraints on it.
func (d *decision) remove(id string) {
	if d.target.entities[id] == nil || slices.Contains(d.c.Removed, id) {
		return
	}
	d.c.Removed = append(d.c.Removed, id)
	for _, k := range d.target.Constraints(id) {
		d.remove(k)
	}
}

// follow brings the constraints that waited for what was decided now.
func (d *decision) follow() {
	clear(d.takes)
	for _, e := range d.c.Put {
		d.takes[e.ID] = true
	}
	for _, c := range d.target.open {
		k := d.source.entities[c.EntityID]
		if c.Source != d.source.record.ID || k == nil || k.Type != Constraint || c.WithID == "" || k.Hash != c.SourceHash || d.putting(c.EntityID) {
			continue
		}
		d.takes[c.EntityID] = true
		if d.solvedBy(d.source, k) != "" {
			d.takes[c.EntityID] = false
			continue
		}
		d.bring(k.Entity)
		d.resolved(c.EntityID, NoConflict)
	}
}

// manual carries out what somebody wrote down.
func (d *decision) manual() error {
	merged, err := object("merged_properties", d.r.Merged, MaxProperties)
	if err != nil {
		return err
	}
	var how struct {
		Operation string `json:"operation"`
		EntityID  string `json:"entity_id"`
	}
	if len(merged) == 0 || core.DecodeStored(merged, &how) != nil {
		return core.Invalid("merged_properties", string(d.r.Merged), `an object: the properties of a curve, or {"operation":"union"}, subtract or keep_both`)
	}
	solid := d.s != nil && d.s.Type == Solid || d.s == nil && d.t.Type == Solid
	switch {
	case how.Operation == "keep_both" && d.s != nil && (d.t != nil || d.open[0].Type == GeometryOverlap):
		err = d.keepBoth(how.EntityID)
	case solid && how.Operation == "union" && d.s != nil:
		err = d.union()
	case solid && how.Operation == "subtract" && d.open[0].Type == GeometryOverlap:
		err = d.subtract()
	case solid || how.Operation != "":
		return core.Invalid("merged_properties.operation", how.Operation, "union, subtract or keep_both, where both sides have a solid")
	default:
		err = d.rewrite(merged)
	}
	if err != nil || len(d.c.Conflicts) > 0 {
		return err
	}
	d.resolved(d.id, ManualMerge)
	return nil
}

// rewrite gives a curve, a point or a constraint new properties.
func (d *decision) rewrite(properties core.Raw) error {
	e := Entity{ID: d.id}
	switch {
	case d.s != nil && d.t != nil && d.s.Type != d.t.Type:
		return core.Invalid("merged_properties", "properties", fmt.Sprintf(`{"operation":"keep_both"}: %s is a %s in one workspace and a %s in the other`, d.id, d.s.Type, d.t.Type))
	case d.s != nil:
		e = d.s.Entity
	default:
		e = d.t.Entity
	}
	if d.t != nil {
		e.Origin, e.CreatedBy = d.t.Origin, d.t.CreatedBy
	}
	e.Properties = properties
	d.bring(e)
	return nil
}

// keepBoth takes the source's version beside what the target has.
func (d *decision) keepBoth(newID string) error {
	e := d.s.Entity
	if e.Type == Solid {
		_, told, err := d.overlaps()
		if err != nil || !told {
			return err
		}
	}
	if d.open[0].Type != GeometryOverlap {
		if newID == "" {
			newID = d.target.NextID(e.Type)
		}
		if err := CheckID("merged_properties.entity_id", newID); err != nil {
			return err
		}
		if d.target.entities[newID] != nil {
			return core.Invalid("merged_properties.entity_id", newID, "an id that the target does not have")
		}
		e.ID, e.Origin = newID, ""
	}
	if e.Type == Solid {
		d.replaces(ManualMerge)
	}
	d.bring(e)
	return nil
}

// union makes one solid of all that are in conflict.
func (d *decision) union() error {
	over, told, err := d.overlaps()
	if err != nil || !told {
		return err
	}
	inputs := []string{d.s.Shape}
	if d.open[0].Type != GeometryOverlap {
		if d.t == nil || d.t.Type != Solid {
			return core.Invalid("merged_properties.operation", "union", "keep_source or keep_target where only one side has a solid")
		}
		inputs = append(inputs, d.t.Shape)
	}
	for _, id := range over {
		inputs = append(inputs, d.target.entities[id].Shape)
		d.remove(id)
	}
	e := d.s.Entity
	d.need.add(d.source, e)
	if len(inputs) > 1 { // what it overlapped may be gone
		if e, err = d.build("union", e, inputs...); err != nil {
			return err
		}
	}
	d.replaces(ManualMerge)
	d.c.Put = append(d.c.Put, e)
	return nil
}

// subtract cuts the source's solid out of those it overlaps.
func (d *decision) subtract() error {
	over, told, err := d.overlaps()
	if err != nil || !told {
		return err
	}
	d.bring(d.s.Entity)
	for _, id := range over {
		t := d.target.entities[id]
		cut, err := d.build("subtract", t.Entity, t.Shape, d.s.Shape)
		if err != nil {
			return err
		}
		d.c.Put = append(d.c.Put, cut)
	}
	d.replaces(ManualMerge)
	return nil
}

func (d *decision) build(op string, e Entity, inputs ...string) (Entity, error) {
	s, err := NewShape(op, core.Raw("{}"), inputs, "")
	if err != nil {
		return Entity{}, err
	}
	if e.Properties, err = d.space.geometry.Build(s); err != nil {
		return Entity{}, fmt.Errorf("%s for entity %s: %w", op, e.ID, err)
	}
	if d.target.shapes[s.Hash].Hash == "" {
		d.made = append(d.made, s)
	}
	e.Shape = s.Hash
	return e, nil
}
