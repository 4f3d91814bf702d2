package format_test

import (
	"context"
	"math"
	"os"
	"testing"

	"swarmdeck/drivers/cad/format"
	"swarmdeck/drivers/cad/kernel"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/expect"
)

var engine *kernel.Engine

func TestMain(m *testing.M) {
	engine = kernel.New(kernel.Options{})
	code := m.Run()
	engine.Close(context.Background())
	os.Exit(code)
}

// must returns a call's result and stops the test on its error.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		expect.No(t, err)
		return v
	}
}

func box(t testing.TB, k *kernel.Kernel, at, size [3]float64) *kernel.Solid {
	return must[*kernel.Solid](t)(k.Box(t.Context(), at, size))
}

// shapes are solids that try a writer: plain, with holes, in pieces, hollow,
// leaning, touching itself in a line of a face.
func shapes(t testing.TB) []format.Part {
	t.Helper()
	ctx := t.Context()
	k := must[*kernel.Kernel](t)(engine.Open(ctx))
	t.Cleanup(func() { k.Close(context.Background()) })
	up := [3]float64{0, 0, 1}
	plate := box(t, k, [3]float64{}, [3]float64{100, 80, 20})
	drill := must[*kernel.Solid](t)(k.Cylinder(ctx, [3]float64{50, 40, -5}, up, 10, 30, 0.02))
	peg := must[*kernel.Solid](t)(k.Cylinder(ctx, [3]float64{10, 10, 15}, up, 4, 20, 0.02))
	pegs := must[*kernel.Solid](t)(peg.LinearPattern(ctx, [3]float64{1, 0, 0}, 20, 4))
	subtract := func(a, b *kernel.Solid) *kernel.Solid {
		return must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Subtract, a, b))
	}
	turn := mesh.Rotation([3]float64{1, 2, 3}, [3]float64{1, 1, 2}, 0.7)
	drilled := subtract(plate, drill)
	var out []format.Part
	for _, one := range []struct {
		name  string
		solid *kernel.Solid
	}{
		{"plate", plate},
		{"drilled", drilled},
		{"with pegs", must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Union, drilled, pegs))},
		{"pieces", pegs},
		{"hollow", subtract(plate, box(t, k, [3]float64{5, 5, 5}, [3]float64{20, 20, 10}))},
		{"leaning", must[*kernel.Solid](t)(drilled.Transform(ctx, turn))},
		{"notched", subtract(plate, box(t, k, [3]float64{40, -1, 10}, [3]float64{20, 30, 20}))},
		{"ball's Öse", must[*kernel.Solid](t)(k.Sphere(ctx, [3]float64{}, 10, 0.3))},
		{"stepped", must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Union, plate, box(t, k, [3]float64{100, 0, 0}, [3]float64{30, 80, 20}), box(t, k, [3]float64{20, 20, 20}, [3]float64{30, 30, 5})))},
	} {
		surface := must[*mesh.Mesh](t)(one.solid.Mesh(ctx))
		out = append(out, format.Part{Name: one.name, Mesh: surface, Tolerance: one.solid.Tolerance()})
	}
	return out
}

func volumes(parts []format.Part) (sum float64) {
	for _, p := range parts {
		sum += p.Mesh.Properties().Volume
	}
	return sum
}

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	expect.True(t, math.Abs(got-want) <= relative*math.Abs(want), "%s is %v, want %v", what, got, want)
}
