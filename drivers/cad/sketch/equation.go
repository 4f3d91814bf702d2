package sketch

import (
	"fmt"
	"math"
	"slices"

	"swarmdeck/engine/core"
)

// equation is one residual that shall be zero.
type equation struct {
	owner     string // the constraint or the arc that demands it
	variables []int
	residual  func(x []number) number
	length    bool // mm; otherwise radians or a pure number
}

// at evaluates the equation and its derivatives.
func (e *equation) at(values []float64) number {
	var room [width]number
	x := room[:len(e.variables)]
	for i, v := range e.variables {
		x[i].v = values[v]
		x[i].d[i] = 1
	}
	return e.residual(x)
}

// builder collects the equations of one constraint.
type builder struct {
	sketch *Sketch
	owner  string
	out    []equation
}

// form is what a residual is made of: points first, then radii.
type form func(p []vector, r []number) number

// add adds a residual over points and radii, both by their variables.
func (b *builder) add(length bool, points, radii []int, f form) {
	var variables []int
	for _, p := range points {
		variables = append(variables, p, p+1)
	}
	variables = append(variables, radii...)
	n := len(points)
	b.out = append(b.out, equation{owner: b.owner, variables: variables, length: length, residual: func(x []number) number {
		var p [width / 2]vector
		for i := range n {
			p[i] = vector{x[2*i], x[2*i+1]}
		}
		return f(p[:n], x[2*n:])
	}})
}

// now evaluates a form with the present values, to choose a side.
func (b *builder) now(points, radii []int, f form) float64 {
	probe := builder{sketch: b.sketch}
	probe.add(true, points, radii, f)
	return probe.out[0].at(b.sketch.values).v
}

// signed is a form that shall have the size v with the sign that it has now.
func (b *builder) signed(points, radii []int, v float64, f form) {
	if b.now(points, radii, f) < 0 {
		v = -v
	}
	b.add(true, points, radii, func(p []vector, r []number) number { return f(p, r).minus(constant(v)) })
}

// The forms that several constraints share.
var (
	sameX form = func(p []vector, _ []number) number { return p[0].x.minus(p[1].x) }
	sameY form = func(p []vector, _ []number) number { return p[0].y.minus(p[1].y) }
	// fromLine is the signed distance of the first point from the line
	// through the other two.
	fromLine form = func(p []vector, _ []number) number {
		return p[2].minus(p[1]).unit().cross(p[0].minus(p[1]))
	}
	apart form = func(p []vector, _ []number) number { return p[1].minus(p[0]).length() }
	// fromCircle is how far the second point lies outside a circle.
	fromCircle form = func(p []vector, r []number) number { return p[1].minus(p[0]).length().minus(r[0]) }
)

// same makes two points one.
func (b *builder) same(p, q int) {
	b.add(true, []int{p, q}, nil, sameX)
	b.add(true, []int{p, q}, nil, sameY)
}

// held keeps variables at their present values.
func (b *builder) held(variables ...int) {
	for _, v := range variables {
		target := constant(b.sketch.values[v])
		b.out = append(b.out, equation{
			owner: b.owner, variables: []int{v}, length: true,
			residual: func(x []number) number { return x[0].minus(target) },
		})
	}
}

// implied are the equations of arcs: both ends lie on the circle.
func (s *Sketch) implied() []equation {
	var out []equation
	for _, e := range s.entities {
		if e.kind != Arc {
			continue
		}
		b := &builder{sketch: s, owner: e.id}
		b.add(true, e.points[:2], []int{e.radius}, fromCircle)
		b.add(true, []int{e.points[0], e.points[2]}, []int{e.radius}, fromCircle)
		out = append(out, b.out...)
	}
	return out
}

// equations turns a constraint into residuals, with the signs of the present
// geometry, so that solving keeps what lies left at the left.
func (s *Sketch) equations(c Constraint) ([]equation, error) {
	var all []entity
	shape := ""
	for i, id := range c.Entities {
		e, err := s.entity(id)
		if err != nil {
			return nil, err
		}
		if slices.Contains(c.Entities[:i], id) {
			return nil, core.Invalid("entity_ids", id, "different entities")
		}
		all = append(all, e)
		letter := string(e.kind[:1]) // p, l, c; an arc counts as a circle
		if e.kind == Arc {
			letter = "c"
		}
		shape += letter
	}
	for letters, swapped := range map[string]string{"lp": "pl", "cp": "pc", "cl": "lc"} {
		if shape == letters {
			shape = swapped
			slices.Reverse(all)
		}
	}
	b := &builder{sketch: s, owner: c.ID}
	if !b.build(c, shape, all) {
		takes := types[slices.Index(Types(), c.Type)].takes
		return nil, core.Invalid("entity_ids", fmt.Sprint(c.Entities), "the entities that "+string(c.Type)+" takes: "+takes)
	}
	return b.out, nil
}

// direction of the line from point i to the next.
func direction(p []vector, i int) vector { return p[i+1].minus(p[i]) }

// turned asks for an angle between two lines, to the side that it has now;
// angles that differ by a multiple of the period are the same.
func (b *builder) turned(points []int, by, period float64) {
	between := func(p []vector, _ []number) number { return angle(direction(p, 0), direction(p, 2)) }
	if b.now(points, nil, between) < 0 {
		by = -by
	}
	b.add(false, points, nil, func(p []vector, r []number) number {
		out := between(p, r).minus(constant(by))
		out.v = math.Remainder(out.v, period)
		return out
	})
}

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
