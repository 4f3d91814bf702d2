package sketch

import "math"

// width is the most variables that one equation has: two lines.
const width = 8

// number is a value with its derivatives by the variables of one equation, so
// that every Jacobian is exact.
type number struct {
	v float64
	d [width]float64
}

func constant(v float64) number { return number{v: v} }

func (a number) plus(b number) number {
	a.v += b.v
	for i := range a.d {
		a.d[i] += b.d[i]
	}
	return a
}

func (a number) minus(b number) number { return a.plus(b.times(constant(-1))) }

func (a number) times(b number) number {
	out := number{v: a.v * b.v}
	for i := range out.d {
		out.d[i] = a.d[i]*b.v + a.v*b.d[i]
	}
	return out
}

func (a number) over(b number) number {
	out := number{v: a.v / b.v}
	for i := range out.d {
		out.d[i] = (a.d[i] - out.v*b.d[i]) / b.v
	}
	return out
}

// vector is a pair of numbers.
type vector struct{ x, y number }

func (a vector) minus(b vector) vector { return vector{a.x.minus(b.x), a.y.minus(b.y)} }

func (a vector) plus(b vector) vector { return vector{a.x.plus(b.x), a.y.plus(b.y)} }

func (a vector) dot(b vector) number { return a.x.times(b.x).plus(a.y.times(b.y)) }

func (a vector) cross(b vector) number { return a.x.times(b.y).minus(a.y.times(b.x)) }

// length has a slope where it is zero too, along x, so that what has collapsed
// to a point can leave that state.
func (a vector) length() number {
	out := number{v: math.Hypot(a.x.v, a.y.v)}
	if out.v == 0 {
		out.d = a.x.d
		return out
	}
	for i := range out.d {
		out.d[i] = (a.x.v*a.x.d[i] + a.y.v*a.y.d[i]) / out.v
	}
	return out
}

// unit is the direction of a vector. What has collapsed to a point has none, but
// can be divided by.
func (a vector) unit() vector {
	l := a.length()
	l.v = max(l.v, 1e-9)
	return vector{a.x.over(l), a.y.over(l)}
}

// angle from a to b, from -π to π.
func angle(a, b vector) number {
	cross, dot := a.cross(b), a.dot(b)
	out := number{v: math.Atan2(cross.v, dot.v)}
	square := math.Max(cross.v*cross.v+dot.v*dot.v, 1e-18)
	for i := range out.d {
		out.d[i] = (dot.v*cross.d[i] - cross.v*dot.d[i]) / square
	}
	return out
}
