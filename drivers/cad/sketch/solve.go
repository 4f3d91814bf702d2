package sketch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Report is what Solve finds.
type Report struct {
	Solved bool
	// DegreesOfFreedom counts the independent ways to move what is left.
	DegreesOfFreedom int
	// Removed counts the degrees of freedom that the last constraint took.
	Removed int
	// Redundant names the constraints that follow from earlier ones.
	Redundant []string
	// Conflicts names the constraints that cannot hold together; empty when
	// solved.
	Conflicts []string
}

// enough is the sum of squared residuals, in units of the sketch's size, at
// which all constraints hold.
const enough = 1e-20

// Solve moves the geometry until every constraint holds. When they cannot, the
// geometry stays as it was and the report names the conflicts. The error is
// that of the context.
func (s *Sketch) Solve(ctx context.Context) (Report, error) {
	sys, err := s.system(s.constraints)
	if err != nil {
		return Report{}, err
	}
	values, err := sys.minimise(ctx, s.values)
	if err != nil {
		return Report{}, fmt.Errorf("solve the sketch: %w", err)
	}
	out := Report{Solved: s.holds(sys, values)}
	if !out.Solved {
		out.DegreesOfFreedom = sys.n - len(sys.equations) + len(sys.dependence(s.values))
		out.Conflicts, err = s.conflicts(ctx, sys, values)
		return out, err
	}
	copy(s.values, values)
	dependent := sys.dependence(values)
	out.DegreesOfFreedom = sys.n - len(sys.equations) + len(dependent)
	last := ""
	if n := len(s.constraints); n > 0 {
		last = s.constraints[n-1].ID
	}
	for i, e := range sys.equations {
		switch {
		case !slices.Contains(dependent, i):
			if e.owner == last {
				out.Removed++
			}
		case !slices.Contains(out.Redundant, e.owner):
			out.Redundant = append(out.Redundant, e.owner)
		}
	}
	return out, nil
}

// system is made of the arcs and of some of the constraints.
func (s *Sketch) system(constraints []Constraint) (*system, error) {
	sys := &system{equations: s.implied(), scale: s.scale(), n: len(s.values)}
	for _, c := range constraints {
		own, err := s.equations(c)
		if err != nil {
			return nil, err
		}
		sys.equations = append(sys.equations, own...)
	}
	return sys, nil
}

// holds says whether a solution is one.
func (s *Sketch) holds(sys *system, values []float64) bool {
	return sys.cost(values) <= enough && s.sound(values)
}

// Apply adds a constraint and solves. One that cannot hold is refused, with the
// names of those that it contradicts, and the sketch stays as it was.
func (s *Sketch) Apply(ctx context.Context, c Constraint) (Report, error) {
	if err := s.Add(c); err != nil {
		return Report{}, err
	}
	out, err := s.Solve(ctx)
	switch {
	case err != nil:
		s.constraints = s.constraints[:len(s.constraints)-1]
		return Report{}, err
	case !out.Solved:
		s.constraints = s.constraints[:len(s.constraints)-1]
		others := slices.DeleteFunc(slices.Clone(out.Conflicts), func(n string) bool { return n == c.ID })
		return out, core.Errorf(core.Conflict, "constraint %q cannot hold together with %s", c.ID, strings.Join(others, ", ")).
			With("field", "constraint_type").With("value", string(c.Type)).With("conflicts", out.Conflicts)
	}
	return out, nil
}

// sound refuses solutions in which a radius has turned over or a number ran
// away.
func (s *Sketch) sound(values []float64) bool {
	for _, v := range values {
		if !(math.Abs(v) <= 10*MaxLength) {
			return false
		}
	}
	return !slices.ContainsFunc(s.entities, func(e entity) bool {
		return (e.kind == Circle || e.kind == Arc) && values[e.radius] <= 1e-9
	})
}

// scale is the size of the sketch and of its dimensions: residuals in mm are
// divided by it, so that they weigh as much as radians.
func (s *Sketch) scale() float64 {
	out := 1e-3
	for _, e := range s.entities {
		for _, p := range e.points {
			first := s.entities[0].points[0]
			out = max(out, math.Abs(s.values[p]-s.values[first]), math.Abs(s.values[p+1]-s.values[first+1]))
		}
		if e.kind == Circle || e.kind == Arc {
			out = max(out, s.values[e.radius])
		}
	}
	for _, c := range s.constraints {
		if c.Type != Angle {
			out = max(out, c.Value)
		}
	}
	return out
}

// filtered is the number of constraints up to which a conflict is narrowed
// down by leaving out one after the other.
const filtered = 150

// conflicts names constraints that cannot hold together, all of which it takes:
// without any one of them the others could. In a sketch too large to try, it
// names those that do not hold at the best compromise.
func (s *Sketch) conflicts(ctx context.Context, sys *system, best []float64) ([]string, error) {
	var out []string
	rest := slices.Clone(s.constraints)
	if len(rest) > filtered {
		for i, e := range sys.equations {
			if math.Abs(sys.residual(i, best).v) > 1e-9 && s.index(e.owner) >= 0 && !slices.Contains(out, e.owner) {
				out = append(out, e.owner)
			}
		}
		return out, nil
	}
	for i := 0; i < len(rest); {
		trial := slices.Delete(slices.Clone(rest), i, i+1)
		sys, err := s.system(trial)
		if err != nil {
			return nil, err
		}
		values, err := sys.minimise(ctx, s.values)
		if err != nil {
			return nil, fmt.Errorf("narrow down the conflict: %w", err)
		}
		if s.holds(sys, values) {
			out = append(out, rest[i].ID) // needed for the conflict
			i++
		} else {
			rest = trial
		}
	}
	return out, nil
}
