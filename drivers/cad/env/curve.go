package env

import (
	"fmt"
	"math"
	"strings"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// curve is what defines a point, line, circle or arc.
type curve struct {
	kind       model.EntityType
	at         [3]float64 // a point's place; the start of a line; a centre
	end        [3]float64 // of a line
	radius     float64
	from, to   float64 // angles of an arc, counterclockwise about the normal
	normal, ax [3]float64
}

// The properties of entities, as they are stored and told.
type (
	pointProperties struct {
		Coordinates [3]float64 `json:"coordinates"`
	}
	lineProperties struct {
		Start     [3]float64 `json:"start"`
		End       [3]float64 `json:"end"`
		Length    float64    `json:"length"`
		Direction [3]float64 `json:"direction_vector"`
	}
	circleProperties struct {
		Center        [3]float64 `json:"center"`
		Radius        float64    `json:"radius"`
		Normal        [3]float64 `json:"normal"`
		Area          float64    `json:"area"`
		Circumference float64    `json:"circumference"`
	}
	arcProperties struct {
		Center     [3]float64 `json:"center"`
		Radius     float64    `json:"radius"`
		StartAngle float64    `json:"start_angle"` // from x_axis
		EndAngle   float64    `json:"end_angle"`
		Normal     [3]float64 `json:"normal"`
		XAxis      [3]float64 `json:"x_axis"`
		Start      [3]float64 `json:"start"`
		End        [3]float64 `json:"end"`
		Length     float64    `json:"length"`
	}
)

// axes are two directions that span the plane with a normal of length 1: x and
// y of the drawing where the normal is z.
func axes(n [3]float64) (x, y [3]float64) {
	x = [3]float64{1, 0, 0}
	if math.Hypot(n[0], n[1]) >= 1e-12 {
		x = mesh.Unit(mesh.Cross([3]float64{0, 0, 1}, n))
	}
	return zeroed(x), zeroed(mesh.Cross(n, x))
}

// zeroed has no negative zeros, which would make equal things differ.
func zeroed(v [3]float64) [3]float64 {
	for i := range v {
		v[i] += 0
	}
	return v
}

// plane of a circle or arc.
func (c curve) plane() Plane {
	p := Plane{Origin: c.at, XAxis: c.ax}
	p.YAxis = zeroed(mesh.Cross(c.normal, c.ax))
	return p
}

func (c curve) onCircle(angle float64) [3]float64 {
	sin, cos := math.Sincos(angle)
	return zeroed(c.plane().At(c.radius*cos, c.radius*sin))
}

// sweep of an arc, above 0 and up to a full turn.
func (c curve) sweep() float64 {
	s := math.Mod(c.to-c.from, 2*math.Pi)
	if s <= 1e-12 {
		s += 2 * math.Pi
	}
	return min(s, 2*math.Pi)
}

// check refuses what is no such curve.
func (c curve) check() error {
	for field, p := range map[string][3]float64{"coordinates": c.at, "end": c.end} {
		if err := place(field, p); err != nil {
			return err
		}
	}
	switch c.kind {
	case model.Line:
		if l := mesh.Length(mesh.Sub(c.end, c.at)); l < MinLength {
			return Refuse(InvalidGeometry, "end", fmt.Sprint(c.end), fmt.Sprintf("a line of length %g mm is no line", l), fmt.Sprintf("give two places at least %g mm apart", MinLength))
		}
	case model.Circle, model.Arc:
		if err := length("radius", c.radius); err != nil {
			return err
		}
		if err := direction("normal", c.normal); err != nil {
			return err
		}
	}
	if c.kind == model.Arc {
		if !(math.Abs(c.from) <= 100 && math.Abs(c.to) <= 100) {
			return Invalid("start_angle", c.from, "angles in radians from -100 to 100")
		}
		if math.Abs(c.to-c.from) < 1e-9 {
			return Refuse(InvalidGeometry, "end_angle", c.to, "an arc that ends where it starts is no arc", "give an end_angle that differs from start_angle, or create a circle")
		}
		if c.sweep()*c.radius < MinLength {
			return Refuse(InvalidGeometry, "end_angle", c.to, "the arc is too short", fmt.Sprintf("give an arc of at least %g mm", MinLength))
		}
	}
	return nil
}

// properties writes the curve as an entity holds it.
func (c curve) properties() core.Raw {
	switch c.kind {
	case model.Point:
		return core.MustEncode(pointProperties{zeroed(c.at)})
	case model.Line:
		d := mesh.Sub(c.end, c.at)
		l := mesh.Length(d)
		return core.MustEncode(lineProperties{zeroed(c.at), zeroed(c.end), l, zeroed(mesh.Scale(d, 1/l))})
	case model.Circle:
		return core.MustEncode(circleProperties{zeroed(c.at), c.radius, c.normal, math.Pi * c.radius * c.radius, 2 * math.Pi * c.radius})
	}
	return core.MustEncode(arcProperties{
		Center: zeroed(c.at), Radius: c.radius, StartAngle: c.from, EndAngle: c.to, Normal: c.normal, XAxis: c.ax,
		Start: c.onCircle(c.from), End: c.onCircle(c.to), Length: c.radius * c.sweep(),
	})
}

// curveOf reads an entity that is a curve.
func curveOf(e model.Entity) (curve, error) {
	c := curve{kind: e.Type}
	var err error
	switch e.Type {
	case model.Point:
		var p pointProperties
		err = core.DecodeStored(e.Properties, &p)
		c.at = p.Coordinates
	case model.Line:
		var p lineProperties
		err = core.DecodeStored(e.Properties, &p)
		c.at, c.end = p.Start, p.End
	case model.Circle:
		var p circleProperties
		err = core.DecodeStored(e.Properties, &p)
		c.at, c.radius, c.normal = p.Center, p.Radius, p.Normal
		c.ax, _ = axes(p.Normal)
	case model.Arc:
		var p arcProperties
		err = core.DecodeStored(e.Properties, &p)
		c.at, c.radius, c.from, c.to, c.normal, c.ax = p.Center, p.Radius, p.StartAngle, p.EndAngle, p.Normal, p.XAxis
	default:
		return c, Refuse(OperationInvalid, "entity_id", e.ID, fmt.Sprintf("%s is a %s", e.ID, e.Type), "give a point, line, circle or arc")
	}
	if err != nil {
		return c, fmt.Errorf("entity %s: read its properties: %w", e.ID, err)
	}
	return c, c.check()
}

// split takes a reference apart: line_1.end names the end of line_1.
func split(ref string) (id, part string) {
	for _, p := range []string{".start", ".end", ".center"} {
		if id, ok := strings.CutSuffix(ref, p); ok {
			return id, p[1:]
		}
	}
	return ref, ""
}

// part is the place of a curve's start, end or centre, or of a point.
func (c curve) part(name string) (at [3]float64, ok bool) {
	switch string(c.kind) + "." + name {
	case "point.", "line.start", "circle.center", "arc.center":
		return c.at, true
	case "line.end":
		return c.end, true
	case "arc.start":
		return c.onCircle(c.from), true
	case "arc.end":
		return c.onCircle(c.to), true
	}
	return at, false
}
