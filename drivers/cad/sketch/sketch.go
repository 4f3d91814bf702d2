// Package sketch solves plane sketches: points, lines, circles and arcs held by
// geometric constraints and dimensions. Solving moves the geometry as little as
// it can until every constraint holds, and tells how many degrees of freedom
// are left, which constraints add nothing, and which contradict one another.
//
// Lengths are millimetres, angles radians. A Sketch belongs to one goroutine.
package sketch

import (
	"fmt"
	"math"

	"swarmdeck/engine/core"
)

// Limits of one sketch.
const (
	MaxVariables   = 2000
	MaxConstraints = 2500
	MaxLength      = 1e5 // mm, of every coordinate, radius and dimension
)

// Kind is what an entity of a sketch is.
type Kind string

// The kinds of entities.
const (
	Point  Kind = "point"
	Line   Kind = "line"
	Circle Kind = "circle"
	Arc    Kind = "arc"
)

// entity refers to variables: points are pairs of them, a radius is one.
type entity struct {
	id     string
	kind   Kind
	points []int // of the first coordinate: itself; ends; centre; centre, start, end
	radius int   // of circles and arcs
}

// Sketch is a set of entities and of constraints between them.
type Sketch struct {
	values      []float64
	entities    []entity
	byID        map[string]int
	constraints []Constraint
}

// New returns an empty sketch.
func New() *Sketch { return &Sketch{byID: map[string]int{}} }

// add validates what all entities have in common and returns the index of the
// first new variable.
func (s *Sketch) add(e entity, values ...float64) (int, error) {
	if _, taken := s.byID[e.id]; taken || e.id == "" || len(e.id) > 200 {
		return 0, core.Invalid("entity_id", e.id, "a new name of 1 to 200 bytes")
	}
	for _, v := range values {
		if !(math.Abs(v) <= MaxLength) {
			return 0, core.Invalid(string(e.kind), v, fmt.Sprintf("numbers from -%g to %g mm", MaxLength, MaxLength))
		}
	}
	if len(s.values)+len(values) > MaxVariables {
		return 0, core.Invalid("sketch", fmt.Sprintf("%d variables", len(s.values)+len(values)), fmt.Sprintf("at most %d", MaxVariables))
	}
	first := len(s.values)
	s.values = append(s.values, values...)
	s.byID[e.id] = len(s.entities)
	s.entities = append(s.entities, e)
	return first, nil
}

// AddPoint adds a point.
func (s *Sketch) AddPoint(id string, x, y float64) error {
	_, err := s.add(entity{id: id, kind: Point, points: []int{len(s.values)}}, x, y)
	return err
}

// AddLine adds the line between two points of the sketch.
func (s *Sketch) AddLine(id, from, to string) error {
	at, err := s.pointsOf(from, to)
	if err != nil {
		return err
	}
	_, err = s.add(entity{id: id, kind: Line, points: at})
	return err
}

// AddCircle adds a circle about a point of the sketch.
func (s *Sketch) AddCircle(id, center string, radius float64) error {
	at, err := s.pointsOf(center)
	if err != nil {
		return err
	}
	if !(radius > 0) {
		return core.Invalid("radius", radius, "above 0")
	}
	_, err = s.add(entity{id: id, kind: Circle, points: at, radius: len(s.values)}, radius)
	return err
}

// AddArc adds an arc about a centre, counterclockwise from one point to
// another; both are kept on its circle.
func (s *Sketch) AddArc(id, center, start, end string) error {
	at, err := s.pointsOf(center, start, end)
	if err != nil {
		return err
	}
	v := s.values
	r := math.Hypot(v[at[1]]-v[at[0]], v[at[1]+1]-v[at[0]+1])
	if !(r > 0) {
		return core.Invalid("start", start, "a point away from the centre")
	}
	_, err = s.add(entity{id: id, kind: Arc, points: at, radius: len(s.values)}, r)
	return err
}

// pointsOf finds points by their names; no two may be the same.
func (s *Sketch) pointsOf(ids ...string) ([]int, error) {
	var out []int
	for i, id := range ids {
		e, err := s.entity(id)
		if err != nil {
			return nil, err
		}
		if e.kind != Point {
			return nil, core.Invalid("point", id, "a point, not a "+string(e.kind))
		}
		for _, earlier := range ids[:i] {
			if earlier == id {
				return nil, core.Invalid("point", id, "different points")
			}
		}
		out = append(out, e.points[0])
	}
	return out, nil
}

func (s *Sketch) entity(id string) (entity, error) {
	i, ok := s.byID[id]
	if !ok {
		return entity{}, core.Missing("entity", id)
	}
	return s.entities[i], nil
}

// Geometry is where an entity lies now.
type Geometry struct {
	Points [][2]float64 // itself; both ends; the centre; centre, start, end
	Radius float64      // of circles and arcs
}

// At tells where an entity lies.
func (s *Sketch) At(id string) (Geometry, error) {
	e, err := s.entity(id)
	if err != nil {
		return Geometry{}, err
	}
	var g Geometry
	for _, p := range e.points {
		g.Points = append(g.Points, [2]float64{s.values[p], s.values[p+1]})
	}
	if e.kind == Circle || e.kind == Arc {
		g.Radius = s.values[e.radius]
	}
	return g, nil
}
