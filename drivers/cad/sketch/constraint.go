package sketch

import (
	"fmt"
	"math"
	"slices"

	"swarmdeck/engine/core"
)

// Type is what a constraint demands.
type Type string

// The types of constraints.
const (
	Fixed         Type = "fixed" // it stays where it is
	Coincident    Type = "coincident"
	Concentric    Type = "concentric"
	Horizontal    Type = "horizontal"
	Vertical      Type = "vertical"
	Parallel      Type = "parallel"
	Perpendicular Type = "perpendicular"
	Angle         Type = "angle" // between directions, 0 to π
	Tangent       Type = "tangent"
	Distance      Type = "distance" // of a line: its length
	Radius        Type = "radius"
	Equal         Type = "equal" // lengths, or radii
	Midpoint      Type = "midpoint"
	Symmetric     Type = "symmetric" // about the line
)

// types are all of them in order, with the entities that each takes.
var types = []struct {
	Type
	takes string
}{
	{Fixed, "any one"},
	{Coincident, "a point and a point, line, circle or arc"},
	{Concentric, "two circles or arcs"},
	{Horizontal, "a line or two points"},
	{Vertical, "a line or two points"},
	{Parallel, "two lines"},
	{Perpendicular, "two lines"},
	{Angle, "two lines"},
	{Tangent, "a line and a circle or arc, or two circles or arcs"},
	{Distance, "a line, two points, a point and a line, or two lines"},
	{Radius, "a circle or arc"},
	{Equal, "two lines, or two circles or arcs"},
	{Midpoint, "a point and a line"},
	{Symmetric, "two points and a line"},
}

// Types lists all of them.
func Types() (all []Type) {
	for _, t := range types {
		all = append(all, t.Type)
	}
	return all
}

// dimensioned types take a value.
func (t Type) dimensioned() bool { return t == Angle || t == Distance || t == Radius }

// Constraint is one demand on one to three entities.
type Constraint struct {
	ID       string
	Type     Type
	Entities []string
	Value    float64 // mm or radians, of an angle, a distance and a radius
}

// Add adds a constraint without solving. Order counts: of constraints that
// depend on one another the later is the redundant one.
func (s *Sketch) Add(c Constraint) error {
	switch {
	case c.ID == "" || len(c.ID) > 200 || s.index(c.ID) >= 0:
		return core.Invalid("constraint_id", c.ID, "a new name of 1 to 200 bytes")
	case len(s.constraints) >= MaxConstraints:
		return core.Invalid("sketch", len(s.constraints), fmt.Sprintf("at most %d constraints", MaxConstraints))
	case !slices.Contains(Types(), c.Type):
		return core.Invalid("constraint_type", string(c.Type), fmt.Sprint(Types()))
	case c.Type == Angle && !(c.Value >= 0 && c.Value <= math.Pi):
		return core.Invalid("angle", c.Value, "0 to π radians")
	case c.Type == Distance && !(c.Value >= 0 && c.Value <= MaxLength):
		return core.Invalid("distance", c.Value, fmt.Sprintf("0 to %g mm", MaxLength))
	case c.Type == Distance && c.Value == 0 && len(c.Entities) == 1:
		return core.Invalid("distance", c.Value, fmt.Sprintf("above 0, up to %g mm, as the length of a line", MaxLength))
	case c.Type == Radius && !(c.Value > 0 && c.Value <= MaxLength):
		return core.Invalid("radius", c.Value, fmt.Sprintf("above 0, up to %g mm", MaxLength))
	case !c.Type.dimensioned() && c.Value != 0:
		return core.Invalid("value", c.Value, "none for "+string(c.Type))
	}
	c.Entities = slices.Clone(c.Entities)
	if _, err := s.equations(c); err != nil {
		return err
	}
	s.constraints = append(s.constraints, c)
	return nil
}

func (s *Sketch) index(id string) int {
	return slices.IndexFunc(s.constraints, func(c Constraint) bool { return c.ID == id })
}

// Error is how far a constraint is from holding now: the largest of its
// residuals, in mm or radians.
func (s *Sketch) Error(id string) (float64, error) {
	i := s.index(id)
	if i < 0 {
		return 0, core.Missing("constraint", id)
	}
	equations, err := s.equations(s.constraints[i])
	if err != nil {
		return 0, err
	}
	worst := 0.0
	for _, e := range equations {
		worst = math.Max(worst, math.Abs(e.at(s.values).v))
	}
	return worst, nil
}
