package sketch

import "math"

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
