// Package profile holds plane shapes with true arcs: what a sketch closes and a
// solid is extruded or revolved from. Areas, lengths and bounds are exact.
// Facet turns a shape into points within a declared tolerance, which is the
// only place where a curve is given up.
//
// Lengths are millimetres, angles radians, counterclockwise positive.
package profile

import (
	"fmt"
	"math"

	"swarmdeck/engine/core"
)

// Limits of what a profile accepts.
const (
	MaxSegments = 10_000 // of all loops
	MaxLength   = 1e5    // mm, of every coordinate and radius
	// Joint is how far apart two ends may be and still be one point.
	Joint = 1e-6
)

// Point is a place in the plane, [x, y] in JSON.
type Point struct{ X, Y float64 }

// MarshalJSON writes the two numbers.
func (p Point) MarshalJSON() ([]byte, error) { return core.Encode([2]float64{p.X, p.Y}) }

// UnmarshalJSON takes the two numbers.
func (p *Point) UnmarshalJSON(data []byte) error {
	var at [2]float64
	err := core.Decode(data, &at)
	*p = Point{at[0], at[1]}
	return err
}

// Segment is a straight line or an arc of a circle.
type Segment struct {
	From Point `json:"from"`
	To   Point `json:"to"`
	// Radius is 0 for a line.
	Radius float64 `json:"radius,omitzero"`
	Center Point   `json:"center,omitzero"`
	// Sweep is how far an arc turns, up to a full circle; negative is clockwise.
	Sweep float64 `json:"sweep,omitzero"`
}

// Line is the straight segment between two points.
func Line(from, to Point) Segment { return Segment{From: from, To: to} }

// Arc is the part of a circle from a start angle over a sweep.
func Arc(center Point, radius, start, sweep float64) Segment {
	return Segment{
		From: onCircle(center, radius, start), To: onCircle(center, radius, start+sweep),
		Radius: radius, Center: center, Sweep: sweep,
	}
}

func onCircle(center Point, radius, angle float64) Point {
	sin, cos := math.Sincos(angle)
	return Point{center.X + radius*cos, center.Y + radius*sin}
}

func (s Segment) start() float64 { return math.Atan2(s.From.Y-s.Center.Y, s.From.X-s.Center.X) }

// Reversed is the same segment run the other way.
func (s Segment) Reversed() Segment {
	s.From, s.To, s.Sweep = s.To, s.From, -s.Sweep
	return s
}

// Length of the segment.
func (s Segment) Length() float64 {
	if s.Radius > 0 {
		return s.Radius * math.Abs(s.Sweep)
	}
	return distance(s.From, s.To)
}

func distance(a, b Point) float64 { return math.Hypot(a.X-b.X, a.Y-b.Y) }

// check refuses numbers out of range and segments without length.
func (s Segment) check() error {
	for _, v := range []float64{s.From.X, s.From.Y, s.To.X, s.To.Y, s.Center.X, s.Center.Y, s.Radius} {
		if !(math.Abs(v) <= MaxLength) {
			return core.Invalid("profile", v, fmt.Sprintf("coordinates and radii up to %g mm", MaxLength))
		}
	}
	switch {
	case s.Radius < 0:
		return core.Invalid("radius", s.Radius, "above 0")
	case s.Radius > 0 && !(math.Abs(s.Sweep) > 1e-9 && math.Abs(s.Sweep) <= 2*math.Pi+1e-9):
		return core.Invalid("sweep", s.Sweep, "up to a full turn of 2π radians, not 0")
	case s.Length() <= Joint:
		return core.Invalid("profile", fmt.Sprintf("a segment of %g mm", s.Length()), fmt.Sprintf("segments longer than %g mm", Joint))
	}
	return nil
}

// Loop is a closed chain of segments.
type Loop []Segment

// Area inside the loop, exact; negative when it runs clockwise (Green).
func (l Loop) Area() (area float64) {
	for _, s := range l {
		o := l[0].From // which is near
		area += ((s.From.X-o.X)*(s.To.Y-o.Y) - (s.To.X-o.X)*(s.From.Y-o.Y)) / 2
		// Between chord and arc lies a circular segment.
		area += s.Radius * s.Radius / 2 * (s.Sweep - math.Sin(s.Sweep))
	}
	return area
}

// Reversed runs the loop the other way round.
func (l Loop) Reversed() Loop {
	out := make(Loop, len(l))
	for i, s := range l {
		out[len(l)-1-i] = s.Reversed()
	}
	return out
}

// Bounds are the lowest and the highest corner around the loop.
func (l Loop) Bounds() (low, high Point) {
	low, high = Point{math.Inf(1), math.Inf(1)}, Point{math.Inf(-1), math.Inf(-1)}
	add := func(p Point) {
		low = Point{min(low.X, p.X), min(low.Y, p.Y)}
		high = Point{max(high.X, p.X), max(high.Y, p.Y)}
	}
	for _, s := range l {
		add(s.From)
		add(s.To)
		if s.Radius == 0 {
			continue
		}
		first, last := s.start(), s.start()+s.Sweep
		if last < first {
			first, last = last, first
		}
		for q := math.Ceil(first / (math.Pi / 2)); q*math.Pi/2 <= last; q++ {
			add(onCircle(s.Center, s.Radius, q*math.Pi/2))
		}
	}
	return low, high
}
