package kernel_test

import (
	"context"
	"testing"

	"swarmdeck/drivers/cad/kernel"
	"swarmdeck/engine/cad/mesh"
)

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		e := kernel.New(kernel.Options{})
		must[*kernel.Kernel](b)(e.Open(b.Context()))
		e.Close(context.Background())
	}
}

func BenchmarkCompileFromCache(b *testing.B) {
	dir := b.TempDir()
	begin := func() {
		e := kernel.New(kernel.Options{CacheDir: dir})
		must[*kernel.Kernel](b)(e.Open(b.Context()))
		e.Close(context.Background())
	}
	begin()
	for b.Loop() {
		begin()
	}
}

func BenchmarkOpen(b *testing.B) {
	open(b)
	for b.Loop() {
		k := must[*kernel.Kernel](b)(engine.Open(b.Context()))
		k.Close(b.Context())
	}
}

// measured runs one operation and frees its result.
func measured(b *testing.B, k *kernel.Kernel, make func(context.Context) (*kernel.Solid, error)) {
	for b.Loop() {
		s := must[*kernel.Solid](b)(make(b.Context()))
		must[float64](b)(s.Volume(b.Context())) // the geometry is lazy until it is asked
		s.Free(b.Context())
	}
	b.ReportMetric(float64(k.Memory())/1e6, "MB")
}

func BenchmarkExtrude(b *testing.B) {
	k := open(b)
	r := kernel.Region{Loops: [][][2]float64{{{0, 0}, {100, 0}, {100, 80}, {0, 80}}}}
	measured(b, k, func(ctx context.Context) (*kernel.Solid, error) { return k.Extrude(ctx, r, 20) })
}

func BenchmarkDrill(b *testing.B) {
	k := open(b)
	s := plate(b, k)
	hole := must[*kernel.Solid](b)(k.Cylinder(b.Context(), [3]float64{50, 40, -5}, up, 10, 30, 0.01))
	measured(b, k, func(ctx context.Context) (*kernel.Solid, error) { return k.Boolean(ctx, kernel.Subtract, s, hole) })
}

func BenchmarkUnionOfBoxes(b *testing.B) {
	k := open(b)
	s := plate(b, k)
	cube := must[*kernel.Solid](b)(k.Box(b.Context(), [3]float64{50, 40, 10}, [3]float64{50, 50, 50}))
	measured(b, k, func(ctx context.Context) (*kernel.Solid, error) { return k.Boolean(ctx, kernel.Union, s, cube) })
}

func BenchmarkDrill180Holes(b *testing.B) {
	k := open(b)
	solids := []*kernel.Solid{plate(b, k)}
	for i := range 180 {
		at := [3]float64{4 + float64(i%18)*5.4, 4 + float64(i/18)*8, -5}
		solids = append(solids, must[*kernel.Solid](b)(k.Cylinder(b.Context(), at, up, 1.5, 30, 0.002)))
	}
	measured(b, k, func(ctx context.Context) (*kernel.Solid, error) { return k.Boolean(ctx, kernel.Subtract, solids...) })
}

func BenchmarkMesh(b *testing.B) {
	k := open(b)
	s := must[*kernel.Solid](b)(k.Sphere(b.Context(), origin, 20, 0.02))
	for b.Loop() {
		must[*mesh.Mesh](b)(s.Mesh(b.Context()))
	}
}
