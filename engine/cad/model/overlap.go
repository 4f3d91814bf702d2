package model

import (
	"fmt"
	"slices"
	"sort"

	"swarmdeck/engine/core"
)

// leastOverlap is the volume in mm³ from which solids overlap: below it they
// touch (contract 6.4).
const leastOverlap = 1e-6

// solidBounds is a solid with the box around it.
type solidBounds struct {
	Entity

	min, max [3]float64
	known    bool
}

func boundsOf(e Entity) *solidBounds {
	var p struct {
		Box *struct {
			Min [3]float64 `json:"min"`
			Max [3]float64 `json:"max"`
		} `json:"bounding_box"`
	}
	b := &solidBounds{Entity: e}
	if core.DecodeStored(e.Properties, &p) == nil && p.Box != nil {
		b.min, b.max, b.known = p.Box.Min, p.Box.Max, true
	}
	return b
}

// meets reports boxes that share room; one that is not known may be anywhere.
func (b *solidBounds) meets(o *solidBounds) bool {
	if !b.known || !o.known {
		return true
	}
	for i := range 3 {
		if b.max[i] <= o.min[i] || o.max[i] <= b.min[i] {
			return false
		}
	}
	return true
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
	slices.SortStableFunc(s.sorted, func(a, b *solidBounds) int {
		switch {
		case a.min[0] < b.min[0]:
			return -1
		case a.min[0] > b.min[0]:
			return 1
		}
		return 0
	})
	for i, b := range s.sorted {
		far := b.max[0]
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
	end := sort.Search(len(s.sorted), func(i int) bool { return s.sorted[i].min[0] >= b.max[0] })
	for i := end - 1; i >= 0 && s.reach[i] > b.min[0]; i-- {
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
		return 0, nil
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
		b := m.boxes[id]
		if b == nil {
			continue
		}
		list, err := m.overlapping(b, m.space.near(b))
		if err != nil {
			return err
		}
		if len(list) > 0 {
			m.hold(id, list...)
		}
	}
	return nil
}

// overlapping describes what a solid of the source overlaps.
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
	slices.SortFunc(list, func(a, b Conflict) int {
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
		list, err := m.overlapping(o, []*solidBounds{b})
		if err != nil {
			return err
		}
		if len(list) > 0 {
			m.hold(other, list...)
		}
	}
	return nil
}
