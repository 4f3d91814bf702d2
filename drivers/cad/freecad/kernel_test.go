package freecad_test

import (
	"errors"
	"math"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/freecad"
	"swarmdeck/drivers/cad/profile"
	"swarmdeck/engine/cad/model"
	"swarmdeck/expect"
)

// open starts a kernel; the test is skipped where FreeCAD is missing.
func open(t testing.TB) env.Kernel {
	t.Helper()
	found, err := freecad.Find(t.Context(), nil)
	if errors.Is(err, freecad.ErrNotFound) {
		t.Skip(err)
	}
	expect.No(t, err)
	k := expect.Of(freecad.Open(t.Context(), freecad.Options{Installation: found, Dir: t.TempDir()}))(t)
	t.Cleanup(func() { expect.Is(t, k.Close(), nil) })
	return k
}

// shape is the shape of a recipe.
func shape(t testing.TB, r env.Recipe, inputs ...model.Shape) model.Shape {
	t.Helper()
	var hashes []string
	for _, s := range inputs {
		hashes = append(hashes, s.Hash)
	}
	return expect.Of(env.NewShape(r, "", hashes...))(t)
}

func build(t testing.TB, k env.Kernel, r env.Recipe, inputs ...model.Shape) (model.Shape, model.Facts) {
	t.Helper()
	s := shape(t, r, inputs...)
	f, err := k.Build(t.Context(), s, nil)
	expect.No(t, err, s.Op)
	return s, f
}

func near(t testing.TB, what string, got, want, within float64) {
	t.Helper()
	expect.True(t, math.Abs(got-want) <= within*math.Max(1, math.Abs(want)), "%s is %.12g, want %.12g", what, got, want)
}

// refused checks that an error tells the caller what to change.
func refused(t testing.TB, err error, code env.Code, field string) *env.Error {
	t.Helper()
	var e *env.Error
	expect.Must(t, errors.As(err, &e), "error %v, want one with code %d", err, code)
	expect.True(t, e.Code == code && e.Data.Field == field && e.Data.Suggestion != "" && e.Data.Name != "",
		"refusal %d of field %q, suggestion %q (%v), want %d of %q with a suggestion", e.Code, e.Data.Field, e.Data.Suggestion, e, code, field)
	return e
}

var (
	block = &env.Box{Dimensions: [3]float64{100, 80, 20}}
	drill = &env.Cylinder{Point: [3]float64{50, 40, -5}, Axis: [3]float64{0, 0, 1}, Radius: 10, Height: 40}
	flat  = env.Plane{XAxis: [3]float64{1, 0, 0}, YAxis: [3]float64{0, 1, 0}}
)

func at(p [2]float64) profile.Point { return profile.Point{X: p[0], Y: p[1]} }

func polygon(points ...[2]float64) profile.Loop {
	var loop profile.Loop
	for i, p := range points {
		loop = append(loop, profile.Line(at(p), at(points[(i+1)%len(points)])))
	}
	return loop
}

func circle(center [2]float64, radius, sweep float64) profile.Loop {
	from := at([2]float64{center[0] + radius, center[1]})
	return profile.Loop{{From: from, To: from, Center: at(center), Radius: radius, Sweep: sweep}}
}

// slot is 5 mm between the centres of its ends, which are half circles of 1 mm.
var slot = profile.Loop{
	{From: profile.Point{Y: -1}, To: profile.Point{X: 5, Y: -1}},
	{From: profile.Point{X: 5, Y: -1}, To: profile.Point{X: 5, Y: 1}, Center: profile.Point{X: 5}, Radius: 1, Sweep: math.Pi},
	{From: profile.Point{X: 5, Y: 1}, To: profile.Point{Y: 1}},
	{From: profile.Point{Y: 1}, To: profile.Point{Y: -1}, Radius: 1, Sweep: math.Pi},
}

func TestBodiesAreExact(t *testing.T) {
	k := open(t)
	square := polygon([2]float64{0, 0}, [2]float64{10, 0}, [2]float64{10, 10}, [2]float64{0, 10})
	for name, c := range map[string]struct {
		recipe       env.Recipe
		volume, area float64
		topology     [3]int // faces, edges, vertices
	}{
		"box":      {block, 160000, 23200, [3]int{6, 12, 8}},
		"cylinder": {drill, 4000 * math.Pi, 2*100*math.Pi + 20*math.Pi*40, [3]int{3, 3, 2}},
		"sphere":   {&env.Sphere{Radius: 10}, 4000 * math.Pi / 3, 400 * math.Pi, [3]int{1, 1, 2}},
		"cone":     {&env.Cone{Axis: [3]float64{1, 1, 1}, Radius: 5, Height: 10}, 250 * math.Pi / 3, math.Pi * 5 * (5 + math.Sqrt(125)), [3]int{2, 2, 2}},
		"cone that is a cylinder": {
			&env.Cone{Axis: [3]float64{0, 1, 0}, Radius: 2, Top: 2, Height: 3}, 12 * math.Pi, 20 * math.Pi, [3]int{3, 3, 2},
		},
		"plate with a hole": {
			&env.Extrude{Profile: profile.Shape{Loops: []profile.Loop{square, circle([2]float64{5, 5}, 2, -2*math.Pi)}}, Plane: flat, Vector: [3]float64{0, 0, 5}},
			500 - 20*math.Pi, 2*(100-4*math.Pi) + 200 + 20*math.Pi,
			[3]int{7, 15, 10},
		},
		"slot, downwards": {
			&env.Extrude{Profile: profile.Shape{Loops: []profile.Loop{slot}}, Plane: flat, Vector: [3]float64{0, 0, -5}},
			5 * (10 + math.Pi), 2*(10+math.Pi) + 5*(10+2*math.Pi),
			[3]int{6, 12, 8},
		},
		"two plates, one within a hole": {
			&env.Extrude{Profile: profile.Shape{Loops: []profile.Loop{
				square, circle([2]float64{5, 5}, 4, -2*math.Pi), circle([2]float64{5, 5}, 1, 2*math.Pi),
			}}, Plane: flat, Vector: [3]float64{0, 0, 1}},
			100 - 15*math.Pi, 2*(100-15*math.Pi) + 40 + 10*math.Pi,
			[3]int{10, 18, 12},
		},
		"oblique prism": {
			&env.Extrude{Profile: profile.Shape{Loops: []profile.Loop{square}}, Plane: flat, Vector: [3]float64{3, 0, 4}},
			400, 200 + 2*40 + 2*50,
			[3]int{6, 12, 8},
		},
		"ring": {
			&env.Revolve{
				Profile: profile.Shape{Loops: []profile.Loop{polygon([2]float64{1, 0}, [2]float64{2, 0}, [2]float64{2, 1}, [2]float64{1, 1})}},
				Plane:   flat, Axis: [3]float64{0, 1, 0}, Angle: 2 * math.Pi,
			}, 3 * math.Pi, 12 * math.Pi, [3]int{4, 6, 4},
		},
		"quarter, against the clock": {
			&env.Revolve{
				Profile: profile.Shape{Loops: []profile.Loop{polygon([2]float64{0, 0}, [2]float64{2, 0}, [2]float64{2, 1}, [2]float64{0, 1})}},
				Plane:   flat, Axis: [3]float64{0, 3, 0}, Angle: -math.Pi / 2,
			}, math.Pi, 4 + 3*math.Pi, [3]int{5, 9, 6},
		},
		"torus": {
			&env.Revolve{
				Profile: profile.Shape{Loops: []profile.Loop{circle([2]float64{5, 0}, 1, 2*math.Pi)}},
				Plane:   flat, Axis: [3]float64{0, 1, 0}, Angle: 2 * math.Pi,
			}, 10 * math.Pi * math.Pi, 20 * math.Pi * math.Pi, [3]int{1, 2, 1},
		},
	} {
		_, f := build(t, k, c.recipe)
		near(t, name+": volume", f.Volume, c.volume, 1e-9)
		near(t, name+": area", f.Area, c.area, 1e-9)
		top := f.Topology
		expect.True(t, [3]int{top.Faces, top.Edges, top.Vertices} == c.topology && top.Closed && top.Manifold && f.Tolerance == 0,
			"%s: topology %+v, tolerance %g, want %v, closed, manifold and exact", name, top, f.Tolerance, c.topology)
	}
}

func TestOperationsOnBodies(t *testing.T) {
	k := open(t)
	b, _ := build(t, k, block)
	c, _ := build(t, k, drill)
	holed, _ := build(t, k, &env.Boolean{Operation: "subtract"}, b, c)
	hole := 2000 * math.Pi
	for name, s := range map[string]struct {
		recipe env.Recipe
		inputs []model.Shape
		volume float64
		center [3]float64
	}{
		"union":     {&env.Boolean{Operation: "union"}, []model.Shape{b, c}, 160000 + hole, [3]float64{50, 40, (160000*10 + hole*(-2.5*5+27.5*15)/20) / (160000 + hole)}},
		"subtract":  {&env.Boolean{Operation: "subtract"}, []model.Shape{b, c}, 160000 - hole, [3]float64{50, 40, 10}},
		"intersect": {&env.Boolean{Operation: "intersect"}, []model.Shape{b, c}, hole, [3]float64{50, 40, 10}},
		"copies apart": {
			&env.Linear{Direction: [3]float64{2, 0, 0}, Spacing: 120, Count: 5}, []model.Shape{holed}, 5 * (160000 - hole), [3]float64{290, 40, 10},
		},
		"copies that overlap": { // a copy fills half of each hole but for the outer halves of the outer two
			&env.Linear{Direction: [3]float64{1, 0, 0}, Spacing: 50, Count: 5}, []model.Shape{holed}, 300*80*20 - hole, [3]float64{150, 40, 10},
		},
		"copies around": {
			&env.Circular{Axis: [3]float64{0, 0, 1}, Angle: 2 * math.Pi, Count: 2}, []model.Shape{holed}, 2 * (160000 - hole), [3]float64{0, 0, 10},
		},
		"reflection": {&env.Mirror{Normal: [3]float64{2, 0, 0}}, []model.Shape{holed}, 160000 - hole, [3]float64{-50, 40, 10}},
		"turned":     {&env.Transform{Matrix: [4][3]float64{{0, 1, 0}, {-1, 0, 0}, {0, 0, 1}, {5, 0, 0}}}, []model.Shape{holed}, 160000 - hole, [3]float64{-35, 50, 10}},
		"doubled":    {&env.Transform{Matrix: [4][3]float64{{2, 0, 0}, {0, 2, 0}, {0, 0, 2}}}, []model.Shape{holed}, 8 * (160000 - hole), [3]float64{100, 80, 20}},
		"stretched":  {&env.Transform{Matrix: [4][3]float64{{2, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 3}}}, []model.Shape{holed}, 2 * (160000 - hole), [3]float64{100, 40, 13}},
		// An edge of 100 mm loses the area between a corner and its quarter circle.
		"one edge rounded":     {&env.Fillet{Radius: 2, Edges: [][3]float64{{50, 0, 20}}}, []model.Shape{b}, 160000 - 100*(4-math.Pi), [3]float64{50, math.NaN(), math.NaN()}},
		"one edge cut":         {&env.Chamfer{Distance: 2, Edges: [][3]float64{{50, 0, 20}}}, []model.Shape{b}, 160000 - 200, [3]float64{50, math.NaN(), math.NaN()}},
		"open box":             {&env.Shell{Thickness: 2, OpenFaces: [][3]float64{{50, 40, 20}}}, []model.Shape{b}, 160000 - 96*76*18, [3]float64{50, 40, math.NaN()}},
		"closed, hollow":       {&env.Shell{Thickness: 2}, []model.Shape{b}, 160000 - 96*76*16, [3]float64{50, 40, 10}},
		"upright edges cut":    {&env.Chamfer{Distance: 3, Edges: [][3]float64{{0, 0, 10}, {100, 0, 10}, {0, 80, 10}, {100, 80, 10}}}, []model.Shape{b}, 160000 - 4*20*4.5, [3]float64{50, 40, 10}},
		"every edge rounded":   {&env.Fillet{Radius: 5}, []model.Shape{b}, rounded(100, 80, 20, 5), [3]float64{50, 40, 10}},
		"solid within a solid": {&env.Boolean{Operation: "subtract"}, []model.Shape{b, shapeOf(t, k, &env.Sphere{Center: [3]float64{50, 40, 10}, Radius: 5})}, 160000 - 500*math.Pi/3, [3]float64{50, 40, 10}},
	} {
		_, f := build(t, k, s.recipe, s.inputs...)
		near(t, name+": volume", f.Volume, s.volume, 1e-8)
		for i, want := range s.center {
			if !math.IsNaN(want) {
				near(t, name+": centre", f.Center[i], want, 1e-7)
			}
		}
		expect.True(t, f.Topology.Closed && f.Topology.Manifold, "%s: %+v, want closed and manifold", name, f.Topology)
	}
}

func shapeOf(t testing.TB, k env.Kernel, r env.Recipe) model.Shape {
	s, _ := build(t, k, r)
	return s
}

// rounded is the volume of a box with all its edges rounded (Steiner).
func rounded(x, y, z, r float64) float64 {
	a, b, c := x-2*r, y-2*r, z-2*r
	return a*b*c + 2*r*(a*b+b*c+c*a) + math.Pi*r*r*(a+b+c) + 4*math.Pi*r*r*r/3
}

func TestABodyDoesNotDependOnWhatElseWasMade(t *testing.T) {
	var facts []model.Facts
	for _, busy := range []bool{false, true} {
		k := open(t)
		b, _ := build(t, k, block)
		c, _ := build(t, k, drill)
		holed, _ := build(t, k, &env.Boolean{Operation: "subtract"}, b, c)
		if busy {
			build(t, k, &env.Chamfer{Distance: 3}, holed)
			build(t, k, &env.Fillet{Radius: 3}, holed)
			_, _, err := k.Mesh(t.Context(), []string{holed.Hash}, 0.1, 0)
			expect.No(t, err)
			expect.Of(k.Overlap(t.Context(), holed.Hash, c.Hash))(t)
		}
		_, f := build(t, k, &env.Linear{Direction: [3]float64{1, 0, 0}, Spacing: 50, Count: 5}, holed)
		facts = append(facts, f)
	}
	expect.Is(t, facts[0], facts[1], "alone")
}

func TestRefusalsSayWhatToChange(t *testing.T) {
	k := open(t)
	b, _ := build(t, k, block)
	c, _ := build(t, k, drill)
	ball, _ := build(t, k, &env.Sphere{Radius: 3})
	for name, r := range map[string]struct {
		recipe env.Recipe
		inputs []model.Shape
		code   env.Code
		field  string
		hint   string
	}{
		"fillet too large":  {&env.Fillet{Radius: 11}, []model.Shape{b}, env.InvalidGeometry, "radius", "5.5 mm can be done"},
		"chamfer too large": {&env.Chamfer{Distance: 12}, []model.Shape{b}, env.InvalidGeometry, "distance", "6 mm can be done"},
		"wall too thick":    {&env.Shell{Thickness: 12}, []model.Shape{b}, env.InvalidGeometry, "thickness", "6 mm can be done"},
		"edge at a corner":  {&env.Fillet{Radius: 1, Edges: [][3]float64{{0, 0, 20}}}, []model.Shape{b}, env.InvalidGeometry, "edges", "middle"},
		"face at an edge":   {&env.Shell{Thickness: 1, OpenFaces: [][3]float64{{50, 0, 20}}}, []model.Shape{b}, env.InvalidGeometry, "open_faces", "middle"},
		"no edges":          {&env.Fillet{Radius: 1}, []model.Shape{ball}, env.InvalidGeometry, "edges", "edges"},
		"nothing left":      {&env.Boolean{Operation: "subtract"}, []model.Shape{c, c}, env.TopologyError, "entity_ids", "remains"},
		"nothing shared":    {&env.Boolean{Operation: "intersect"}, []model.Shape{b, shapeOf(t, k, &env.Sphere{Center: [3]float64{0, 0, 500}, Radius: 1})}, env.TopologyError, "entity_ids", "remains"},
		"axis through": {&env.Revolve{
			Profile: profile.Shape{Loops: []profile.Loop{polygon([2]float64{-1, 0}, [2]float64{2, 0}, [2]float64{2, 1})}},
			Plane:   flat, Axis: [3]float64{0, 1, 0}, Angle: 1,
		}, nil, env.InvalidGeometry, "axis_point", "one side"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := k.Build(t.Context(), shape(t, r.recipe, r.inputs...), nil)
			expect.Has(t, refused(t, err, r.code, r.field).Data.Suggestion, r.hint, "suggestion")
		})
	}
	// A refusal costs the kernel nothing.
	_, f := build(t, k, &env.Fillet{Radius: 5.5}, b)
	expect.True(t, f.Topology.Closed, "%+v, want what was suggested to work", f)
}

func TestInertiaOfABodyOfTwoParts(t *testing.T) {
	k := open(t)
	b, _ := build(t, k, &env.Box{Dimensions: [3]float64{10, 10, 10}})
	both, _ := build(t, k, &env.Linear{Direction: [3]float64{1, 0, 0}, Spacing: 30, Count: 2}, b)
	facts, inertia, err := k.Measure(t.Context(), both.Hash)
	expect.No(t, err)
	near(t, "volume", facts.Volume, 2000, 1e-9)
	// Each cube has m·a²/6 about itself, and 15 mm to the centre (Steiner).
	near(t, "inertia about x", inertia[0][0], 2000*100/6.0, 1e-9)
	near(t, "inertia about z", inertia[2][2], 2000*(100.0/6+225), 1e-9)
	near(t, "product of inertia", inertia[0][1], 0, 1e-6)
}

func TestTouchingIsNoOverlap(t *testing.T) {
	k := open(t)
	b, _ := build(t, k, block)
	c, _ := build(t, k, drill)
	beside, _ := build(t, k, &env.Box{Position: [3]float64{100, 0, 0}, Dimensions: [3]float64{5, 80, 20}})
	holed, _ := build(t, k, &env.Boolean{Operation: "subtract"}, b, c)
	for name, other := range map[string]model.Shape{"a face": beside, "itself filled": c} {
		o, err := k.Overlap(t.Context(), holed.Hash, other.Hash)
		expect.True(t, err == nil && o == nil, "%s: %+v, %v, want no overlap", name, o, err)
	}
	o, err := k.Overlap(t.Context(), b.Hash, c.Hash)
	expect.Must(t, err == nil && o != nil, "%+v, %v, want an overlap", o, err)
	near(t, "overlap", o.Volume, 2000*math.Pi, 1e-9)
	near(t, "its height", o.Bounds.Max[2]-o.Bounds.Min[2], 20, 1e-6)
}

func TestDistancesBetweenBodies(t *testing.T) {
	k := open(t)
	b, _ := build(t, k, block)
	c, _ := build(t, k, drill)
	hollow, _ := build(t, k, &env.Shell{Thickness: 2}, b)
	for name, s := range map[string]struct {
		a, b model.Shape
		gap  float64
	}{
		"apart":      {b, shapeOf(t, k, &env.Sphere{Center: [3]float64{50, 40, 40}, Radius: 7}), 13},
		"touching":   {b, shapeOf(t, k, &env.Box{Position: [3]float64{100, 0, 0}, Dimensions: [3]float64{1, 1, 1}}), 0},
		"crossing":   {b, c, 0},
		"within":     {b, shapeOf(t, k, &env.Sphere{Center: [3]float64{50, 40, 10}, Radius: 1}), 0},
		"in a cave":  {hollow, shapeOf(t, k, &env.Sphere{Center: [3]float64{50, 40, 10}, Radius: 5}), 3},
		"other side": {shapeOf(t, k, &env.Sphere{Center: [3]float64{50, 40, 10}, Radius: 1.5}), b, 0},
	} {
		gap := expect.Of(k.Distance(t.Context(), s.a.Hash, s.b.Hash))(t)
		near(t, name, gap, s.gap, 1e-6)
	}
}

func TestMeshesAreClosedAndWithinTheDeflection(t *testing.T) {
	k := open(t)
	far := [3]float64{90000, -90000, 90000} // where single precision sees 8 µm
	ball, f := build(t, k, &env.Sphere{Center: far, Radius: 10})
	var before float64 = math.Inf(1)
	for _, deflection := range []float64{1, 0.1, 0.01} {
		m, kept, err := k.Mesh(t.Context(), []string{ball.Hash}, deflection, 0)
		expect.No(t, err)
		if err := m.Check(); err != nil || kept != deflection || len(m.Faces) != len(m.Triangles) {
			t.Errorf("deflection %g: kept %g, %d face numbers of %d triangles, %v", deflection, kept, len(m.Faces), len(m.Triangles), err)
		}
		missing := f.Volume - m.Properties().Volume
		expect.True(t, missing > 0 && missing < before && missing <= f.Area*deflection,
			"deflection %g: the mesh lacks %g mm³, after %g", deflection, missing, before)
		before = missing
	}
}
