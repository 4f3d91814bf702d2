package env

import (
	"swarmdeck/drivers/cad/profile"
)

// Profile is a plane area with true arcs, in the coordinates of a Plane: outer
// loops counterclockwise, holes clockwise, each segment ending where the next
// begins.
type Profile struct {
	Loops [][]Segment `json:"loops"`
}

// Segment is a straight line, or with a radius an arc of a circle.
type Segment struct {
	From   [2]float64 `json:"from"`
	To     [2]float64 `json:"to"`
	Radius float64    `json:"radius,omitzero"`
	Center [2]float64 `json:"center,omitzero"`
	// Sweep is how far an arc turns, in radians, up to a full circle; negative
	// is clockwise.
	Sweep float64 `json:"sweep,omitzero"`
}

// ProfileOf writes a shape as a recipe holds it.
func ProfileOf(s profile.Shape) Profile {
	var out Profile
	for _, l := range s.Loops {
		var loop []Segment
		for _, g := range l {
			loop = append(loop, Segment{
				From: [2]float64{g.From.X, g.From.Y}, To: [2]float64{g.To.X, g.To.Y},
				Radius: g.Radius, Center: [2]float64{g.Center.X, g.Center.Y}, Sweep: g.Sweep,
			})
		}
		out.Loops = append(out.Loops, loop)
	}
	return out
}

// Shape checks that the loops close, neither cross nor touch, and enclose an
// area.
func (p Profile) Shape() (profile.Shape, error) {
	var all []profile.Segment
	for _, l := range p.Loops {
		for _, g := range l {
			all = append(all, profile.Segment{
				From: profile.Point{X: g.From[0], Y: g.From[1]}, To: profile.Point{X: g.To[0], Y: g.To[1]},
				Radius: g.Radius, Center: profile.Point{X: g.Center[0], Y: g.Center[1]}, Sweep: g.Sweep,
			})
		}
	}
	s, err := profile.New(all...)
	return s, Refused(err, InvalidGeometry)
}
