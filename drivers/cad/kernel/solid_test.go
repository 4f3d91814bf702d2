package kernel_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"swarmdeck/drivers/cad/kernel"
	"swarmdeck/drivers/cad/profile"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/expect"
)

var (
	origin  = [3]float64{}
	up      = [3]float64{0, 0, 1}
	fullTau = 2 * math.Pi
)

// within checks a number against the exact one, relative to it.
func within(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	expect.True(t, math.Abs(got-want) <= relative*math.Max(math.Abs(want), 1e-9), "%s is %v, want %v within %g", what, got, want, relative)
}

func TestVolumesAreThoseOfTheTrueShapes(t *testing.T) {
	k, ctx := open(t), t.Context()
	rect := func(x0, y0, x1, y1 float64) [][2]float64 {
		return [][2]float64{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}
	}
	hole := [][2]float64{{4, 4}, {4, 6}, {6, 6}, {6, 4}}
	frame := kernel.Region{Loops: [][][2]float64{rect(0, 0, 10, 10), hole}}
	ring := kernel.Region{Loops: [][][2]float64{rect(5, 0, 7, 3)}}
	tilted := [3]float64{1, 2, 3}
	for name, c := range map[string]struct {
		make     func() (*kernel.Solid, error)
		volume   float64
		relative float64
	}{
		"box":       {func() (*kernel.Solid, error) { return k.Box(ctx, tilted, [3]float64{2, 3, 4}) }, 24, 1e-12},
		"frame":     {func() (*kernel.Solid, error) { return k.Extrude(ctx, frame, 5) }, 480, 1e-12},
		"cylinder":  {func() (*kernel.Solid, error) { return k.Cylinder(ctx, tilted, tilted, 10, 20, 0.001) }, 2000 * math.Pi, 1e-3},
		"cone":      {func() (*kernel.Solid, error) { return k.Cone(ctx, tilted, up, 10, 0, 30, 0.001) }, 1000 * math.Pi, 1e-3},
		"upturned":  {func() (*kernel.Solid, error) { return k.Cone(ctx, origin, up, 0, 10, 30, 0.001) }, 1000 * math.Pi, 1e-3},
		"frustum":   {func() (*kernel.Solid, error) { return k.Cone(ctx, origin, up, 10, 5, 12, 0.001) }, 700 * math.Pi, 1e-3},
		"sphere":    {func() (*kernel.Solid, error) { return k.Sphere(ctx, tilted, 10, 0.005) }, 4000 * math.Pi / 3, 2e-3},
		"ring":      {func() (*kernel.Solid, error) { return k.Revolve(ctx, ring, fullTau, 0.001) }, 72 * math.Pi, 1e-3},
		"half ring": {func() (*kernel.Solid, error) { return k.Revolve(ctx, ring, math.Pi, 0.001) }, 36 * math.Pi, 1e-3},
	} {
		t.Run(name, func(t *testing.T) {
			s := must[*kernel.Solid](t)(c.make())
			within(t, "volume", must[float64](t)(s.Volume(t.Context())), c.volume, c.relative)
			m := must[*mesh.Mesh](t)(s.Mesh(t.Context()))
			expect.No(t, m.Check())
			within(t, "volume of the mesh", m.Properties().Volume, must[float64](t)(s.Volume(t.Context())), 1e-5)
		})
	}
}

func TestPositionsAreThoseAskedFor(t *testing.T) {
	k, ctx := open(t), t.Context()
	for name, c := range map[string]struct {
		make func() (*kernel.Solid, error)
		want mesh.Box
	}{
		"box":      {func() (*kernel.Solid, error) { return k.Box(ctx, [3]float64{1, 2, 3}, [3]float64{2, 3, 4}) }, mesh.Box{Min: [3]float64{1, 2, 3}, Max: [3]float64{3, 5, 7}}},
		"up":       {func() (*kernel.Solid, error) { return k.Cylinder(ctx, origin, up, 5, 8, 0.1) }, mesh.Box{Min: [3]float64{-5, -5, 0}, Max: [3]float64{5, 5, 8}}},
		"down":     {func() (*kernel.Solid, error) { return k.Cylinder(ctx, origin, [3]float64{0, 0, -2}, 5, 8, 0.1) }, mesh.Box{Min: [3]float64{-5, -5, -8}, Max: [3]float64{5, 5, 0}}},
		"sideways": {func() (*kernel.Solid, error) { return k.Cylinder(ctx, origin, [3]float64{3, 0, 0}, 5, 8, 0.1) }, mesh.Box{Min: [3]float64{0, -5, -5}, Max: [3]float64{8, 5, 5}}},
		"apex":     {func() (*kernel.Solid, error) { return k.Cone(ctx, [3]float64{0, 0, 1}, up, 0, 5, 8, 0.1) }, mesh.Box{Min: [3]float64{-5, -5, 1}, Max: [3]float64{5, 5, 9}}},
	} {
		s := must[*kernel.Solid](t)(c.make())
		got, ok, err := s.Bounds(ctx)
		expect.Must(t, err == nil && ok, "%s: %v, %v", name, ok, err)
		for i := range 3 {
			expect.True(t, math.Abs(got.Min[i]-c.want.Min[i]) <= 1e-9 && math.Abs(got.Max[i]-c.want.Max[i]) <= 1e-9,
				"%s lies in %v, want %v", name, got, c.want)
		}
	}
}

func TestASolidIsNeverFartherFromTheTruthThanItsTolerance(t *testing.T) {
	k, ctx := open(t), t.Context()
	for _, asked := range []float64{2, 0.3, 0.02, 0.004} {
		s := must[*kernel.Solid](t)(k.Sphere(ctx, origin, 10, asked))
		if s.Tolerance() > asked || s.Tolerance() == 0 {
			t.Errorf("sphere declares %v, asked for %v", s.Tolerance(), asked)
		}
		m := must[*mesh.Mesh](t)(s.Mesh(ctx))
		deepest := 0.0
		for i := range m.Triangles {
			a, b, c := m.Corners(i)
			n := mesh.Cross(mesh.Sub(b, a), mesh.Sub(c, a))
			deepest = math.Max(deepest, 10-mesh.Dot(a, n)/mesh.Length(n))
		}
		if deepest > s.Tolerance()+1e-5 {
			t.Errorf("a facet lies %v inside, declared %v", deepest, s.Tolerance())
		}
	}
	s := must[*kernel.Solid](t)(k.Cylinder(ctx, origin, up, 10, 5, 0.05))
	both := must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Union, plate(t, k), s))
	expect.Is(t, both.Tolerance(), s.Tolerance(), "a union declares")
}

func TestUnionAndIntersectionHoldWhatTheOperandsHold(t *testing.T) {
	k, ctx := open(t), t.Context()
	random := rand.New(rand.NewPCG(7, 11))
	volume := func(s *kernel.Solid) float64 { return must[float64](t)(s.Volume(ctx)) }
	point := func() (p [3]float64) {
		for i := range p {
			p[i] = random.Float64()*20 - 10
		}
		return p
	}
	some := func() *kernel.Solid {
		r := 2 + 8*random.Float64()
		switch random.IntN(3) {
		case 0:
			return must[*kernel.Solid](t)(k.Box(ctx, point(), [3]float64{r, 2 * r, r / 2}))
		case 1:
			return must[*kernel.Solid](t)(k.Sphere(ctx, point(), r, 0.1))
		}
		return must[*kernel.Solid](t)(k.Cylinder(ctx, point(), point(), r, 2*r, 0.1))
	}
	for range 60 {
		a, b := some(), some()
		union := must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Union, a, b))
		common := must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Intersect, a, b))
		less := must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Subtract, a, b))
		within(t, "A∪B + A∩B", volume(union)+volume(common), volume(a)+volume(b), 1e-9)
		within(t, "A−B + A∩B", volume(less)+volume(common), volume(a), 1e-9)
		overlap := must[*kernel.Overlap](t)(k.Interference(ctx, a, b))
		switch {
		case overlap == nil && volume(common) > kernel.Touching:
			t.Errorf("an overlap of %v is not found", volume(common))
		case overlap != nil:
			within(t, "overlap", overlap.Volume, volume(common), 1e-9)
		}
		for _, s := range []*kernel.Solid{a, b, union, common, less} {
			expect.No(t, s.Free(ctx))
		}
	}
	expect.Is(t, k.Live(), 0, "solids were left behind")
}

func TestTouchingIsNotOverlapping(t *testing.T) {
	k, ctx := open(t), t.Context()
	a := must[*kernel.Solid](t)(k.Box(ctx, origin, [3]float64{10, 10, 10}))
	for x, want := range map[float64]float64{10: 0, 9.9: 10, 12: 0} {
		b := must[*kernel.Solid](t)(k.Box(ctx, [3]float64{x, 0, 0}, [3]float64{10, 10, 10}))
		got := must[*kernel.Overlap](t)(k.Interference(ctx, a, b))
		expect.True(t, (got != nil) == (want > 0) && (got == nil || math.Abs(got.Volume-want) <= 1e-6), "box at %v: %+v, want %v", x, got, want)
		within(t, "gap", must[float64](t)(a.Distance(ctx, b, 100)), math.Max(x-10, 0), 1e-9)
	}
}

func TestPatternsAndMirrors(t *testing.T) {
	k, ctx := open(t), t.Context()
	peg := must[*kernel.Solid](t)(k.Box(ctx, [3]float64{10, 0, 0}, [3]float64{1, 2, 3}))
	line := must[*kernel.Solid](t)(peg.LinearPattern(ctx, [3]float64{0, 2, 0}, 5, 4))
	within(t, "line of 4", must[float64](t)(line.Volume(ctx)), 24, 1e-12)
	box, _, err := line.Bounds(ctx)
	expect.True(t, err == nil && math.Abs(box.Max[1]-17) <= 1e-9, "the line ends at %v, %v", box.Max[1], err)
	ring := must[*kernel.Solid](t)(peg.CircularPattern(ctx, origin, up, fullTau, 6))
	within(t, "ring of 6", must[float64](t)(ring.Volume(ctx)), 36, 1e-9)
	arc := must[*kernel.Solid](t)(peg.CircularPattern(ctx, origin, up, math.Pi, 3))
	box, _, err = arc.Bounds(ctx)
	expect.True(t, err == nil && math.Abs(box.Min[0]+11) <= 1e-9, "the last of a half turn reaches %v, %v", box.Min[0], err)
	mirrored := must[*kernel.Solid](t)(peg.Transform(ctx, mesh.Reflection([3]float64{5, 0, 0}, [3]float64{1, 0, 0})))
	within(t, "mirrored", must[float64](t)(mirrored.Volume(ctx)), 6, 1e-12)
	box, _, err = mirrored.Bounds(ctx)
	expect.True(t, err == nil && math.Abs(box.Min[0]+1) <= 1e-9, "mirrored it starts at %v, %v", box.Min[0], err)
	expect.No(t, must[*mesh.Mesh](t)(mirrored.Mesh(ctx)).Check())
	expect.Is(t, k.Live(), 5, "solids live, want 5")
}

func TestAMeshGoesOutAndComesBack(t *testing.T) {
	k, ctx := open(t), t.Context()
	pin := must[*kernel.Solid](t)(k.Cylinder(ctx, [3]float64{50, 40, -5}, up, 10, 40, 0.05))
	drilled := must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Subtract, plate(t, k), pin))
	m := must[*mesh.Mesh](t)(drilled.Mesh(ctx))
	faces := map[uint32]bool{}
	for _, f := range m.Faces {
		faces[f] = true
	}
	want := 6 + profile.Chords(10, fullTau, 0.05)
	expect.True(t, len(faces) == want, "a plate with a hole has %d faces, want %d", len(faces), want)
	back := must[*kernel.Solid](t)(k.FromMesh(ctx, m, 0.05))
	within(t, "volume", must[float64](t)(back.Volume(ctx)), must[float64](t)(drilled.Volume(ctx)), 1e-6)
	m.Triangles = m.Triangles[1:]
	m.Faces = m.Faces[1:]
	expect.Fails(t, expect.Fault(k.FromMesh(ctx, m, 0.05)), "an open surface became a solid")
}

func TestVerticesThatRoundingBringsTogetherAreOne(t *testing.T) {
	k, ctx := open(t), t.Context()
	for _, depth := range []float64{33.333333, 33.33333, 33.333331} {
		a := must[*kernel.Solid](t)(k.Box(ctx, origin, [3]float64{10, 100. / 3, 10}))
		b := must[*kernel.Solid](t)(k.Box(ctx, [3]float64{10, 0, 0}, [3]float64{10, depth, 10}))
		m := must[*mesh.Mesh](t)(must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Union, a, b)).Mesh(ctx))
		expect.No(t, m.Check())
		for i := range m.Triangles {
			a, b, c := m.Corners(i)
			expect.True(t, a != b && b != c && c != a, "beside %v, triangle %d has an edge without length", depth, i)
		}
	}
}

func TestSubtractingEverythingLeavesAnEmptySolid(t *testing.T) {
	k, ctx := open(t), t.Context()
	s := plate(t, k)
	nothing := must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Subtract, s, s))
	_, ok, err := nothing.Bounds(ctx)
	empty := must[bool](t)(nothing.Empty(ctx))
	expect.True(t, empty && !ok && err == nil, "empty %v, bounds %v, %v", empty, ok, err)
	expect.No(t, errors.Join(nothing.Free(ctx), s.Free(ctx)))
}
