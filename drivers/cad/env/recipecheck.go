package env

import (
	"fmt"
	"math"
	"slices"

	"swarmdeck/engine/cad/mesh"
)

// first is the first refusal of several.
func first(errs ...*Error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func place(field string, p [3]float64) *Error {
	if !finite(p[:]...) {
		return Invalid(field, fmt.Sprint(p), fmt.Sprintf("coordinates from -%g to %g mm", MaxLength, MaxLength))
	}
	return nil
}

// reach refuses a solid that extends too far. Kernels round boxes outwards.
func reach(b mesh.Box) error {
	for _, v := range slices.Concat(b.Min[:], b.Max[:]) {
		if !(math.Abs(v) <= MaxLength+MinLength) {
			return Refuse(InvalidGeometry, "bounding_box", v, fmt.Sprintf("the solid would reach %g mm", v), fmt.Sprintf("keep it from -%g to %g mm", MaxLength, MaxLength))
		}
	}
	return nil
}

func length(field string, v float64) *Error {
	if !(v >= MinLength && v <= MaxLength) {
		return Refuse(InvalidGeometry, field, v, fmt.Sprintf("%s: %g mm makes no solid", field, v), fmt.Sprintf("give %g to %g mm", MinLength, MaxLength))
	}
	return nil
}

func direction(field string, v [3]float64) *Error {
	if !finite(v[:]...) || mesh.Length(v) < 1e-9 {
		return Refuse(InvalidGeometry, field, fmt.Sprint(v), field+" is no direction", "give three finite numbers that are not all 0")
	}
	return nil
}

func chord(v float64) *Error {
	if v != 0 && !(v >= 1e-6 && v <= 10) {
		return Invalid("tolerance", v, "0.000001 to 10 mm")
	}
	return nil
}

func turning(v float64) *Error {
	if !(math.Abs(v) >= 1e-6 && math.Abs(v) <= 2*math.Pi+1e-9) {
		return Refuse(InvalidGeometry, "angle", v, fmt.Sprintf("angle: %g radians is no turn", v), "give up to a full turn of 2π radians, not 0")
	}
	return nil
}

func copies(n int) *Error {
	if n < 2 || n > MaxInputs {
		return Invalid("count", n, fmt.Sprintf("2 to %d", MaxInputs))
	}
	return nil
}

func picks(field string, points [][3]float64) *Error {
	if len(points) > MaxInputs {
		return Invalid(field, len(points), fmt.Sprintf("at most %d points", MaxInputs))
	}
	for _, p := range points {
		if err := place(field, p); err != nil {
			return err
		}
	}
	return nil
}

func (p Plane) check() *Error {
	if err := place("origin", p.Origin); err != nil {
		return err
	}
	x, y := mesh.Length(p.XAxis), mesh.Length(p.YAxis)
	if !(math.Abs(x-1) < 1e-9 && math.Abs(y-1) < 1e-9 && math.Abs(mesh.Dot(p.XAxis, p.YAxis)) < 1e-9) {
		return Invalid("x_axis", fmt.Sprint(p.XAxis, p.YAxis), "two directions of length 1 at a right angle")
	}
	return nil
}

func (e *Extrude) check() error {
	if err := first(e.Plane.check(), place("direction", e.Vector), chord(e.Tolerance)); err != nil {
		return err
	}
	if h := math.Abs(mesh.Dot(e.Vector, e.Normal())); h < MinLength {
		return Refuse(InvalidGeometry, "distance", h, fmt.Sprintf("distance: a height of %g mm over the profile's plane makes no solid", h),
			fmt.Sprintf("give a distance of at least %g mm and a direction out of the profile's plane", MinLength))
	}
	_, err := e.Profile.Check()
	return Refused(err, InvalidGeometry)
}

func (r *Revolve) check() error {
	if err := first(r.Plane.check(), place("axis_point", r.Point), direction("axis_direction", r.Axis), turning(r.Angle), chord(r.Tolerance)); err != nil {
		return err
	}
	if _, _, err := r.AxisInPlane(); err != nil {
		return err
	}
	_, err := r.Profile.Check()
	return Refused(err, InvalidGeometry)
}

// AxisInPlane is the axis in the plane's own coordinates: a point of it and its
// direction, of length 1.
func (r *Revolve) AxisInPlane() (point, along [2]float64, err error) {
	d := mesh.Unit(r.Axis)
	off := mesh.Sub(r.Point, r.Origin)
	n := r.Normal()
	if math.Abs(mesh.Dot(d, n)) > 1e-6 || math.Abs(mesh.Dot(off, n)) > 1e-6 {
		return point, along, Refuse(InvalidGeometry, "axis_point", fmt.Sprint(r.Point), "the axis does not lie in the profile's plane", "give a point and a direction in that plane")
	}
	point = [2]float64{mesh.Dot(off, r.XAxis), mesh.Dot(off, r.YAxis)}
	along = [2]float64{mesh.Dot(d, r.XAxis), mesh.Dot(d, r.YAxis)}
	return point, along, nil
}

func (b *Box) check() error {
	return first(place("position", b.Position), length("width", b.Dimensions[0]), length("depth", b.Dimensions[1]), length("height", b.Dimensions[2]))
}

func (c *Cylinder) check() error {
	return first(place("axis_point", c.Point), direction("axis_direction", c.Axis), length("radius", c.Radius), length("height", c.Height), chord(c.Tolerance))
}

func (s *Sphere) check() error {
	return first(place("center", s.Center), length("radius", s.Radius), chord(s.Tolerance))
}

func (c *Cone) check() error {
	base, top := length("radius1", c.Radius), length("radius2", c.Top)
	switch { // one of the two may be a point
	case c.Radius == 0 && c.Top > 0:
		base = nil
	case c.Top == 0 && c.Radius > 0:
		top = nil
	}
	return first(place("axis_point", c.Point), direction("axis_direction", c.Axis), base, top, length("height", c.Height), chord(c.Tolerance))
}

func (*Boolean) check() error { return nil }

func (l *Linear) check() error {
	return first(direction("direction", l.Direction), length("spacing", math.Abs(l.Spacing)), copies(l.Count))
}

func (c *Circular) check() error {
	return first(place("axis_point", c.Point), direction("axis_direction", c.Axis), turning(c.Angle), copies(c.Count))
}

func (m *Mirror) check() error {
	return first(place("mirror_plane_point", m.Point), direction("mirror_plane_normal", m.Normal))
}

func (t *Transform) check() error {
	for _, column := range t.Matrix {
		if err := place("matrix", column); err != nil {
			return err
		}
	}
	m := t.Matrix
	if d := math.Abs(mesh.Dot(m[0], mesh.Cross(m[1], m[2]))); d < 1e-9 || d > 1e9 {
		return Invalid("matrix", d, "a map that scales by 0.001 to 1000")
	}
	return nil
}

func (f *Fillet) check() error { return first(length("radius", f.Radius), picks("edges", f.Edges)) }

func (c *Chamfer) check() error {
	return first(length("distance", c.Distance), picks("edges", c.Edges))
}

func (s *Shell) check() error {
	return first(length("thickness", s.Thickness), picks("open_faces", s.OpenFaces))
}

func (i *Import) check() error {
	if i.Format == "" || len(i.Format) > 16 || i.Index < 0 || i.Index > 1_000_000 {
		return Invalid("format", i.Format, "a format of at most 16 letters and an index from 0")
	}
	return nil
}
