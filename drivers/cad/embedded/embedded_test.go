package embedded_test

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"

	"swarmdeck/drivers/cad/embedded"
	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/profile"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
	"swarmdeck/expect"
)

// code keeps the compiled geometry for all tests of the package.
var code string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	code = dir
	result := m.Run()
	os.RemoveAll(dir)
	os.Exit(result)
}

func open(t *testing.T, o embedded.Options) env.Kernel {
	t.Helper()
	o.CacheDir = code
	e := embedded.New(o)
	t.Cleanup(func() { e.Close() })
	return expect.Of(e.Open(t.Context()))(t)
}

func shape(t *testing.T, r env.Recipe, inputs ...string) model.Shape {
	t.Helper()
	return expect.Of(env.NewShape(r, "", inputs...))(t)
}

// frame is a plane turned out of all axes.
var frame = func() env.Plane {
	s, c := math.Sincos(0.6)
	return env.Plane{Origin: [3]float64{3, -2, 5}, XAxis: [3]float64{c, s, 0}, YAxis: [3]float64{0, 0, 1}}
}()

func TestSweepsInAnyFrameHaveTheVolumeOfTheirProfile(t *testing.T) {
	k := open(t, embedded.Options{})
	turn := math.Atan2(4, 10)
	a := profile.Arc(profile.Point{X: 20, Y: 4}, 3, turn-math.Pi/2, math.Pi)
	b := profile.Arc(profile.Point{X: 10, Y: 0}, 3, turn+math.Pi/2, math.Pi)
	slot := expect.Of(profile.New(a, profile.Line(a.To, b.From), b, profile.Line(b.To, a.From)))(t)
	n := frame.Normal()
	up := [3]float64{7 * n[0], 7 * n[1], 7 * n[2]}
	lean := [3]float64{up[0] + 2, up[1], up[2] + 4}
	height := lean[0]*n[0] + lean[1]*n[1] + lean[2]*n[2]
	at := frame.At(0, 0)
	for _, tt := range []struct {
		name   string
		recipe env.Recipe
		want   float64
	}{
		{"up", &env.Extrude{Profile: slot, Plane: frame, Vector: up}, slot.Area() * 7},
		{"down", &env.Extrude{Profile: slot, Plane: frame, Vector: [3]float64{-up[0], -up[1], -up[2]}}, slot.Area() * 7},
		{"leaning", &env.Extrude{Profile: slot, Plane: frame, Vector: lean}, slot.Area() * height},
		// Pappus: area times the way of the centroid, here 15 mm from the axis.
		{"ring", &env.Revolve{Profile: slot, Plane: frame, Point: at, Axis: [3]float64{0, 0, 1}, Angle: 2 * math.Pi}, slot.Area() * 15 * 2 * math.Pi},
		{"back a third", &env.Revolve{Profile: slot, Plane: frame, Point: at, Axis: [3]float64{0, 0, -3}, Angle: -2 * math.Pi / 3}, slot.Area() * 15 * 2 * math.Pi / 3},
	} {
		facts, err := k.Build(t.Context(), shape(t, tt.recipe), nil)
		expect.No(t, err, tt.name)
		expect.True(t, math.Abs(facts.Volume-tt.want) <= 1e-3*tt.want && facts.Topology.Closed && facts.Tolerance > 0 && facts.Tolerance <= 0.03,
			"%s: %+v, want %g mm³", tt.name, facts, tt.want)
	}
}

func TestAnAxisThroughTheProfileIsRefused(t *testing.T) {
	k := open(t, embedded.Options{})
	circle := expect.Of(profile.New(profile.Arc(profile.Point{X: 1}, 3, 0, 2*math.Pi)))(t)
	_, err := k.Build(t.Context(), shape(t, &env.Revolve{Profile: circle, Plane: frame, Point: frame.Origin, Axis: [3]float64{0, 0, 1}, Angle: 1}), nil)
	var refusal *env.Error
	expect.True(t, errors.As(err, &refusal) && refusal.Code == env.InvalidGeometry && refusal.Data.Field == "axis_point", "%v", err)
}

func TestAKernelWithoutMemorySaysSo(t *testing.T) {
	k := open(t, embedded.Options{Memory: 24 << 20})
	ball := shape(t, &env.Sphere{Radius: 20})
	if _, err := k.Build(t.Context(), ball, nil); err != nil {
		t.Fatal(err)
	}
	_, err := k.Build(t.Context(), shape(t, &env.Linear{Direction: [3]float64{1, 0, 0}, Spacing: 3, Count: 200}, ball.Hash), nil)
	var refusal *env.Error
	expect.Must(t, errors.As(err, &refusal) && refusal.Code == env.InsufficientMemory, "%v", err)
	expect.Fails(t, expect.Fault(k.Build(t.Context(), shape(t, &env.Box{Dimensions: [3]float64{1, 1, 1}}), nil)), "a kernel that has failed goes on")
	expect.No(t, k.Close())
}

func TestBodiesAreMeshedComparedAndDropped(t *testing.T) {
	k := open(t, embedded.Options{})
	ctx := context.Background()
	a, b := shape(t, &env.Box{Dimensions: [3]float64{2, 2, 2}}), shape(t, &env.Box{Position: [3]float64{1, 1, 1}, Dimensions: [3]float64{2, 2, 2}})
	for _, s := range []model.Shape{a, b} {
		expect.Of(k.Build(ctx, s, nil))(t)
	}
	o, err := k.Overlap(ctx, a.Hash, b.Hash)
	expect.True(t, err == nil && o != nil && math.Abs(o.Volume-1) <= 1e-9 && o.Bounds == (mesh.Box{Min: [3]float64{1, 1, 1}, Max: [3]float64{2, 2, 2}}),
		"%+v, %v", o, err)
	m, tolerance, err := k.Mesh(ctx, []string{a.Hash}, 1, 0)
	expect.True(t, err == nil && tolerance == 0 && len(m.Triangles) == 12 && math.Abs(m.Properties().Volume-8) <= 1e-9, "%+v, %g, %v", m, tolerance, err)
	k.Drop(a.Hash)
	expect.Fails(t, expect.Fault(k.Overlap(ctx, a.Hash, b.Hash)), "a dropped body is there")
}
