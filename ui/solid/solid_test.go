package solid_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/expect"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/screen/screentest"
	"swarmdeck/ui/solid"
)

func view(t testing.TB, name string) solid.Camera {
	t.Helper()
	c, ok := solid.ViewOf(name)
	expect.Must(t, ok, "view %q is unknown", name)
	return c
}

func draw(w, h int, g *screen.Glyphs, s *solid.Scene, look solid.Look) *screen.Canvas {
	c := screen.New(w, h)
	c.SetGlyphs(g)
	var v solid.View
	v.Draw(c, c.Bounds(), s, look)
	return c
}

func single() *solid.Scene {
	return solid.New([]solid.Part{{Name: "plate", Mesh: plate(), Role: screen.Accent}})
}

func pair() *solid.Scene {
	return solid.New([]solid.Part{
		{Name: "plate", Mesh: plate(), Role: screen.Accent},
		{Name: "post", Mesh: cuboid([3]float64{-10, -10, 0}, [3]float64{20, 20, 60}), Role: screen.Marked},
	})
}

// comparison is a plate of which the hole grew and the height too.
func comparison() *solid.Scene {
	return solid.New([]solid.Part{
		{Name: "plate", Mesh: plate(), Side: solid.Before},
		{Name: "plate", Mesh: ring(64, square(50), circle(34), 0, 34), Side: solid.After},
	})
}

func TestPictures(t *testing.T) {
	iso := view(t, "iso")
	for _, p := range []struct {
		name  string
		scene *solid.Scene
		look  solid.Look
	}{
		{"lines", single(), solid.Look{Camera: iso}},
		{"shaded", single(), solid.Look{Camera: iso, Mode: solid.Shaded, Tints: true}},
		{"grey", single(), solid.Look{Camera: iso, Mode: solid.Shaded}},
		{"parts", pair(), solid.Look{Camera: iso}},
		{"part", pair(), solid.Look{Camera: iso, Part: 2}},
		{"four", pair(), solid.Look{Four: true}},
		{"diff", comparison(), solid.Look{Camera: iso}},
		{"diff-shaded", comparison(), solid.Look{Camera: iso, Mode: solid.Shaded, Tints: true}},
		{"zoomed", single(), solid.Look{Camera: solid.Camera{Yaw: 20, Pitch: 50, Roll: 15, Zoom: 3, PanX: 0.4}}},
	} {
		for _, size := range [][2]int{{80, 24}, {40, 12}} {
			t.Run(fmt.Sprintf("%s-%dx%d", p.name, size[0], size[1]), func(t *testing.T) {
				c := draw(size[0], size[1], screen.Unicode(), p.scene, p.look)
				screentest.Golden(t, c, fmt.Sprintf("%s-%dx%d", p.name, size[0], size[1]))
				if p.look.Tints {
					grounds(t, c, fmt.Sprintf("%s-%dx%d", p.name, size[0], size[1]))
				}
			})
		}
		t.Run(p.name+"-ascii", func(t *testing.T) {
			c := draw(80, 24, screen.ASCII(), p.scene, p.look)
			screentest.ASCII(t, c)
			screentest.Golden(t, c, p.name+"-ascii")
		})
	}
}

// grounds compares the levels of the tints behind the cells with a golden
// file: a letter each, 'a' the darkest.
func grounds(t *testing.T, c *screen.Canvas, name string) {
	t.Helper()
	var b strings.Builder
	for y := range c.H() {
		for x := range c.W() {
			_, ground := c.Tints(x, y)
			if _, level := ground.Parts(); ground != 0 {
				b.WriteByte('a' + byte(level))
			} else {
				b.WriteByte('.')
			}
		}
		b.WriteByte('\n')
	}
	path := "testdata/" + name + ".tints"
	want, err := os.ReadFile(path)
	if err != nil || string(want) != b.String() {
		if os.Getenv("UPDATE_TINTS") != "" {
			expect.No(t, os.WriteFile(path, []byte(b.String()), 0o644))
			return
		}
		t.Errorf("%s differs (UPDATE_TINTS=1 rewrites it); got:\n%s", path, b.String())
	}
}

// cellsWith counts the cells of a role.
func cellsWith(c *screen.Canvas, role screen.Role) (n int) {
	for _, row := range c.Roles() {
		n += strings.Count(row, string(role.Letter()))
	}
	return n
}

func TestAHiddenPartIsNotDrawn(t *testing.T) {
	s := solid.New([]solid.Part{
		{Name: "wall", Mesh: cuboid([3]float64{-50, -20, -50}, [3]float64{100, 10, 100}), Role: screen.Accent},
		{Name: "behind", Mesh: cuboid([3]float64{-10, 0, -10}, [3]float64{20, 20, 20}), Role: screen.Marked},
	})
	for mode := range solid.Modes {
		front := draw(60, 20, screen.Unicode(), s, solid.Look{Camera: view(t, "front"), Mode: mode})
		expect.Is(t, cellsWith(front, screen.Marked), 0, mode)
		right := draw(60, 20, screen.Unicode(), s, solid.Look{Camera: view(t, "right"), Mode: mode})
		expect.True(t, cellsWith(right, screen.Marked) != 0, "%s: from the side the part is not seen", mode)
	}
}

func TestAComparisonSaysMoreThanByColour(t *testing.T) {
	text := strings.Join(draw(80, 24, screen.Unicode(), comparison(), solid.Look{Camera: view(t, "iso")}).Plain(), "")
	expect.True(t, strings.Contains(text, "+") && strings.Contains(text, "-"), "no + or - in the picture:\n%s", text)
	same := solid.New([]solid.Part{{Mesh: plate(), Side: solid.Before}, {Mesh: plate(), Side: solid.After}})
	for mode := range solid.Modes {
		c := draw(80, 24, screen.Unicode(), same, solid.Look{Camera: view(t, "iso"), Mode: mode})
		expect.Is(t, cellsWith(c, screen.Added)+cellsWith(c, screen.Removed), 0, mode, "equal sides differ in")
	}
}

func TestRotationKeepsTheWholeSceneInThePicture(t *testing.T) {
	s := single()
	var v solid.View
	c := screen.New(60, 20)
	for yaw := 0; yaw < 360; yaw += 7 {
		for pitch := -90; pitch <= 90; pitch += 15 {
			c.Clear()
			v.Draw(c, c.Bounds(), s, solid.Look{Camera: solid.Camera{Yaw: float64(yaw), Pitch: float64(pitch)}, Mode: solid.Shaded, Tints: true})
			cells := 0
			for y := range c.H() {
				for x := range c.W() {
					if f, g := c.Tints(x, y); f != 0 || g != 0 {
						cells++
					}
				}
			}
			expect.Must(t, cells >= 100, "yaw %d pitch %d: only %d cells", yaw, pitch, cells)
		}
	}
}

func TestHugeMeshesAreDrawnCoarser(t *testing.T) {
	s := solid.New([]solid.Part{{Mesh: torus(800, 200, 30, 12), Role: screen.Accent}})
	n := s.Triangles()
	expect.True(t, n <= solid.MaxTriangles && n >= 5000, "%d triangles", n)
	expect.Has(t, s.Note(), "320000 triangles drawn as", "note is")
	fine := draw(80, 24, screen.Unicode(), solid.New([]solid.Part{{Mesh: torus(96, 48, 30, 12), Role: screen.Accent}}), solid.Look{Camera: view(t, "iso"), Mode: solid.Shaded, Tints: true})
	coarse := draw(80, 24, screen.Unicode(), s, solid.Look{Camera: view(t, "iso"), Mode: solid.Shaded, Tints: true})
	a, b := cellsWith(fine, screen.Accent), cellsWith(coarse, screen.Accent)
	expect.True(t, math.Abs(float64(a-b)) <= 0.02*float64(a), "%d cells drawn coarse, %d fine", b, a)
}

func TestBrokenTrianglesAreLeftOutAndSaid(t *testing.T) {
	m := plate()
	m.Vertices = append(m.Vertices, [3]float64{math.NaN(), 0, 0}, [3]float64{math.Inf(1), 0, 0}, [3]float64{1e300, 0, 0})
	n := uint32(len(m.Vertices))
	m.Triangles = append(m.Triangles, [3]uint32{0, 1, n - 1}, [3]uint32{0, 1, n - 2}, [3]uint32{0, 1, n - 3}, [3]uint32{0, 1, n}, [3]uint32{0, 1, math.MaxUint32}, [3]uint32{2, 2, 3})
	s := solid.New([]solid.Part{{Mesh: m, Role: screen.Accent}})
	expect.Is(t, s.Note(), "6 broken triangles left out", "note is")
	got, want := draw(60, 20, screen.Unicode(), s, solid.Look{Camera: view(t, "iso")}), draw(60, 20, screen.Unicode(), single(), solid.Look{Camera: view(t, "iso")})
	a, b := got.Roles(), want.Roles()
	expect.True(t, slices.Equal(a, b), "the picture differs:\n%s", strings.Join(a, "\n"))
}

func TestFramesAllocateNothing(t *testing.T) {
	s, c := pair(), screen.New(80, 24)
	var v solid.View
	for _, look := range []solid.Look{
		{Camera: view(t, "iso")},
		{Camera: view(t, "iso"), Mode: solid.Shaded, Tints: true},
		{Camera: view(t, "iso"), Mode: solid.Shaded},
		{Four: true},
	} {
		v.Draw(c, c.Bounds(), s, look)
		expect.Is(t, testing.AllocsPerRun(20, func() { v.Draw(c, c.Bounds(), s, look) }), 0, look)
	}
}

func TestAngles(t *testing.T) {
	for text, want := range map[string]string{
		"front": "front", "top": "top", "right": "right", "iso": "iso", "45": "iso", "0,0": "front", "90, 0": "right",
		"30,-20": "yaw 30 pitch -20", "30,20,5": "yaw 30 pitch 20 roll 5",
	} {
		c, err := solid.ParseAngle(text)
		expect.True(t, err == nil && c.Name() == want, "%q is %q, %v; want %q", text, c.Name(), err, want)
	}
	for _, text := range []string{"", "up", "1,2,3,4", "NaN", "1e9", "1,,2"} {
		if c, err := solid.ParseAngle(text); err == nil {
			t.Errorf("%q is %q, want an error", text, c.Name())
		}
	}
	for _, name := range []string{"front", "top", "right", "iso"} {
		c, ok := solid.ViewOf(name)
		expect.True(t, ok && c.Name() == name, "view %s is %v", name, c)
	}
}

func TestPartsBeyondTheBoundAreSaid(t *testing.T) {
	parts := make([]solid.Part, solid.MaxParts+1)
	for i := range parts {
		parts[i] = solid.Part{Name: fmt.Sprint(i), Mesh: cuboid([3]float64{float64(12 * i), 0, 0}, [3]float64{10, 10, 10}), Role: screen.Accent}
	}
	s := solid.New(parts)
	if want := fmt.Sprintf("%d of %d parts", solid.MaxParts, solid.MaxParts+1); s.Note() != want || len(s.Parts()) != solid.MaxParts {
		t.Errorf("note is %q, want %q", s.Note(), want)
	}
	b := s.Box()
	expect.True(t, b.Size() == (mesh.Box{Max: [3]float64{12*(solid.MaxParts-1) + 10, 10, 10}}).Size(), "box is %v", b)
}
