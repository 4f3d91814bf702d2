package profile

import (
	"cmp"
	"fmt"
	"math"

	"swarmdeck/engine/core"
)

// uncrossed refuses loops that meet anywhere but at the joints of neighbours.
// It sweeps over the segments by x, so that far ones are never compared.
func uncrossed(loops []Loop) error {
	type part struct {
		Segment
		low, high  Point
		loop, at   int
		neighbours int
	}
	var parts []part
	for i, l := range loops {
		for j, s := range l {
			low, high := Loop{s}.Bounds()
			parts = append(parts, part{Segment: s, low: low, high: high, loop: i, at: j, neighbours: len(l)})
		}
	}
	core.Sort(parts, func(a, b part) int { return cmp.Compare(a.low.X, b.low.X) })
	for i, a := range parts {
		for _, b := range parts[i+1:] {
			if b.low.X > a.high.X+Joint {
				break
			}
			if b.low.Y > a.high.Y+Joint || a.low.Y > b.high.Y+Joint {
				continue
			}
			for _, p := range meetings(a.Segment, b.Segment) {
				gap := (b.at - a.at + a.neighbours) % a.neighbours
				joined := a.loop == b.loop && (gap == 1 || gap == a.neighbours-1) && joint(a.Segment, b.Segment, p)
				if !joined {
					return core.Invalid("profile", fmt.Sprintf("a crossing at (%g, %g)", p.X, p.Y), "loops that neither cross nor touch")
				}
			}
		}
	}
	return nil
}

// joint says whether two segments meet at a point because they end there.
func joint(a, b Segment, p Point) bool {
	const slack = 10 * Joint
	return min(distance(a.From, p), distance(a.To, p)) <= slack && min(distance(b.From, p), distance(b.To, p)) <= slack
}

// meetings lists where two segments touch or cross; of a shared stretch it
// names a point.
func meetings(a, b Segment) []Point {
	var candidates []Point
	switch {
	case a.Radius == 0 && b.Radius == 0:
		candidates = lineLine(a, b)
	case a.Radius == 0:
		candidates = lineCircle(a, b)
	case b.Radius == 0:
		candidates = lineCircle(b, a)
	default:
		candidates = circleCircle(a, b)
	}
	return core.Where(candidates, func(p Point) bool { return a.passes(p) && b.passes(p) })
}

// passes says whether a point of the segment's line or circle lies on it.
func (s Segment) passes(p Point) bool {
	if s.Radius == 0 {
		dx, dy := s.To.X-s.From.X, s.To.Y-s.From.Y
		l := math.Hypot(dx, dy)
		along := ((p.X-s.From.X)*dx + (p.Y-s.From.Y)*dy) / l
		across := ((p.X-s.From.X)*dy - (p.Y-s.From.Y)*dx) / l
		return along >= -Joint && along <= l+Joint && math.Abs(across) <= Joint
	}
	if math.Abs(distance(p, s.Center)-s.Radius) > Joint {
		return false
	}
	if min(distance(p, s.From), distance(p, s.To)) <= Joint {
		return true
	}
	turn := math.Mod((math.Atan2(p.Y-s.Center.Y, p.X-s.Center.X)-s.start())*math.Copysign(1, s.Sweep), 2*math.Pi)
	if turn < 0 {
		turn += 2 * math.Pi
	}
	return turn <= math.Abs(s.Sweep)
}

func lineLine(a, b Segment) []Point {
	ax, ay := a.To.X-a.From.X, a.To.Y-a.From.Y
	bx, by := b.To.X-b.From.X, b.To.Y-b.From.Y
	cross := ax*by - ay*bx
	if math.Abs(cross) <= 1e-12*math.Hypot(ax, ay)*math.Hypot(bx, by) {
		// Parallel: they share what holds an end of either, or its middle.
		return []Point{a.From, a.To, b.From, b.To, a.middle(), b.middle()}
	}
	t := ((b.From.X-a.From.X)*by - (b.From.Y-a.From.Y)*bx) / cross
	return []Point{{a.From.X + t*ax, a.From.Y + t*ay}}
}

func lineCircle(l, c Segment) []Point {
	dx, dy := l.To.X-l.From.X, l.To.Y-l.From.Y
	n := math.Hypot(dx, dy)
	dx, dy = dx/n, dy/n
	along := (c.Center.X-l.From.X)*dx + (c.Center.Y-l.From.Y)*dy
	foot := Point{l.From.X + along*dx, l.From.Y + along*dy}
	d := distance(foot, c.Center)
	if d > c.Radius+Joint {
		return nil
	}
	half := math.Sqrt(math.Max(c.Radius*c.Radius-d*d, 0))
	return []Point{{foot.X + half*dx, foot.Y + half*dy}, {foot.X - half*dx, foot.Y - half*dy}}
}

func circleCircle(a, b Segment) []Point {
	d := distance(a.Center, b.Center)
	if d <= Joint {
		if math.Abs(a.Radius-b.Radius) > Joint {
			return nil
		}
		return []Point{a.From, a.To, b.From, b.To, a.middle(), b.middle()} // one circle
	}
	if d > a.Radius+b.Radius+Joint || d < math.Abs(a.Radius-b.Radius)-Joint {
		return nil
	}
	ux, uy := (b.Center.X-a.Center.X)/d, (b.Center.Y-a.Center.Y)/d
	along := (d*d + a.Radius*a.Radius - b.Radius*b.Radius) / (2 * d)
	half := math.Sqrt(math.Max(a.Radius*a.Radius-along*along, 0))
	foot := Point{a.Center.X + along*ux, a.Center.Y + along*uy}
	return []Point{{foot.X - half*uy, foot.Y + half*ux}, {foot.X + half*uy, foot.Y - half*ux}}
}
