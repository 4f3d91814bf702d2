package solid

import (
	"math"
	"strconv"
	"strings"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// ParseSection reads where to cut, such as x=5 or z=-2.5.
func ParseSection(text string) (Section, error) {
	axis, value, _ := strings.Cut(text, "=")
	i := strings.Index("xyz", axis)
	v, err := strconv.ParseFloat(value, 64)
	if len(axis) != 1 || i < 0 || err != nil || !(math.Abs(v) <= maxCoord) {
		return Section{}, core.Invalid("section", text, "an axis and mm along it, such as x=5")
	}
	return Section{On: true, Axis: i, Offset: v}, nil
}

// String is how ParseSection reads it; "" is none.
func (s Section) String() string {
	if !s.On || s.Axis < 0 || s.Axis > 2 {
		return ""
	}
	return "xyz"[s.Axis:s.Axis+1] + "=" + Number(s.Offset)
}

// cut is a section in the picture: its plane, and which side of it stays.
type cut struct {
	on    bool
	sign  float32 // the side that goes: 1 above the offset, -1 below
	seen  bool    // the plane is not edge on
	level uint8
	// depth of the plane at dot x, y: z0 + x*dx + y*dy
	z0, dx, dy float32
}

// newCut takes away what lies on the viewer's side of the plane, above it when
// the plane is seen edge on.
func newCut(sec Section, s *Scene, f frame, scale float64) cut {
	if !sec.On || sec.Axis < 0 || sec.Axis > 2 || math.IsNaN(sec.Offset) || math.IsInf(sec.Offset, 0) {
		return cut{}
	}
	n := [3]float64{}
	n[sec.Axis] = 1
	near := f.near[sec.Axis]
	k := cut{on: true, sign: 1, level: bright(0.55)}
	if near < -1e-9 {
		k.sign = -1
	}
	if math.Abs(near) < 0.02 {
		return k
	}
	k.seen = true
	// A point of the plane is right*x + up*y + near*z with n·p = offset.
	offset := sec.Offset - s.center[sec.Axis]
	k.z0 = float32(scale * offset / near)
	k.dx = float32(-mesh.Dot(n, f.right) / near)
	k.dy = float32(mesh.Dot(n, f.up) / near)
	return k
}

// at is the depth of the plane at the middle of a dot, counted from the
// middle of the scene.
func (k *cut) at(x, y float32) float32 { return k.z0 + x*k.dx + y*k.dy }

// measureSection finds how far each corner lies on the side that goes.
func (v *View) measureSection(sec Section) {
	if !v.cut.on {
		return
	}
	offset := sec.Offset - v.scene.center[sec.Axis]
	for i, p := range v.scene.verts {
		v.side[i] = v.cut.sign * float32(p[sec.Axis]-offset)
	}
}

// between is the point of a line at which it meets the section.
func between(a, b [3]float32, da, db float32) [3]float32 {
	t := da / (da - db)
	for i := range 3 {
		a[i] += t * (b[i] - a[i])
	}
	return a
}

// clip is what stays of a triangle, three or four corners, and the line along
// which it was cut.
func (v *View) clip(t *triangle) (out [4][3]float32, n int, line [2][3]float32, lines int) {
	corner := [3]int32{t.a, t.b, t.c}
	for i, a := range corner {
		b := corner[(i+1)%3]
		da, db := v.side[a], v.side[b]
		if da <= 0 {
			out[n] = v.points[a]
			n++
		}
		if (da <= 0) != (db <= 0) && n < 4 && lines < 2 {
			p := between(v.points[a], v.points[b], da, db)
			out[n] = p
			n++
			line[lines] = p
			lines++
		}
	}
	return out, n, line, lines
}
