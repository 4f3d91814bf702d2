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

// profile is a symmetric matrix of which each row is kept from its first entry
// to the diagonal; Cholesky's factor fits into the same room.
type profile struct {
	first []int       // column of each row's first entry
	rows  [][]float64 // row i: columns first[i] to i
}

// newProfile makes room for the entries of JᵀJ: each equation ties its
// variables to one another.
func newProfile(n int, ties [][]int) *profile {
	p := &profile{first: make([]int, n), rows: make([][]float64, n)}
	for i := range n {
		p.first[i] = i
	}
	for _, t := range ties {
		least := slices.Min(t)
		for _, i := range t {
			p.first[i] = min(p.first[i], least)
		}
	}
	size := 0
	for i, f := range p.first {
		size += i - f + 1
	}
	flat := make([]float64, size)
	for i, f := range p.first {
		p.rows[i], flat = flat[:i-f+1:i-f+1], flat[i-f+1:]
	}
	return p
}

// add adds to the entry at (i, j) and so at (j, i); only one of the two is
// given.
func (p *profile) add(i, j int, v float64) { p.rows[i][j-p.first[i]] += v }

// solve finds x with (p + damping) x = g by Cholesky, in the room of another
// profile. It answers false where p is not positive.
func (p *profile) solve(g []float64, damping float64, room *profile, x []float64) bool {
	copy(x, g)
	for i, row := range p.rows {
		l, fi := room.rows[i], p.first[i]
		for j := fi; j <= i; j++ {
			fj := p.first[j]
			from := max(fi, fj)
			sum := row[j-fi] - dot(l[from-fi:j-fi], room.rows[j][from-fj:j-fj])
			if j < i {
				l[j-fi] = sum / room.rows[j][j-fj]
				continue
			}
			if sum += damping; !(sum > 1e-300) {
				return false
			}
			l[j-fi] = math.Sqrt(sum)
		}
		x[i] = (x[i] - dot(l[:i-fi], x[fi:i])) / l[i-fi]
	}
	for i := len(x) - 1; i >= 0; i-- {
		l, fi := room.rows[i], p.first[i]
		x[i] /= l[i-fi]
		for j, v := range l[:i-fi] {
			x[fi+j] -= v * x[i]
		}
	}
	return true
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// near numbers the variables so that those of one equation are close together
// and the rows of a profile short: outwards from one at the edge, then turned
// around (Cuthill and McKee 1969).
func near(n int, ties [][]int) []int {
	neighbours := make([][]int, n)
	for _, t := range ties {
		for _, a := range t {
			for _, b := range t {
				if a != b && !slices.Contains(neighbours[a], b) {
					neighbours[a] = append(neighbours[a], b)
				}
			}
		}
	}
	fewest := func(a, b int) int { return len(neighbours[a]) - len(neighbours[b]) }
	reach := func(start int, seen []bool) []int {
		order := []int{start}
		seen[start] = true
		for at := 0; at < len(order); at++ {
			tail := len(order)
			for _, v := range neighbours[order[at]] {
				if !seen[v] {
					seen[v] = true
					order = append(order, v)
				}
			}
			slices.SortStableFunc(order[tail:], fewest)
		}
		return order
	}
	var order []int
	seen := make([]bool, n)
	for v := range n {
		if seen[v] {
			continue
		}
		once := reach(v, make([]bool, n)) // whose last one lies at the edge
		order = append(order, reach(once[len(once)-1], seen)...)
	}
	position := make([]int, n)
	for i, v := range order {
		position[v] = n - 1 - i
	}
	return position
}
