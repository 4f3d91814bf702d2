package sketch

import (
	"context"
	"math"
	"slices"

	"swarmdeck/engine/core"
)

// system is a set of equations over n variables, without units.
type system struct {
	equations []equation
	scale     float64
	n         int
}

// residual of an equation and its derivatives by variables in units of scale.
func (s *system) residual(i int, values []float64) number {
	e := &s.equations[i]
	out := e.at(values)
	if e.length {
		out.v /= s.scale
		return out // mm by mm
	}
	for j := range out.d {
		out.d[j] *= s.scale
	}
	return out
}

// turn is the most that one step is to turn a line by, in radians: the ends go
// straight on, so that a longer step would stretch it.
const turn = 0.1

// bounded is as much of a residual as one step is to take away.
func (e *equation) bounded(v float64) float64 {
	if e.length {
		return v
	}
	return max(-turn, min(v, turn))
}

// cost is the sum of squared residuals, but beyond their bounds they count in
// proportion (Huber 1964): its slope is made of the bounded ones.
func (s *system) cost(values []float64) float64 {
	sum := 0.0
	for i := range s.equations {
		v := s.residual(i, values).v
		b := s.equations[i].bounded(v)
		sum += b * (2*v - b)
	}
	return sum
}

// mostSteps bounds how long the least cost is looked for.
const mostSteps = 200

// minimise finds the values near the given ones of the least cost
// (Levenberg-Marquardt). Values at which all hold are the answer at once, and
// take no more than to look at each equation.
func (s *system) minimise(ctx context.Context, start []float64) ([]float64, error) {
	x := slices.Clone(start)
	cost, damping := s.cost(x), 1e-3
	if cost <= enough {
		return x, nil
	}
	w := s.workspace()
	next := make([]float64, len(x))
	for range mostSteps {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if cost <= enough {
			return x, nil
		}
		least := 1e-12
		if w.normal(x) {
			least = 1e-3 // with less, rounding errors of so many long steps add up
		}
		improved := false
		for damping < 1e9 {
			if w.matrix.solve(w.gradient, damping, w.factor, w.step) {
				for j := range next {
					next[j] = x[j] - w.step[w.position[j]]*s.scale
				}
				if c := s.cost(next); c < cost {
					improved = cost-c > 1e-9*cost || c <= enough
					x, next, cost = next, x, c
					damping = max(damping/10, least)
					break
				}
			}
			damping *= 8
		}
		if !improved {
			return x, nil
		}
	}
	return x, nil
}

// workspace is the room that minimise computes in.
type workspace struct {
	*system
	position       []int // of each variable in the matrix
	matrix, factor *profile
	gradient, step []float64
}

func (s *system) workspace() *workspace {
	ties := core.Map(s.equations, func(e equation) []int { return e.variables })
	w := &workspace{system: s, position: near(s.n, ties), gradient: make([]float64, s.n), step: make([]float64, s.n)}
	for i, t := range ties {
		ties[i] = make([]int, len(t))
		for j, v := range t {
			ties[i][j] = w.position[v]
		}
	}
	w.matrix, w.factor = newProfile(s.n, ties), newProfile(s.n, ties)
	return w
}

// normal forms JᵀJ and Jᵀr, with r bounded, and tells whether any of r was out
// of bounds; each equation touches a few variables only.
func (w *workspace) normal(x []float64) (far bool) {
	for _, row := range w.matrix.rows {
		clear(row)
	}
	clear(w.gradient)
	for i := range w.equations {
		r, at := w.residual(i, x), w.equations[i].variables
		v := w.equations[i].bounded(r.v)
		far = far || v != r.v
		for a, va := range at {
			row := w.position[va]
			w.gradient[row] += r.d[a] * v
			for b, vb := range at {
				if column := w.position[vb]; column <= row {
					w.matrix.add(row, column, r.d[a]*r.d[b])
				}
			}
		}
	}
	return far
}

const (
	// rowThreshold is the part of a row's norm below which what is left of it,
	// after earlier rows are taken away, counts as nothing.
	rowThreshold = 1e-7
	// fair is the part of a row's largest entry that an entry must have to lead
	// it: with less, rounding would grow.
	fair = 0.3
)

// entry is one derivative of an equation.
type entry struct {
	variable int
	value    float64
}

// leader is an independent row, less what earlier ones have of it, in units of
// one of its entries, which later rows are freed of.
type leader struct {
	variable int
	rest     []entry
}

// dependence lists the equations whose rows of the Jacobian follow from earlier
// ones, in order: Gauss' elimination from row to row. Rows have few entries, and
// keep few when the variable of the fewest equations leads.
func (s *system) dependence(values []float64) (dependent []int) {
	uses := make([]int, s.n)
	for _, e := range s.equations {
		for _, v := range e.variables {
			uses[v]++
		}
	}
	var leaders []leader
	row := make([]float64, s.n)
	for i := range s.equations {
		r := s.residual(i, values)
		for j, v := range s.equations[i].variables {
			row[v] += r.d[j]
		}
		whole := norm(row)
		// A leader has nothing of those before it, so that each is needed once.
		for _, l := range leaders {
			if by := row[l.variable]; by != 0 {
				row[l.variable] = 0
				for _, e := range l.rest {
					row[e.variable] -= by * e.value
				}
			}
		}
		if norm(row) <= rowThreshold*math.Max(whole, 1e-6) {
			dependent = append(dependent, i)
		} else {
			leaders = append(leaders, lead(row, uses))
		}
		clear(row)
	}
	return dependent
}

func lead(row []float64, uses []int) leader {
	most := 0.0
	for _, x := range row {
		most = max(most, math.Abs(x))
	}
	best := -1
	for v, x := range row {
		if math.Abs(x) >= fair*most && (best < 0 || uses[v] < uses[best]) {
			best = v
		}
	}
	out := leader{variable: best}
	for v, x := range row {
		if v != best && math.Abs(x) > 1e-15*most {
			out.rest = append(out.rest, entry{v, x / row[best]})
		}
	}
	return out
}

func norm(row []float64) float64 { return math.Sqrt(dot(row, row)) }
