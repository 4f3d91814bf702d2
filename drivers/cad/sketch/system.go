package sketch

import (
	"context"
	"math"
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
// residuals (Levenberg-Marquardt).
func (s *system) minimise(ctx context.Context, start []float64) ([]float64, int, error) {
	x := append([]float64(nil), start...)
	cost, damping := s.cost(x), 1e-3
	const most = 200
	for i := range most {
		if err := ctx.Err(); err != nil {
			return nil, i, context.Cause(ctx)
		}
		if cost <= enough {
			return x, i, nil
		}
		normal, gradient := s.normal(x)
		improved := false
		for damping < 1e9 {
			step, ok := damped(normal, gradient, damping)
			if ok {
				next := append([]float64(nil), x...)
				for j := range next {
					next[j] -= step[j] * s.scale
				}
				if c := s.cost(next); c < cost {
					improved = cost-c > 1e-9*cost || c <= enough
					x, cost = next, c
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

// normal forms JᵀJ and Jᵀr; each equation touches a few variables only.
func (s *system) normal(x []float64) ([][]float64, []float64) {
	flat := make([]float64, s.n*s.n)
	m := make([][]float64, s.n)
	for i := range m {
		m[i] = flat[i*s.n : (i+1)*s.n]
	}
	g := make([]float64, s.n)
	for i := range s.equations {
		r, at := s.residual(i, x), s.equations[i].variables
		for a, va := range at {
			g[va] += r.d[a] * r.v
			for b, vb := range at {
				m[va][vb] += r.d[a] * r.d[b]
			}
		}
	}
	return m, g
}

// damped solves (M + damping) step = g by Cholesky, skipping the zeros left of
// each row's first entry.
func damped(m [][]float64, g []float64, damping float64) ([]float64, bool) {
	n := len(m)
	l := make([][]float64, n)
	first := make([]int, n)
	flat := make([]float64, n*(n+1)/2)
	x := append([]float64(nil), g...)
	for i := range n {
		l[i], flat = flat[:i+1], flat[i+1:]
		for first[i] < i && m[i][first[i]] == 0 {
			first[i]++
		}
		for j := first[i]; j <= i; j++ {
			sum := m[i][j]
			for k := max(first[i], first[j]); k < j; k++ {
				sum -= l[i][k] * l[j][k]
			}
			if j < i {
				l[i][j] = sum / l[j][j]
				continue
			}
			if sum += damping; !(sum > 1e-300) {
				return nil, false
			}
			l[i][i] = math.Sqrt(sum)
		}
		for k := first[i]; k < i; k++ {
			x[i] -= l[i][k] * x[k]
		}
		x[i] /= l[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		x[i] /= l[i][i]
		for k := first[i]; k < i; k++ {
			x[k] -= l[i][k] * x[i]
		}
	}
	return x, true
}
