package solid

import (
	"math"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/ui/screen"
)

// View draws scenes. It belongs to one goroutine; its zero value is ready.
type View struct {
	w, h  int // dots: two to a cell across, four down
	dots  [2]layer
	wall  []float32 // depth of what is seen at each dot, at its middle
	owner []int32   // triangle that is seen there, from 1; 0 nothing
	face  []pixel
	cells []cell

	points [][3]float32 // the scene's corners in the picture: dots right, dots down, dots near
	facing []int8       // of each triangle: 1 towards the viewer, -1 away, 0 edge on
	grade  [][2]float32 // of each triangle: how its depth changes from dot to dot, right and down
	light  [3]float32
	left   int  // work that may still be done
	short  bool // it was not enough
	scene  *Scene
	scale  float64 // dots per mm
}

// layer is what is nearest at each dot: of the whole scene, or of one side of
// a comparison.
type layer struct {
	z   []float32
	tri []int32 // from 1; 0 nothing
}

// pixel is what is seen at a dot.
type pixel struct {
	part  uint8 // from 1; 0 nothing
	level uint8 // brightness, 1 to screen.TintLevels
	seen  uint8 // seenBefore, seenAfter: the sides that it belongs to
}

const (
	seenBefore = 1 << iota
	seenAfter
)

// cell is the edges within one cell: dots of the scene or its Before side, and
// of After.
type cell struct {
	edge [2]uint8
	part uint8
	z    float32
}

// Note says what of the last picture is not drawn; "" is nothing.
func (v *View) Note() string {
	if v.short {
		return "too much for one picture: not all is drawn"
	}
	return ""
}

// Scale is how many millimetres of the last picture, or its last quarter, one
// cell is wide.
func (v *View) Scale() float64 {
	if v.scale <= 0 {
		return 0
	}
	return 2 / v.scale
}

// Draw draws a scene into a rectangle of a canvas, which it leaves as it is
// where nothing is seen.
func (v *View) Draw(c *screen.Canvas, r screen.Rect, s *Scene, look Look) {
	r = r.Clip(c.Bounds()).Center(maxCells, maxCells)
	v.left, v.short, v.scale = maxFill, false, 0
	if r.Empty() || s.Empty() {
		return
	}
	if look.Mode >= Modes {
		look.Mode = Lines
	}
	if look.Four && r.W >= 8 && r.H >= 6 {
		v.four(c, r, s, look)
		return
	}
	look.Camera = look.Camera.sane()
	v.picture(c, r, s, look, fit(s, look.Camera.frame(), r))
}

// four draws the views of a drawing: top above front, iso above right.
func (v *View) four(c *screen.Canvas, r screen.Rect, s *Scene, look Look) {
	left, right := r.SplitLeft(r.W / 2)
	c.VLine(right.X, r.Y, r.H, screen.Border)
	_, right = right.SplitLeft(1)
	var place [4]screen.Rect
	place[0], place[2] = left.SplitTop(r.H / 2)
	place[1], place[3] = right.SplitTop(r.H / 2)
	scale := math.Inf(1)
	for i, name := range views {
		title, body := place[i].SplitTop(1)
		c.HLine(title.X, title.Y, title.W, screen.Border)
		text := name.title
		if len(text) > title.W-2 {
			text = name.name
		}
		c.Text(title.X+1, title.Y, screen.Title, text)
		place[i] = body
		scale = min(scale, fit(s, (Camera{Yaw: name.yaw, Pitch: name.pitch}).frame(), body))
	}
	zoom := look.Camera.sane().Zoom
	for i, name := range views {
		look.Camera = Camera{Yaw: name.yaw, Pitch: name.pitch, Zoom: zoom}
		v.picture(c, place[i], s, look, scale)
	}
}

// fit is the scale in dots per mm at which the scene's box fills a rectangle.
func fit(s *Scene, f frame, r screen.Rect) float64 {
	var wide, high float64
	size := s.box.Size()
	for i := range 3 {
		wide += math.Abs(f.right[i]) * size[i]
		high += math.Abs(f.up[i]) * size[i]
	}
	scale := min(float64(2*r.W-2)/max(wide, 1e-9), float64(4*r.H-2)/max(high, 1e-9))
	return min(max(scale, 1e-9), 1e9)
}

// picture draws one view.
func (v *View) picture(c *screen.Canvas, r screen.Rect, s *Scene, look Look, scale float64) {
	if r.Empty() {
		return
	}
	f := look.Camera.frame()
	v.scene, v.scale = s, scale*look.Camera.Zoom
	v.resize(2*r.W, 4*r.H)
	pan := float64(min(v.w, v.h))
	midX, midY := float64(v.w)/2+look.Camera.PanX*pan, float64(v.h)/2-look.Camera.PanY*pan
	v.project(f, v.scale, midX, midY)
	for i := range s.tris {
		v.triangle(int32(i))
	}
	v.compose()
	v.outline()
	v.paint(c, r, look)
}

// resize makes the buffers fit and clears them.
func (v *View) resize(w, h int) {
	v.w, v.h = w, h
	n := w * h
	for i := range v.dots {
		if i > 0 && !v.scene.sides {
			break
		}
		d := &v.dots[i]
		d.z, d.tri = sized(d.z, n), sized(d.tri, n)
		clear(d.tri)
		for j := range d.z {
			d.z[j] = far
		}
	}
	v.wall, v.owner, v.face = sized(v.wall, n), sized(v.owner, n), sized(v.face, n)
	v.cells = sized(v.cells, n/8)
	for i := range v.cells {
		v.cells[i] = cell{z: far}
	}
	v.points = sized(v.points, len(v.scene.verts))
	v.facing, v.grade = sized(v.facing, len(v.scene.tris)), sized(v.grade, len(v.scene.tris))
}

// far is behind everything.
const far = -math.MaxFloat32

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// project turns the corners into the picture and finds which way the faces
// look and how bright they are.
func (v *View) project(f frame, scale, midX, midY float64) {
	for i, p := range v.scene.verts {
		v.points[i] = [3]float32{
			float32(midX + scale*mesh.Dot(f.right, p)), float32(midY - scale*mesh.Dot(f.up, p)), float32(scale * mesh.Dot(f.near, p)),
		}
	}
	for k := range 3 { // the light comes from the viewer's upper left
		v.light[k] = float32(-0.4*f.right[k] + 0.5*f.up[k] + 0.768*f.near[k])
	}
	near := [3]float32{float32(f.near[0]), float32(f.near[1]), float32(f.near[2])}
	right := [3]float32{float32(f.right[0]), float32(f.right[1]), float32(f.right[2])}
	up := [3]float32{float32(f.up[0]), float32(f.up[1]), float32(f.up[2])}
	for i := range v.scene.tris {
		n := v.scene.tris[i].normal
		z := dot(n, near)
		v.facing[i] = 0
		switch {
		case z > 1e-4:
			v.facing[i] = 1
		case z < -1e-4:
			v.facing[i] = -1
		}
		if v.grade[i] = [2]float32{}; v.facing[i] != 0 {
			v.grade[i] = [2]float32{-dot(n, right) / z, dot(n, up) / z}
		}
	}
}

func dot(a, b [3]float32) float32 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func abs(x float32) float32 { return max(x, -x) }
