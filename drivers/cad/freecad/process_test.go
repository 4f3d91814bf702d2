package freecad_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/freecad"
	"swarmdeck/expect"
)

func TestADeadlineLosesTheKernelOnly(t *testing.T) {
	k := open(t)
	c, _ := build(t, k, &env.Sphere{Radius: 3})
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	_, err := k.Build(ctx, shape(t, &env.Linear{Direction: [3]float64{1, 1, 0}, Spacing: 0.01, Count: 900}, c), nil)
	var e *env.Error
	expect.Must(t, errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &e), "%v, want a lost kernel for its deadline", err)
	_, again := k.Build(t.Context(), c, nil)
	expect.True(t, errors.Is(again, context.DeadlineExceeded), "later %v, want the reason again", again)
}

func TestAWorkerThatDiesIsToldOf(t *testing.T) {
	k := open(t)
	pid := freecad.PID(k)
	p := expect.Of(os.FindProcess(pid))(t)
	expect.No(t, p.Kill())
	_, err := k.Build(t.Context(), shape(t, block), nil)
	expect.True(t, err != nil && strings.Contains(err.Error(), "SIGKILL"), "%v, want that it was killed", err)
}

func TestAMemoryLimitIsTold(t *testing.T) {
	open(t) // skips where FreeCAD is missing
	_, err := freecad.Open(t.Context(), freecad.Options{Memory: 50 << 20, Dir: t.TempDir()})
	expect.True(t, err != nil && strings.Contains(err.Error(), "freecad:"), "%v, want that FreeCAD does not fit", err)
}

func TestNothingIsLeftBehind(t *testing.T) {
	open(t)
	dir := t.TempDir()
	k := expect.Of(freecad.Open(t.Context(), freecad.Options{Dir: dir}))(t)
	b, _ := build(t, k, block)
	expect.No(t, k.Export(t.Context(), &bytes.Buffer{}, []env.Part{{Name: "b", Hash: b.Hash}}, env.ExportOptions{Format: "STEP"}))
	left, _ := filepath.Glob(filepath.Join(dir, "*", "call-*"))
	expect.True(t, len(left) == 0, "files of a call stay: %v", left)
	// What a crash leaves behind is swept by the next kernel; what is in use is not.
	crashed := filepath.Join(dir, "swarmdeck-freecad-crashed")
	expect.No(t, os.Mkdir(crashed, 0o700))
	other := expect.Of(freecad.Open(t.Context(), freecad.Options{Dir: dir}))(t)
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%d directories with two kernels open: %v", len(left), left)
	}
	build(t, k, drill)
	for _, one := range []env.Kernel{k, other} {
		expect.No(t, one.Close())
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
