package sketch

import "math"

// rowThreshold is the part of a row's norm below which what is left of it,
// after earlier rows are taken away, counts as nothing.
const rowThreshold = 1e-7

// dependence counts the independent rows of the Jacobian and lists the equations
// whose rows follow from earlier ones. It orthogonalises the rows in order,
// twice each, so that rounding does not pass for independence (Gram-Schmidt).
func (s *system) dependence(values []float64) (rank int, dependent []int) {
	var kept [][]float64
	for i := range s.equations {
		row := make([]float64, s.n)
		r := s.residual(i, values)
		for j, v := range s.equations[i].variables {
			row[v] += r.d[j]
		}
		whole := norm(row)
		for range 2 {
			for _, b := range kept {
				along := 0.0
				for j, x := range b {
					along += x * row[j]
				}
				if along == 0 {
					continue
				}
				for j, x := range b {
					row[j] -= along * x
				}
			}
		}
		left := norm(row)
		if left <= rowThreshold*math.Max(whole, 1e-6) {
			dependent = append(dependent, i)
			continue
		}
		for j := range row {
			row[j] /= left
		}
		kept = append(kept, row)
	}
	return len(kept), dependent
}

func norm(row []float64) float64 {
	sum := 0.0
	for _, x := range row {
		sum += x * x
	}
	return math.Sqrt(sum)
}
