package solid_test

import (
	"fmt"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/themes"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/solid"
)

// BenchmarkFrame turns a body of 2,592 triangles and draws it; bytes/frame is what a terminal gets
// when every cell is sent.
func BenchmarkFrame(b *testing.B) {
	theme := expect.Of(themes.Load(themes.Default))(b)
	for _, size := range [][2]int{{80, 30}, {120, 45}} {
		for mode := range solid.Modes {
			b.Run(fmt.Sprintf("%dx%d/%s", size[0], size[1], mode), func(b *testing.B) {
				s := solid.New([]solid.Part{{Name: "torus", Mesh: torus(54, 24, 30, 12), Role: screen.Accent}})
				c := screen.New(size[0], size[1])
				var v solid.View
				cam, _ := solid.ViewOf("iso")
				total := 0
				b.ReportAllocs()
				for b.Loop() {
					cam.Turn(3, 0, 0)
					c.Clear()
					v.Draw(c, c.Bounds(), s, solid.Look{Camera: cam, Mode: mode, Tints: true})
					total += len(c.Render(theme))
				}
				b.ReportMetric(float64(total)/float64(b.N), "bytes/frame")
			})
		}
	}
}

// BenchmarkHuge draws a body of more triangles than a scene has.
func BenchmarkHuge(b *testing.B) {
	m := torus(1000, 500, 30, 12)
	b.Run("scene", func(b *testing.B) {
		for b.Loop() {
			solid.New([]solid.Part{{Mesh: m}})
		}
	})
	s := solid.New([]solid.Part{{Mesh: m, Role: screen.Accent}})
	c := screen.New(120, 45)
	var v solid.View
	b.Run(fmt.Sprintf("frame of %d", s.Triangles()), func(b *testing.B) {
		b.ReportAllocs()
		cam, _ := solid.ViewOf("iso")
		for b.Loop() {
			cam.Turn(3, 0, 0)
			v.Draw(c, c.Bounds(), s, solid.Look{Camera: cam, Mode: solid.Shaded, Tints: true})
		}
	})
	b.Log(s.Note())
}
