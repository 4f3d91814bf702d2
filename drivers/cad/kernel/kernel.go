// Package kernel models watertight solids: primitives, extrusion, revolution,
// booleans, transforms, mass properties and meshes, in millimetres.
//
// The geometry is Manifold's WebAssembly build, run by wazero inside this
// process: nothing to install, no cgo. An Engine holds the compiled code and
// costs nothing until the first Open. Each Kernel that it opens is an instance
// with a memory of its own, so one workspace can neither see nor harm another.
//
// A Kernel and its Solids belong to one goroutine at a time. An Engine may be
// shared by all.
//
// Solids are meshes: a curved surface is made of flat facets whose distance
// from the true surface is at most the tolerance given where it was made, and
// Solid.Tolerance reports the largest one that went into a solid. Numbers are what
// env.DecodeRecipe lets through: finite, in range, directions not zero. What
// follows from them alone, such as too many chords, is refused here. A call that exhausts the
// memory limit or fails inside the geometry kills its Kernel, and only that one:
// every later call says why (ErrDead), and the owner opens another and repeats its
// operations. A context is looked at before each call into the geometry; whoever
// needs a hard deadline runs the Kernel in a process that can be killed.
//
// There is no fillet, chamfer or shell on edges of a solid, and no exact curved
// surface: a caller that needs them needs another kernel.
package kernel

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"swarmdeck/drivers/cad/profile"
	"swarmdeck/engine/core"
)

// maxPoints bounds the points of all loops of one region.
const maxPoints = 100_000

// DefaultTolerance is the distance in millimetres between a curve and its
// chords where the caller names none.
const DefaultTolerance = 0.01

// Kernel is one geometry instance with its own memory.
type Kernel struct {
	in   *instance
	live int
}

// Open starts a Kernel. The first Open of an Engine compiles the code. ctx
// bounds the start only.
func (e *Engine) Open(ctx context.Context) (*Kernel, error) {
	rt, compiled, err := e.ready(ctx)
	if err != nil {
		return nil, err
	}
	in, err := start(ctx, rt, compiled)
	if err != nil {
		return nil, fmt.Errorf("open a geometry kernel: %w", err)
	}
	return &Kernel{in: in}, nil
}

// Close frees the memory of the Kernel and of every Solid in it.
func (k *Kernel) Close(ctx context.Context) error {
	k.in.problem = cmp.Or(k.in.problem, ErrClosed)
	return k.in.module.Close(ctx)
}

// Memory is the number of bytes that the Kernel holds now.
func (k *Kernel) Memory() int { return int(k.in.module.Memory().Size()) }

// Live is the number of Solids made and not yet freed.
func (k *Kernel) Live() int { return k.live }

// chords counts the segments of a circle that stay within the tolerance.
func chords(radius, tolerance float64) (int, error) {
	n := profile.Chords(radius, 2*math.Pi, tolerance)
	if n > profile.MaxChords {
		return 0, core.Invalid("tolerance", tolerance, fmt.Sprintf("one that cuts the circle of radius %g mm into at most %d chords", radius, profile.MaxChords))
	}
	return n, nil
}

// chordError is how far the chords of a circle really stay from it.
func chordError(radius float64, segments int) float64 {
	return radius * (1 - math.Cos(math.Pi/float64(segments)))
}
