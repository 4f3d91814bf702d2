package kernel_test

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"
	"time"

	"swarmdeck/drivers/cad/kernel"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// engine is shared by the tests: compiling takes a third of a second.
var engine *kernel.Engine

func TestMain(m *testing.M) {
	engine = kernel.New(kernel.Options{})
	code := m.Run()
	engine.Close(context.Background())
	os.Exit(code)
}

func open(t testing.TB) *kernel.Kernel {
	t.Helper()
	k := expect.Of(engine.Open(context.Background()))(t)
	t.Cleanup(func() { k.Close(context.Background()) })
	return k
}

// must returns a call's result and stops the test on its error.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		expect.No(t, err)
		return v
	}
}

// plate is the extrusion that several tests start from.
func plate(t testing.TB, k *kernel.Kernel) *kernel.Solid {
	t.Helper()
	r := kernel.Region{Loops: [][][2]float64{{{0, 0}, {100, 0}, {100, 80}, {0, 80}}}}
	return must[*kernel.Solid](t)(k.Extrude(t.Context(), r, 20))
}

func TestAFreshEngineDoesNothing(t *testing.T) {
	e := kernel.New(kernel.Options{CacheDir: "/proc/no such place"})
	expect.Fails(t, expect.Fault(e.Open(t.Context())), "an impossible cache directory is accepted")
	expect.No(t, e.Close(t.Context()))
	expect.Err(t, expect.Fault(e.Open(t.Context())), kernel.ErrClosed, "open after close")
}

func TestCompiledCodeIsKeptOnDisk(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		e := kernel.New(kernel.Options{CacheDir: dir})
		k := must[*kernel.Kernel](t)(e.Open(t.Context()))
		must[*kernel.Solid](t)(k.Box(t.Context(), [3]float64{}, [3]float64{1, 1, 1}))
		expect.No(t, e.Close(t.Context()))
	}
	entries, err := os.ReadDir(dir)
	expect.True(t, err == nil && len(entries) != 0, "the cache holds %v, %v", entries, err)
}

func TestAnEndedContextStartsNothing(t *testing.T) {
	k := open(t)
	s := plate(t, k)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Err(t, expect.Fault(s.LinearPattern(ctx, up, 30, 50)), context.Canceled)
	late, end := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer end()
	expect.Err(t, expect.Fault(s.LinearPattern(late, up, 0.001, 10_000)), context.DeadlineExceeded, "10000 copies in 5 ms")
	if v := must[float64](t)(s.Volume(t.Context())); v != 160000 || k.Live() != 1 {
		t.Errorf("afterwards the volume is %v, %d solids live", v, k.Live())
	}
}

func TestTheMemoryLimitKillsTheKernelWithAnError(t *testing.T) {
	e := kernel.New(kernel.Options{Memory: 20 << 20})
	defer e.Close(context.Background())
	k := must[*kernel.Kernel](t)(e.Open(t.Context()))
	var err error
	for range 200 {
		if _, err = k.Sphere(t.Context(), [3]float64{}, 50, 0.01); err != nil {
			break
		}
	}
	expect.True(t, errors.Is(err, kernel.ErrDead) && k.Err() != nil, "200 fine spheres in 20 MB: %v", err)
	if k.Memory() > 20<<20 {
		t.Errorf("the kernel holds %d bytes", k.Memory())
	}
}

func TestFreedSolidsGiveTheirMemoryBack(t *testing.T) {
	k := open(t)
	before := 0
	for i := range 500 {
		s := must[*kernel.Solid](t)(k.Cylinder(t.Context(), [3]float64{1, 2, 3}, [3]float64{0, 0, 1}, 10, 5, 0.01))
		must[any](t)(s.Mesh(t.Context()))
		expect.No(t, errors.Join(s.Free(t.Context()), s.Free(t.Context())))
		if i == 100 {
			before = k.Memory()
		}
	}
	if k.Live() != 0 || k.Memory() > before+before/4 {
		t.Errorf("%d solids live, memory grew from %d to %d", k.Live(), before, k.Memory())
	}
}

func TestBadNumbersAreRefusedBeforeTheGeometry(t *testing.T) {
	k, other, ctx := open(t), open(t), t.Context()
	s, foreign := plate(t, k), plate(t, other)
	freed := plate(t, k)
	expect.No(t, freed.Free(ctx))
	nan, inf, zero := math.NaN(), math.Inf(1), [3]float64{}
	up := [3]float64{0, 0, 1}
	square := kernel.Region{Loops: [][][2]float64{{{0, 0}, {1, 0}, {1, 1}, {0, 1}}}}
	clockwise := kernel.Region{Loops: [][][2]float64{{{0, 1}, {1, 1}, {1, 0}, {0, 0}}}}
	left := kernel.Region{Loops: [][][2]float64{{{-2, 0}, {-1, 0}, {-1, 1}}}}
	live := k.Live()
	for name, call := range map[string]func() (any, error){
		"width":              func() (any, error) { return k.Box(ctx, zero, [3]float64{0, 1, 1}) },
		"height":             func() (any, error) { return k.Box(ctx, zero, [3]float64{1, 1, inf}) },
		"position":           func() (any, error) { return k.Box(ctx, [3]float64{nan}, [3]float64{1, 1, 1}) },
		"radius":             func() (any, error) { return k.Sphere(ctx, zero, -1, 0.1) },
		"tolerance":          func() (any, error) { return k.Sphere(ctx, zero, 10, 0) },
		"tolerance too fine": func() (any, error) { return k.Cylinder(ctx, zero, up, 1e5, 1, 1e-6) },
		"axis_direction":     func() (any, error) { return k.Cylinder(ctx, zero, zero, 1, 1, 0.1) },
		"radius2":            func() (any, error) { return k.Cone(ctx, zero, up, 1, nan, 1, 0.1) },
		"distance":           func() (any, error) { return k.Extrude(ctx, square, 0) },
		"profile clockwise":  func() (any, error) { return k.Extrude(ctx, clockwise, 1) },
		"profile empty":      func() (any, error) { return k.Extrude(ctx, kernel.Region{}, 1) },
		"profile left":       func() (any, error) { return k.Revolve(ctx, left, 1, 0.1) },
		"angle":              func() (any, error) { return k.Revolve(ctx, square, 7, 0.1) },
		"operation":          func() (any, error) { return k.Boolean(ctx, "xor", s, s) },
		"entity_ids":         func() (any, error) { return k.Boolean(ctx, kernel.Union, s) },
		"entity_ids foreign": func() (any, error) { return k.Boolean(ctx, kernel.Union, s, foreign) },
		"entity_ids freed":   func() (any, error) { return k.Interference(ctx, s, freed) },
		"count":              func() (any, error) { return s.LinearPattern(ctx, up, 1, 1) },
		"spacing":            func() (any, error) { return s.LinearPattern(ctx, up, 0, 2) },
		"direction":          func() (any, error) { return s.LinearPattern(ctx, zero, 1, 2) },
		"transform":          func() (any, error) { return s.Transform(ctx, kernel.Transform{}) },
		"transform far":      func() (any, error) { return s.Transform(ctx, kernel.Translation([3]float64{1e6})) },
		"mirror_plane":       func() (any, error) { return s.Mirror(ctx, zero, zero) },
		"density":            func() (any, error) { return s.Measure(ctx, -1) },
		"entity_id":          func() (any, error) { return freed.Mesh(ctx) },
	} {
		expect.Err(t, expect.Fault(call()), core.Kind(core.InvalidInput), name)
	}
	if k.Live() != live || k.Err() != nil {
		t.Errorf("refusals left %d solids, kernel %v", k.Live()-live, k.Err())
	}
}
