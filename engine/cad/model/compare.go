package model

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// verdict is what a merge does about one id.
type verdict int

const (
	leave    verdict = iota // the target stays as it is
	agree                   // both sides have come to hold the same
	take                    // the source's version, or its removal
	conflict                // a person or a strategy decides
)

// pair compares what two workspaces hold under one id.
type pair struct {
	source, target *Workspace
	id             string
	s, t           *item // nil is absent
}

func hashOf(it *item) string {
	if it == nil {
		return ""
	}
	return it.Hash
}

// decided is the source's hash when an earlier merge or strategy decided.
func (p pair) decided() (hash string, ok bool) {
	hash, ok = p.target.settled[p.source.record.ID][p.id]
	return hash, ok
}

// common lists versions that both sides have known, what is most to the point
// first. An empty hash is a removal.
func (p pair) common() (known []string) {
	if h, ok := p.decided(); ok {
		known = append(known, h)
	}
	if h, ok := p.source.settled[p.target.record.ID][p.id]; ok {
		known = append(known, h)
	}
	base := p.source.base
	if p.target.record.Base == p.source.record.ID {
		base = p.target.base
	}
	if h, ok := base[p.id]; ok {
		known = append(known, h)
	}
	return known
}

// brought reports that both hold one version, which the target has from the
// source and not the other way round.
func (p pair) brought() bool {
	h := hashOf(p.s)
	if p.s == nil || h != hashOf(p.t) || p.target.base[p.id] == h || p.source.settled[p.target.record.ID][p.id] == h {
		return false
	}
	return p.source.record.Base != p.target.record.ID || p.source.base[p.id] != h
}

// judge is the three-way rule, by content: a side that holds a version which
// both have known has not changed it, so the other side's version stands. Where
// both have changed it, or neither can be told to be the older, it is a
// conflict.
func (p pair) judge() (verdict, ConflictType) {
	s, t := hashOf(p.s), hashOf(p.t)
	known := p.common()
	sourceOld, targetOld := slices.Contains(known, s), slices.Contains(known, t)
	if s == t {
		if p.s == nil || sourceOld {
			return leave, ""
		}
		return agree, ""
	}
	if h, ok := p.decided(); ok && h == s {
		return leave, ""
	}
	if p.s == nil && !p.source.gone[p.id] {
		return leave, "" // it never was there
	}
	switch {
	case p.t == nil && (!p.target.gone[p.id] || len(known) == 0):
		return take, ""
	case p.strangers() && !targetOld:
		return conflict, IDCollision
	case targetOld && !sourceOld:
		return take, ""
	case sourceOld && !targetOld:
		return leave, ""
	case p.s == nil || p.t == nil:
		return conflict, DeletedModified
	case p.s.Origin != p.t.Origin:
		return conflict, IDCollision
	}
	return conflict, BothModified
}

// strangers reports two entities of one id of which the target has never known
// the source's.
func (p pair) strangers() bool {
	if p.s == nil || p.t == nil || p.s.Origin == p.t.Origin || p.source.record.Base == p.target.record.ID {
		return false
	}
	_, inherited := p.target.base[p.id]
	_, decided := p.decided()
	_, met := p.source.settled[p.target.record.ID][p.id]
	return !inherited && !decided && !met
}

// conflict describes what the pair can't agree on.
func (p pair) conflict(t ConflictType) Conflict {
	c := p.about(t)
	switch {
	case t == DeletedModified && p.s == nil:
		c.Description = fmt.Sprintf("%s was deleted in %s and changed in %s", p.id, c.Source, c.Target)
	case t == DeletedModified:
		c.Description = fmt.Sprintf("%s was changed in %s and deleted in %s", p.id, c.Source, c.Target)
	case t == IDCollision:
		c.Description = fmt.Sprintf("%s and %s each made a %s of its own: one is a %s, the other a %s", c.Source, c.Target, p.id, p.s.Type, p.t.Type)
	default:
		c.Description = fmt.Sprintf("%s was changed in both %s and %s", p.id, c.Source, c.Target)
	}
	return c
}

func (p pair) about(t ConflictType) Conflict {
	c := Conflict{
		Type: t, EntityID: p.id, Source: p.source.record.ID, Target: p.target.record.ID, SourceHash: hashOf(p.s), TargetHash: hashOf(p.t),
	}
	if known := p.common(); len(known) > 0 {
		c.BaseHash = known[0]
	}
	return c
}

// leastOverlap is the volume in mm³ from which solids overlap: below it they
// touch (requirement 6.4).
const leastOverlap = 1e-6

type solidBounds struct {
	Entity

	box   mesh.Box
	known bool
}

func boundsOf(e Entity) *solidBounds {
	f, _ := FactsOf(e)
	return &solidBounds{e, f.Bounds, f.Bounds != mesh.Box{}}
}

// meets reports boxes that share room; one that is not known may be anywhere.
func (b *solidBounds) meets(o *solidBounds) bool {
	return !b.known || !o.known || b.box.Shared(o.box) > 0
}

// space finds the solids of a target near another, by their extent in x.
type space struct {
	geometry Geometry
	anywhere []*solidBounds
	sorted   []*solidBounds // by min x
	reach    []float64      // the greatest max x up to each
}

func (s *space) fill(list []*solidBounds) {
	for _, b := range list {
		if b.known {
			s.sorted = append(s.sorted, b)
		} else {
			s.anywhere = append(s.anywhere, b)
		}
	}
	slices.SortStableFunc(s.sorted, func(a, b *solidBounds) int { return cmp.Compare(a.box.Min[0], b.box.Min[0]) })
	for i, b := range s.sorted {
		far := b.box.Max[0]
		if i > 0 {
			far = max(far, s.reach[i-1])
		}
		s.reach = append(s.reach, far)
	}
}

// near lists the solids whose boxes meet one.
func (s *space) near(b *solidBounds) (list []*solidBounds) {
	if !b.known {
		return slices.Concat(s.anywhere, s.sorted)
	}
	list = slices.Clone(s.anywhere)
	end := sort.Search(len(s.sorted), func(i int) bool { return s.sorted[i].box.Min[0] >= b.box.Max[0] })
	for i := end - 1; i >= 0 && s.reach[i] > b.box.Min[0]; i-- {
		if s.sorted[i].meets(b) {
			list = append(list, s.sorted[i])
		}
	}
	return list
}

// overlap is the volume that two solids share, 0 below what counts.
func (s *space) overlap(a, b *solidBounds) (float64, error) {
	if !a.meets(b) {
		return 0, nil
	}
	v, err := s.geometry.Overlap(a.Entity, b.Entity)
	if err != nil {
		return 0, fmt.Errorf("compare solids %s and %s: %w", a.ID, b.ID, err)
	}
	if v <= leastOverlap {
		v = 0
	}
	return v, nil
}

// findOverlaps leaves out the solids that overlap one which stays.
func (m *merger) findOverlaps() error {
	for _, id := range m.ids {
		if it := m.source.entities[id]; m.takes[id] && it != nil && it.Type == Solid {
			m.boxes[id] = boundsOf(it.Entity)
		}
	}
	if len(m.boxes) == 0 {
		return nil
	}
	var staying []*solidBounds
	for _, it := range m.target.order {
		if it.Type == Solid && !m.takes[it.ID] && !m.pair(it.ID).brought() {
			staying = append(staying, boundsOf(it.Entity))
			m.stood[it.ID] = true
		}
	}
	m.space.fill(staying)
	for _, id := range m.ids {
		if b := m.boxes[id]; b != nil {
			if err := m.clear(b, m.space.near(b)); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear leaves a solid of the source out if it overlaps one of the target.
func (m *merger) clear(b *solidBounds, near []*solidBounds) error {
	list, err := m.overlapping(b, near)
	if len(list) > 0 {
		m.hold(b.ID, list...)
	}
	return err
}

func (m *merger) overlapping(b *solidBounds, near []*solidBounds) (list []Conflict, err error) {
	for _, t := range near {
		if t.ID == b.ID {
			continue
		}
		v, err := m.space.overlap(b, t)
		if err != nil {
			return nil, err
		}
		if v == 0 {
			continue
		}
		c := m.pair(b.ID).about(GeometryOverlap)
		c.WithID, c.TargetHash, c.Volume = t.ID, t.Hash, v
		c.Description = fmt.Sprintf("%s of %s and %s of %s share %.6g mm³", b.ID, c.Source, t.ID, c.Target, v)
		list = append(list, c)
	}
	core.Sort(list, func(a, b Conflict) int {
		return m.target.entities[a.WithID].place - m.target.entities[b.WithID].place
	})
	return list, nil
}

// stays sees to a solid of the target that was to go and stays after all: what
// is taken must not overlap it either.
func (m *merger) stays(id string) error {
	t := m.target.entities[id]
	if t == nil || t.Type != Solid || m.stood[id] {
		return nil
	}
	m.stood[id] = true
	b := boundsOf(t.Entity)
	for _, other := range m.ids {
		o := m.boxes[other]
		if o == nil || !o.meets(b) || slices.Contains(m.consumed(o.Entity), id) {
			continue
		}
		if err := m.clear(o, []*solidBounds{b}); err != nil {
			return err
		}
	}
	return nil
}
