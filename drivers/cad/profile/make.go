package profile

import "math"

// Polygon joins points by lines and closes the loop.
func Polygon(points ...Point) (Shape, error) {
	segments := make([]Segment, 0, len(points))
	for i, p := range points {
		segments = append(segments, Line(p, points[(i+1)%len(points)]))
	}
	return New(segments...)
}

// Slot is the area within a radius of the line between two points.
func Slot(from, to Point, radius float64) (Shape, error) {
	angle := math.Atan2(to.Y-from.Y, to.X-from.X)
	a := Arc(to, radius, angle-math.Pi/2, math.Pi)
	b := Arc(from, radius, angle+math.Pi/2, math.Pi)
	return New(a, Line(a.To, b.From), b, Line(b.To, a.From))
}
