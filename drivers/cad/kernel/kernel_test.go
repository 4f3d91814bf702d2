package kernel_test

import (
	"context"
	"errors"
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
	expect.True(t, errors.Is(err, kernel.ErrDead), "200 fine spheres in 20 MB: %v", err)
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

func TestTooManyChordsAreRefusedBeforeTheGeometry(t *testing.T) {
	k, ctx := open(t), t.Context()
	zero := [3]float64{}
	clockwise := kernel.Region{Loops: [][][2]float64{{{0, 1}, {1, 1}, {1, 0}, {0, 0}}}}
	long := kernel.Region{Loops: [][][2]float64{make([][2]float64, 100_001)}}
	for name, call := range map[string]func() (any, error){
		"cylinder":          func() (any, error) { return k.Cylinder(ctx, zero, up, 1e5, 1, 1e-6) },
		"sphere":            func() (any, error) { return k.Sphere(ctx, zero, 100, 1e-5) },
		"profile clockwise": func() (any, error) { return k.Extrude(ctx, clockwise, 1) },
		"profile empty":     func() (any, error) { return k.Extrude(ctx, kernel.Region{}, 1) },
		"profile long":      func() (any, error) { return k.Extrude(ctx, long, 1) },
	} {
		expect.Err(t, expect.Fault(call()), core.Kind(core.InvalidInput), name)
	}
	expect.Is(t, k.Live(), 0, "refusals left solids")
}
