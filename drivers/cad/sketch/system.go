package sketch

import (
	"context"
	"math"
	"slices"
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

func (s *system) cost(values []float64) float64 {
	sum := 0.0
	for i := range s.equations {
		v := s.residual(i, values).v
		sum += v * v
	}
	return sum
}

// minimise finds the values near the given ones with the least squared
// residuals (Levenberg-Marquardt). Values at which all hold are the answer at
// once, and cost no more than to look at each equation.
func (s *system) minimise(ctx context.Context, start []float64) ([]float64, int, error) {
	x := slices.Clone(start)
	cost, damping := s.cost(x), 1e-3
	if cost <= enough {
		return x, 0, nil
	}
	w := s.workspace()
	next := make([]float64, len(x))
	const most = 200
	for i := range most {
		if err := ctx.Err(); err != nil {
			return nil, i, context.Cause(ctx)
		}
		if cost <= enough {
			return x, i, nil
		}
		w.normal(x)
		improved := false
		for damping < 1e9 {
			if w.matrix.solve(w.gradient, damping, w.factor, w.step) {
				for j := range next {
					next[j] = x[j] - w.step[w.position[j]]*s.scale
				}
				if c := s.cost(next); c < cost {
					improved = cost-c > 1e-9*cost || c <= enough
					x, next, cost = next, x, c
					damping = math.Max(damping/10, 1e-12)
					break
				}
			}
			damping *= 8
		}
		if !improved {
			return x, i + 1, nil
		}
	}
	return x, most, nil
}

// workspace is the room that minimise computes in.
type workspace struct {
	*system
	position       []int // of each variable in the matrix
	matrix, factor *profile
	gradient, step []float64
}

func (s *system) workspace() *workspace {
	ties := make([][]int, len(s.equations))
	for i, e := range s.equations {
		ties[i] = e.variables
	}
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

// normal forms JᵀJ and Jᵀr; each equation touches a few variables only.
func (w *workspace) normal(x []float64) {
	w.matrix.clear()
	clear(w.gradient)
	for i := range w.equations {
		r, at := w.residual(i, x), w.equations[i].variables
		for a, va := range at {
			row := w.position[va]
			w.gradient[row] += r.d[a] * r.v
			for b, vb := range at {
				if column := w.position[vb]; column <= row {
					w.matrix.add(row, column, r.d[a]*r.d[b])
				}
			}
		}
	}
}
