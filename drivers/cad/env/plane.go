package env

import (
	"errors"
	"fmt"
	"math"

	"swarmdeck/drivers/cad/profile"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// inPlane is how far from a plane something may lie and still be in it, in mm.
const inPlane = 1e-6

// planeOf finds the plane that curves lie in. One of constant z, y or x has its
// normal along that axis and keeps its coordinates; the normal of any other has
// its last component that is not 0 above 0.
func planeOf(curves []curve) (Plane, error) {
	var points, normals [][3]float64
	for _, c := range curves {
		points = append(points, c.at)
		switch c.kind {
		case model.Line:
			points = append(points, c.end)
		case model.Circle, model.Arc:
			normals = append(normals, c.normal)
		}
	}
	n := normalOf(points, normals)
	height := mesh.Dot(n, points[0])
	for _, p := range points {
		if math.Abs(mesh.Dot(n, p)-height) > inPlane {
			return Plane{}, Refuse(InvalidGeometry, "entity_ids", fmt.Sprint(p), fmt.Sprintf("%v does not lie in one plane with the rest", p), "choose entities of one plane")
		}
	}
	for _, other := range normals {
		if mesh.Length(mesh.Cross(n, other)) > inPlane {
			return Plane{}, Refuse(InvalidGeometry, "entity_ids", fmt.Sprint(other), "a circle or arc is turned out of the plane of the rest", "choose entities of one plane")
		}
	}
	out := Plane{Origin: zeroed(mesh.Scale(n, height))}
	out.XAxis, out.YAxis = axes(n)
	return out, nil
}

func normalOf(points, normals [][3]float64) [3]float64 {
	for axis := 2; axis >= 0; axis-- {
		n := [3]float64{}
		n[axis] = 1
		flat := true
		for _, p := range points {
			flat = flat && math.Abs(p[axis]-points[0][axis]) <= inPlane
		}
		for _, other := range normals {
			flat = flat && mesh.Length(mesh.Cross(n, other)) <= inPlane
		}
		if flat {
			return n
		}
	}
	var n [3]float64
	if len(normals) > 0 {
		n = normals[0]
	} else {
		along := farthest(points, func(p [3]float64) [3]float64 { return mesh.Sub(p, points[0]) })
		n = farthest(points, func(p [3]float64) [3]float64 { return mesh.Cross(along, mesh.Sub(p, points[0])) })
		if mesh.Length(n) <= inPlane*mesh.Length(along) { // all on one line: any plane through it
			n, _ = axes(mesh.Unit(along))
		}
	}
	n = mesh.Unit(n)
	for axis := 2; axis >= 0; axis-- {
		if math.Abs(n[axis]) > 1e-9 {
			return zeroed(mesh.Scale(n, math.Copysign(1, n[axis])))
		}
	}
	return n
}

// farthest is the longest of what a function makes of points.
func farthest(points [][3]float64, of func([3]float64) [3]float64) (best [3]float64) {
	for _, p := range points {
		if v := of(p); mesh.Length(v) > mesh.Length(best) {
			best = v
		}
	}
	return best
}

// flat is a place in the coordinates of the plane.
func (p Plane) flat(at [3]float64) profile.Point {
	d := mesh.Sub(at, p.Origin)
	return profile.Point{X: mesh.Dot(d, p.XAxis), Y: mesh.Dot(d, p.YAxis)}
}

// turnsWith says whether an arc runs counterclockwise in the plane, too.
func (p Plane) turnsWith(c curve) bool { return mesh.Dot(p.Normal(), c.normal) > 0 }

// segment is a line, circle or arc as part of a profile.
func (p Plane) segment(c curve) profile.Segment {
	if c.kind == model.Line {
		return profile.Line(p.flat(c.at), p.flat(c.end))
	}
	center := p.flat(c.at)
	if c.kind == model.Circle {
		return profile.Arc(center, c.radius, 0, 2*math.Pi)
	}
	direct, sweep := p.turnsWith(c), c.sweep()
	start := c.from
	if !direct || mesh.Length(mesh.Sub(c.ax, p.XAxis)) > 1e-12 {
		at := p.flat(c.onCircle(c.from))
		start = math.Atan2(at.Y-center.Y, at.X-center.X)
	}
	if !direct {
		sweep = -sweep
	}
	return profile.Arc(center, c.radius, start, sweep)
}

// profile closes the loops of lines, arcs and circles, or of the polygon through
// points in their order.
func (c *call) profile(field string, ids []string) (profile.Shape, Plane, error) {
	if len(ids) == 0 || len(ids) > profile.MaxSegments {
		return profile.Shape{}, Plane{}, Invalid(field, len(ids), fmt.Sprintf("1 to %d entities that close a loop", profile.MaxSegments))
	}
	var curves []curve
	points := 0
	for i, id := range ids {
		e, err := c.entity(field, id)
		if err != nil {
			return profile.Shape{}, Plane{}, err
		}
		one, err := curveOf(e)
		if err != nil {
			return profile.Shape{}, Plane{}, err
		}
		if one.kind == model.Point {
			points++
		}
		if i > 0 && (points > 0) != (points == i+1) {
			return profile.Shape{}, Plane{}, Refuse(InvalidGeometry, field, id, "points and curves do not make one profile together", "give lines, arcs and circles, or points alone")
		}
		curves = append(curves, one)
	}
	plane, err := planeOf(curves)
	if err != nil {
		return profile.Shape{}, Plane{}, err
	}
	var shape profile.Shape
	if points > 0 {
		corners := core.Map(curves, func(p curve) profile.Point { return plane.flat(p.at) })
		if len(corners) < 3 {
			return shape, plane, Refuse(InvalidGeometry, field, len(corners), "fewer than 3 points enclose no area", "give 3 points or more")
		}
		shape, err = profile.Polygon(corners...)
	} else {
		segments := core.Map(curves, plane.segment)
		shape, err = profile.New(segments...)
	}
	err = Refused(err, InvalidGeometry)
	if refused, ok := errors.AsType[*Error](err); ok {
		refused.Data.Field = field // the curves are the caller's, the profile is made of them
	}
	return shape, plane, err
}
