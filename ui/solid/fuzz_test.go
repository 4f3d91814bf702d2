package solid_test

import (
	"encoding/binary"
	"math"
	"testing"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/solid"
)

// FuzzDraw reads meshes and looks from bytes: whatever they are, a picture is
// drawn within its canvas.
func FuzzDraw(f *testing.F) {
	numbers := func(v ...float64) (out []byte) {
		for _, x := range v {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
		}
		return out
	}
	f.Add(numbers(0, 0, 0, 10, 0, 0, 0, 10, 0, 0, 0, 10), []byte{0, 1, 2, 0, 2, 3, 0, 3, 1, 1, 3, 2}, 45.0, 35.0, 1.0, 2.0, uint8(3))
	f.Add(numbers(math.NaN(), 1e9, -1e9, 1e-300, math.Inf(1), 0, 1e9, 1e9, 1e9, 0, 0, 0, 1, 1, 1), []byte{0, 1, 2, 2, 3, 4, 255, 3, 4}, math.NaN(), math.Inf(1), 1e300, math.NaN(), uint8(255))
	f.Add(numbers(1e9, 0, 0, -1e9, 1e-12, 0, 0, 0, 1e9, 5, 5, 5), []byte{0, 1, 2, 1, 2, 3, 3, 3, 3}, 90.0, 0.0, 200.0, 0.0, uint8(21))
	f.Fuzz(func(t *testing.T, points, corners []byte, yaw, pitch, zoom, offset float64, bits uint8) {
		m := &mesh.Mesh{}
		for ; len(points) >= 24 && len(m.Vertices) < 64; points = points[24:] {
			var p [3]float64
			for i := range p {
				p[i] = math.Float64frombits(binary.LittleEndian.Uint64(points[8*i:]))
			}
			m.Vertices = append(m.Vertices, p)
		}
		for ; len(corners) >= 3 && len(m.Triangles) < 64; corners = corners[3:] {
			m.Triangles = append(m.Triangles, [3]uint32{uint32(corners[0]), uint32(corners[1]), uint32(corners[2])})
		}
		parts := []solid.Part{{Name: "a", Mesh: m, Role: screen.Accent}, {Name: "b", Mesh: m, Role: screen.Role(bits)}}
		if bits&64 != 0 {
			parts[0].Side, parts[1].Side = solid.Before, solid.After
		}
		look := solid.Look{
			Camera: solid.Camera{Yaw: yaw, Pitch: pitch, Roll: pitch, Zoom: zoom, PanX: offset, PanY: zoom},
			Mode:   solid.Mode(bits & 3), Tints: bits&4 != 0, Four: bits&8 != 0, Part: int(bits >> 5),
		}
		s := solid.New(parts)
		c := screen.New(30, 10)
		if bits&128 != 0 {
			c.SetGlyphs(screen.ASCII())
		}
		var v solid.View
		for _, r := range []screen.Rect{c.Bounds(), {X: 3, Y: 2, W: 7, H: 3}, {X: -5, Y: -5, W: 900, H: 900}, {X: 29, Y: 9, W: 1, H: 1}, {}} {
			v.Draw(c, r, s, look)
		}
	})
}
