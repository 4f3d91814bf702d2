package sketch

import (
	"math"
	"slices"
)

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
