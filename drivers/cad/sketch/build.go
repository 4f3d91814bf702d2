package sketch

import (
	"math"
	"slices"
)

// build adds the residuals of a constraint on entities of these letters: p for
// points, l for lines, c for circles and arcs. It answers false when the
// constraint is not for them.
func (b *builder) build(c Constraint, shape string, e []entity) bool {
	points := func() []int {
		var out []int
		for _, one := range e {
			out = append(out, one.points...)
		}
		return out
	}
	switch string(c.Type) + " " + shape {
	case "fixed p", "fixed l", "fixed c":
		b.fixed(e[0])
	case "coincident pp":
		b.same(e[0].points[0], e[1].points[0])
	case "coincident pl":
		b.add(true, points(), nil, fromLine)
	case "coincident pc":
		b.add(true, []int{e[1].points[0], e[0].points[0]}, []int{e[1].radius}, fromCircle)
	case "concentric cc":
		b.same(e[0].points[0], e[1].points[0])
	case "horizontal l", "horizontal pp":
		b.add(true, points(), nil, sameY)
	case "vertical l", "vertical pp":
		b.add(true, points(), nil, sameX)
	case "parallel ll":
		b.turned(points(), 0, math.Pi)
	case "perpendicular ll":
		b.turned(points(), math.Pi/2, math.Pi)
	case "angle ll":
		b.turned(points(), c.Value, 2*math.Pi)
	case "distance l", "distance pp":
		if at := points(); c.Value > 0 {
			b.signed(at, nil, c.Value, apart)
		} else {
			b.same(at[0], at[1]) // it has no slope there
		}
	case "distance pl":
		b.signed(points(), nil, c.Value, fromLine)
	case "distance ll":
		b.signed([]int{e[1].points[0], e[0].points[0], e[0].points[1]}, nil, c.Value, fromLine)
	case "radius c":
		b.signed(nil, []int{e[0].radius}, c.Value, func(_ []vector, r []number) number { return r[0] })
	case "equal ll":
		b.add(true, points(), nil, func(p []vector, _ []number) number {
			return direction(p, 0).length().minus(direction(p, 2).length())
		})
	case "equal cc":
		b.add(true, nil, []int{e[0].radius, e[1].radius}, func(_ []vector, r []number) number { return r[0].minus(r[1]) })
	case "midpoint pl":
		b.between(e[0].points[0], e[1].points)
	case "symmetric ppl":
		b.mirrored(points())
	case "tangent lc":
		b.tangentLine(e[0], e[1])
	case "tangent cc":
		b.tangentCircles(e[0], e[1])
	default:
		return false
	}
	return true
}

// fixed holds an entity where it is. Of an arc, whose ends are on its circle,
// the last end has one way to move: along it.
func (b *builder) fixed(e entity) {
	points := e.points
	if e.kind == Arc {
		v, center, end := b.sketch.values, points[0], points[2]
		along := end
		if math.Abs(v[end]-v[center]) > math.Abs(v[end+1]-v[center+1]) {
			along = end + 1
		}
		b.held(along)
		points = points[:2]
	}
	for _, p := range points {
		b.held(p, p+1)
	}
	if e.kind == Circle {
		b.held(e.radius)
	}
}

func (b *builder) between(middle int, ends []int) {
	all := append([]int{middle}, ends...)
	b.add(true, all, nil, func(p []vector, _ []number) number {
		return p[0].x.minus(p[1].x.plus(p[2].x).times(constant(0.5)))
	})
	b.add(true, all, nil, func(p []vector, _ []number) number {
		return p[0].y.minus(p[1].y.plus(p[2].y).times(constant(0.5)))
	})
}

// mirrored takes two points and the ends of the line between them: the middle
// lies on the line, and the way from one to the other is square to it.
func (b *builder) mirrored(points []int) {
	b.add(true, points, nil, func(p []vector, _ []number) number {
		both := p[0].minus(p[2]).plus(p[1].minus(p[2]))
		return direction(p, 2).unit().cross(both).times(constant(0.5))
	})
	b.add(true, points, nil, func(p []vector, _ []number) number {
		return direction(p, 2).unit().dot(direction(p, 0))
	})
}

// shares says whether a point is one of others, or made one with it.
func (b *builder) shares(point int, others []int) bool {
	if slices.Contains(others, point) {
		return true
	}
	for _, c := range b.sketch.constraints {
		if c.Type != Coincident && (c.Type != Distance || c.Value > 0) {
			continue
		}
		at, err := b.sketch.pointsOf(c.Entities...)
		if err == nil && (at[0] == point && slices.Contains(others, at[1]) || at[1] == point && slices.Contains(others, at[0])) {
			return true
		}
	}
	return false
}

// tangentLine keeps the circle on its side of the line. At a point that the
// line shares with an arc it asks for a right angle to the radius: the distance
// has no slope there.
func (b *builder) tangentLine(line, circle entity) {
	center := circle.points[0]
	for _, end := range circle.points[1:] {
		if b.shares(end, line.points) {
			b.add(false, []int{line.points[0], line.points[1], center, end}, nil, func(p []vector, _ []number) number {
				return direction(p, 0).unit().dot(direction(p, 2).unit())
			})
			return
		}
	}
	at := []int{center, line.points[0], line.points[1]}
	side := math.Copysign(1, b.now(at, nil, fromLine))
	b.add(true, at, []int{circle.radius}, func(p []vector, r []number) number {
		return fromLine(p, nil).times(constant(side)).minus(r[0])
	})
}

// tangentCircles keeps circles outside one another, or one inside the other,
// whichever is nearer now. Arcs that share an end have their centres in line
// with it.
func (b *builder) tangentCircles(c, d entity) {
	for _, end := range c.points[1:] {
		if b.shares(end, d.points[1:]) {
			b.add(false, []int{c.points[0], end, d.points[0]}, nil, func(p []vector, _ []number) number {
				return p[1].minus(p[0]).unit().cross(p[1].minus(p[2]).unit())
			})
			return
		}
	}
	v := b.sketch.values
	r, q := v[c.radius], v[d.radius]
	gap := math.Hypot(v[c.points[0]]-v[d.points[0]], v[c.points[0]+1]-v[d.points[0]+1])
	first, second := 1.0, 1.0
	if math.Abs(gap-math.Abs(r-q)) < math.Abs(gap-r-q) {
		first, second = math.Copysign(1, r-q), -math.Copysign(1, r-q)
	}
	b.add(true, []int{c.points[0], d.points[0]}, []int{c.radius, d.radius}, func(p []vector, r []number) number {
		return apart(p, nil).minus(r[0].times(constant(first))).minus(r[1].times(constant(second)))
	})
}
