package sketch

import (
	"fmt"
	"math"
	"slices"

	"swarmdeck/engine/core"
)

// Remove takes a constraint away.
func (s *Sketch) Remove(id string) error {
	i := s.index(id)
	if i < 0 {
		return core.Missing("constraint", id)
	}
	s.constraints = slices.Delete(s.constraints, i, i+1)
	return nil
}

// Constraints lists them in the order that they were added.
func (s *Sketch) Constraints() []Constraint { return slices.Clone(s.constraints) }

// Move puts a point somewhere else, as a start for the next Solve.
func (s *Sketch) Move(id string, x, y float64) error {
	at, err := s.pointsOf(id)
	if err != nil {
		return err
	}
	for _, v := range []float64{x, y} {
		if !(math.Abs(v) <= MaxLength) {
			return core.Invalid("point", v, fmt.Sprintf("numbers from -%g to %g mm", MaxLength, MaxLength))
		}
	}
	s.values[at[0]], s.values[at[0]+1] = x, y
	return nil
}
