package model

import (
	"fmt"
	"maps"
	"slices"

	"swarmdeck/engine/core"
)

// Geometry is what a merge asks a kernel. The shapes may be of either
// workspace.
type Geometry interface {
	// Overlap is the volume in mm³ that two solids share; 0 when they are apart
	// or touch.
	Overlap(a, b Entity) (float64, error)
	// Build tells the properties of the solid that a new shape makes.
	Build(s Shape) (core.Raw, error)
}

// Outcome is what a merge or a resolution does to the target.
type Outcome struct {
	// Change is for the target to commit, unless it is empty. Who did it and
	// how is the caller's to fill in.
	Change Change
	// The ids that the change adds to the target, updates and removes there.
	Added, Updated, Removed []string
	// Conflicts is all that is open of this source when the change is done.
	Conflicts []Conflict
}

// Merge brings into a target what a source has changed since they parted or
// last met. It compares by content, three ways (requirement 6.4): what only the
// source has changed is taken, what both have changed is left and reported.
// Beyond ids it keeps two promises.
//
// No geometry overlaps unseen: a solid that would share more than 1e-6 mm³ with
// one that stays in the target is left out and reported, with what it was made
// from kept in its place. How the source's own solids lie to each other is not
// looked at.
//
// No constraint comes to hold what it was not solved for: after the merge all
// that a constraint refers to is what the source had, or what the target had.
// Otherwise a constraint of the source is left out, and where the target's own
// stands in the way, the entity that it holds is.
func Merge(source, target *Workspace, g Geometry) (Outcome, error) {
	m, err := newMerger(source, target, g)
	if err != nil {
		return Outcome{}, err
	}
	m.compare()
	m.findRemovals()
	for _, id := range m.constraints() {
		m.checkConstraint(id)
	}
	if err := m.findOverlaps(); err != nil {
		return Outcome{}, err
	}
	if err := m.settleHeld(); err != nil {
		return Outcome{}, err
	}
	return m.outcome(), nil
}

// merger works out a merge. What it takes only shrinks, so it comes to an end.
type merger struct {
	source, target *Workspace
	space          *space

	ids    []string                // that are not left as they are, in the source's order
	takes  map[string]bool         // taken, as far as known
	same   []string                // on both sides
	held   map[string][]Conflict   // left out, and why; none for one that waits for another
	after  []string                // held ids whose consequences are still to be seen
	hung   map[string][]string     // constraints of either side, by what they refer to
	boxes  map[string]*solidBounds // of the solids taken, also when they were left out later
	stood  map[string]bool         // solids of the target that all those were compared with
	spent  map[string][]string     // solids that the source has removed and the target not changed, by shape
	inputs map[string][]string     // those that a shape was made from
}

func newMerger(source, target *Workspace, g Geometry) (*merger, error) {
	if source.record.ID == target.record.ID {
		return nil, core.Invalid("source_workspace_id", source.record.ID, "another workspace than the target")
	}
	return &merger{
		source: source, target: target, space: &space{geometry: g},
		takes: map[string]bool{}, held: map[string][]Conflict{}, hung: map[string][]string{}, boxes: map[string]*solidBounds{},
		stood: map[string]bool{}, spent: map[string][]string{}, inputs: map[string][]string{},
	}, nil
}

func (m *merger) pair(id string) pair {
	return pair{m.source, m.target, id, m.source.entities[id], m.target.entities[id]}
}

// compare judges every id that the source has, or had.
func (m *merger) compare() {
	for _, it := range m.source.order {
		m.judge(it.ID)
	}
	past := []map[string]string{m.source.base, m.target.settled[m.source.record.ID], m.source.settled[m.target.record.ID]}
	if m.target.record.Base == m.source.record.ID {
		past = append(past, m.target.base)
	}
	had := map[string]bool{}
	for _, known := range past {
		for id := range known {
			had[id] = m.source.entities[id] == nil
		}
	}
	for _, id := range slices.Sorted(maps.Keys(had)) {
		if had[id] {
			m.judge(id)
		}
	}
}

func (m *merger) judge(id string) {
	p := m.pair(id)
	switch v, why := p.judge(); v {
	case agree:
		m.same = append(m.same, id)
	case take:
		m.ids, m.takes[id] = append(m.ids, id), true
	case conflict:
		m.ids = append(m.ids, id)
		m.held[id] = []Conflict{p.conflict(why)}
		m.after = append(m.after, id)
	}
}

// result is what the target holds under an id when all that is still taken is
// taken.
func (m *merger) result(id string) *item {
	if m.takes[id] {
		return m.source.entities[id]
	}
	return m.target.entities[id]
}

// hold leaves an id out after all, or for one more reason.
func (m *merger) hold(id string, why ...Conflict) {
	m.held[id] = append(m.held[id], why...)
	if m.takes[id] {
		m.takes[id] = false
		m.after = append(m.after, id)
	}
}

// settleHeld follows what is left out until nothing more has to be.
func (m *merger) settleHeld() error {
	for len(m.after) > 0 {
		id := m.after[0]
		m.after = m.after[1:]
		for _, k := range m.hung[id] {
			m.checkConstraint(k)
		}
		if it := m.source.entities[id]; it != nil && it.Type == Solid {
			for _, input := range m.consumed(it.Entity) {
				if m.takes[input] && !m.livesOn(input) {
					m.hold(input)
				}
			}
		}
		if err := m.stays(id); err != nil {
			return err
		}
	}
	return nil
}

// findRemovals notes the solids that the source has removed.
func (m *merger) findRemovals() {
	for _, id := range m.ids {
		if t := m.target.entities[id]; m.takes[id] && m.source.entities[id] == nil && t.Type == Solid {
			m.spent[t.Shape] = append(m.spent[t.Shape], id)
		}
	}
}

// consumed lists the solids of the target that the source has used up on the
// way to a solid of its own, unless the target has changed them.
func (m *merger) consumed(e Entity) (ids []string) {
	if len(m.spent) == 0 {
		return nil
	}
	if ids, known := m.inputs[e.Shape]; known {
		return ids
	}
	made := map[string]bool{}
	m.source.ancestors(e.Shape, made)
	for hash := range made {
		ids = append(ids, m.spent[hash]...)
	}
	slices.Sort(ids)
	m.inputs[e.Shape] = ids
	return ids
}

// livesOn reports whether something that is taken was made from a solid that is
// removed.
func (m *merger) livesOn(id string) bool {
	for other := range m.boxes {
		if m.takes[other] && slices.Contains(m.consumed(m.source.entities[other].Entity), id) {
			return true
		}
	}
	return false
}

// ancestors gathers the hashes of the shapes that a shape is made from.
func (w *Workspace) ancestors(hash string, into map[string]bool) {
	for _, input := range w.shapes[hash].Inputs {
		if !into[input] {
			into[input] = true
			w.ancestors(input, into)
		}
	}
}

func (m *merger) outcome() Outcome {
	source := m.source.record.ID
	c, need := Change{}, newNeeds(m.target)
	decided := map[string]bool{}
	decide := func(id string) {
		decided[id] = true
		c.Resolved = append(c.Resolved, Resolved{EntityID: id, Source: source, SourceHash: hashOf(m.source.entities[id]), Strategy: NoConflict})
	}
	was := m.target.openOf(source)
	for _, id := range m.ids {
		it := m.source.entities[id]
		switch {
		case !m.takes[id]:
			if !slices.Equal(m.held[id], was[id]) {
				c.Conflicts = append(c.Conflicts, m.held[id]...)
			}
			continue
		case it == nil:
			c.Removed = append(c.Removed, id)
		default:
			c.Put = append(c.Put, it.Entity)
			need.add(m.source, it.Entity)
		}
		decide(id)
	}
	for _, id := range m.same {
		decide(id)
	}
	for _, o := range m.target.open { // what is none any more
		if _, held := m.held[o.EntityID]; o.Source == source && !held && !decided[o.EntityID] {
			decide(o.EntityID)
		}
	}
	c.Shapes, c.Blobs = need.shapes, need.blobs
	return m.target.outcome(c, source)
}

func (w *Workspace) openOf(source string) map[string][]Conflict {
	list := map[string][]Conflict{}
	for _, c := range w.open {
		if c.Source == source {
			list[c.EntityID] = append(list[c.EntityID], c)
		}
	}
	return list
}

// outcome tells what a change will have done to this workspace.
func (w *Workspace) outcome(c Change, source string) Outcome {
	o := Outcome{Change: c, Removed: c.Removed}
	for _, e := range c.Put {
		if w.entities[e.ID] == nil {
			o.Added = append(o.Added, e.ID)
		} else {
			o.Updated = append(o.Updated, e.ID)
		}
	}
	touched := map[string]bool{}
	for _, r := range c.Resolved {
		touched[r.EntityID] = true
	}
	for _, k := range c.Conflicts {
		touched[k.EntityID] = true
	}
	for _, k := range w.open {
		if k.Source == source && !touched[k.EntityID] {
			o.Conflicts = append(o.Conflicts, k)
		}
	}
	o.Conflicts = append(o.Conflicts, c.Conflicts...)
	return o
}

// constraints lists those of both sides, and notes what they refer to.
func (m *merger) constraints() (ids []string) {
	for _, w := range []*Workspace{m.source, m.target} {
		for _, it := range w.order {
			if it.Type != Constraint {
				continue
			}
			ids = append(ids, it.ID)
			for _, id := range referred(it.Entity) {
				m.hung[id] = append(m.hung[id], it.ID)
			}
		}
	}
	return ids
}

// checkConstraint leaves out what would make a constraint hold something that
// it was not solved for.
func (m *merger) checkConstraint(id string) {
	k := m.result(id)
	if k == nil || k.Type != Constraint || m.solvedBy(m.source, k) == "" {
		return
	}
	with := m.solvedBy(m.target, k)
	if with == "" {
		return
	}
	if m.takes[id] {
		with = m.solvedBy(m.source, k)
		why := m.pair(id).about(BothModified)
		why.Description = fmt.Sprintf("%s refers to %s, which is not the same in %s", id, with, why.Target)
		if m.result(with) == nil {
			why.Type = DeletedModified
			why.Description = fmt.Sprintf("%s refers to %s, which %s does not have", id, with, why.Target)
		}
		why.WithID = with
		m.hold(id, why)
		return
	}
	for _, ref := range referred(k.Entity) {
		if !m.takes[ref] {
			continue
		}
		why := m.pair(ref).about(BothModified)
		why.Description = fmt.Sprintf("%s was changed in %s, but constraint %s of %s holds it", ref, why.Source, id, why.Target)
		if m.source.entities[ref] == nil {
			why.Type = DeletedModified
			why.Description = fmt.Sprintf("%s was deleted in %s, but constraint %s of %s holds it", ref, why.Source, id, why.Target)
		}
		why.WithID = id
		m.hold(ref, why)
	}
}

// solvedBy reports whether a workspace has a constraint with all that it holds
// as they will be: it answers "" or what is not so.
func (m *merger) solvedBy(w *Workspace, k *item) string {
	if hashOf(w.entities[k.ID]) != k.Hash {
		return k.ID
	}
	for _, id := range referred(k.Entity) {
		if now := m.result(id); now == nil || hashOf(w.entities[id]) != now.Hash {
			return id
		}
	}
	return ""
}
