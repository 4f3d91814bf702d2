package sketch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"swarmdeck/expect"
)

// tied is a system of random equations over a few variables each, some of which
// are sums of earlier ones.
func tied(r *rand.Rand, n, equations int) (*system, [][]float64) {
	s := &system{n: n, scale: 1}
	var rows [][]float64
	for range equations {
		row := make([]float64, n)
		if len(rows) > 1 && r.IntN(4) == 0 {
			for range 2 {
				for v, x := range rows[r.IntN(len(rows))] {
					row[v] += float64(1+r.IntN(3)) * x
				}
			}
		} else {
			for range 1 + r.IntN(3) {
				row[r.IntN(n)] = r.Float64()*4 - 2
			}
		}
		var e equation
		for v, x := range row {
			if x != 0 {
				e.variables = append(e.variables, v)
			}
		}
		if len(e.variables) == 0 || len(e.variables) > width {
			continue
		}
		e.residual = func([]number) number {
			var out number
			for i, v := range e.variables {
				out.d[i] = row[v]
			}
			return out
		}
		s.equations, rows = append(s.equations, e), append(rows, row)
	}
	return s, rows
}

// orthogonal lists the rows that lie in the span of earlier ones, by projection.
func orthogonal(rows [][]float64) (dependent []int) {
	var basis [][]float64
	for i, row := range rows {
		left := slices.Clone(row)
		for range 2 {
			for _, b := range basis {
				along := dot(b, left)
				for j, x := range b {
					left[j] -= along * x
				}
			}
		}
		n := norm(left)
		if n < 1e-9*norm(row) {
			dependent = append(dependent, i)
			continue
		}
		for j := range left {
			left[j] /= n
		}
		basis = append(basis, left)
	}
	return dependent
}

func TestDependentEquationsAreThoseInTheSpanOfEarlierOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 300 {
		s, rows := tied(r, 2+r.IntN(30), 1+r.IntN(60))
		want := orthogonal(rows)
		got := s.dependence(make([]float64, s.n))
		expect.Must(t, slices.Equal(got, want), "equations %v depend on earlier ones, want %v\n%v", got, want, rows)
		found += len(want)
	}
	expect.True(t, found >= 1000, "only %d dependent equations were tried", found)
}

func TestProfilesSolveAndStayNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		s, rows := tied(r, 2+r.IntN(30), 1+r.IntN(60))
		w := s.workspace()
		taken := slices.Sorted(slices.Values(w.position))
		for i, p := range taken {
			if i != p {
				t.Fatalf("positions %v are no order", w.position)
			}
		}
		w.normal(make([]float64, s.n))
		x, want := make([]float64, s.n), make([]float64, s.n)
		for i := range want {
			want[i] = r.Float64()
		}
		// (JᵀJ + damping) want
		const damping = 0.5
		g := make([]float64, s.n)
		for i, v := range want {
			g[w.position[i]] = damping * v
		}
		for _, row := range rows {
			for i, a := range row {
				g[w.position[i]] += a * dot(row, want)
			}
		}
		expect.Must(t, w.matrix.solve(g, damping, w.factor, x), "the matrix is not positive")
		for i, v := range want {
			expect.Must(t, math.Abs(x[w.position[i]]-v) <= 1e-9, "x is %v, want %v", x, want)
		}
	}
	// A chain whose variables are numbered at random.
	const n = 500
	order := r.Perm(n)
	var ties [][]int
	for i := 1; i < n; i++ {
		ties = append(ties, []int{order[i-1], order[i]})
	}
	position := near(n, ties)
	for _, one := range ties {
		a, b := position[one[0]], position[one[1]]
		expect.Must(t, a-b <= 1 && b-a <= 1, "neighbours lie at %d and %d", a, b)
	}
}
