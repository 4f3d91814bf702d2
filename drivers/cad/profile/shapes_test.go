package profile

import "math"

// Rectangle has its lowest corner at a point.
func Rectangle(at Point, width, height float64) (Shape, error) {
	return Polygon(at, Point{at.X + width, at.Y}, Point{at.X + width, at.Y + height}, Point{at.X, at.Y + height})
}

// Circle is a full circle.
func Circle(center Point, radius float64) (Shape, error) {
	return New(Arc(center, radius, 0, 2*math.Pi))
}

// RoundedRectangle is a rectangle whose corners are quarter circles.
func RoundedRectangle(at Point, width, height, radius float64) (Shape, error) {
	if radius == 0 {
		return Rectangle(at, width, height)
	}
	corners := []Point{
		{at.X + width - radius, at.Y + radius},
		{at.X + width - radius, at.Y + height - radius},
		{at.X + radius, at.Y + height - radius},
		{at.X + radius, at.Y + radius},
	}
	var segments []Segment
	for i, c := range corners {
		a := Arc(c, radius, (float64(i)-1)*math.Pi/2, math.Pi/2)
		n := Arc(corners[(i+1)%4], radius, float64(i)*math.Pi/2, math.Pi/2)
		segments = append(segments, a)
		if distance(a.To, n.From) > Joint {
			segments = append(segments, Line(a.To, n.From))
		}
	}
	return New(segments...)
}
