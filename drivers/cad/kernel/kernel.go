package kernel

import (
	"context"
	"fmt"
	"math"

	"swarmdeck/engine/core"
)

// Limits of what a Kernel accepts, in millimetres.
const (
	// MaxLength bounds every coordinate and size: 100 m, beyond which the
	// 32-bit coordinates of a mesh are coarser than a hundredth of a millimetre.
	MaxLength = 1e5
	// MinLength is the smallest size of anything.
	MinLength = 1e-4
	// MaxSegments bounds the facets of one circle.
	MaxSegments = 4096
	// MaxOperands bounds the solids of one boolean.
	MaxOperands = 10_000
	// MaxPoints bounds the points of all loops of one region.
	MaxPoints = 100_000
)

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
	if k.in.problem == nil {
		k.in.problem = ErrClosed
	}
	return k.in.module.Close(ctx)
}

// Err says why the Kernel is dead; nil while it works.
func (k *Kernel) Err() error {
	if k.in.problem == nil {
		return nil
	}
	return k.in.dead()
}

// Memory is the number of bytes that the Kernel holds now.
func (k *Kernel) Memory() int { return int(k.in.module.Memory().Size()) }

// Live is the number of Solids made and not yet freed.
func (k *Kernel) Live() int { return k.live }

// Segments is the number of chords of a full circle of this radius that stay
// within the tolerance: ceil(π / acos(1 - tolerance/radius)), at least 8 and
// a multiple of 4, so that the extremes on the axes are exact.
func Segments(radius, tolerance float64) int {
	n := 8.0
	if tolerance < radius {
		n = math.Ceil(math.Pi / math.Acos(1-tolerance/radius))
	}
	return 4 * int(math.Ceil(math.Max(n, 8)/4))
}

// chords validates the tolerance of a circle and counts its segments.
func chords(field string, radius, tolerance float64) (int, error) {
	if !(tolerance >= 1e-6 && tolerance <= 10) {
		return 0, core.Invalid("tolerance", tolerance, "0.000001 to 10 mm")
	}
	n := Segments(radius, tolerance)
	if n > MaxSegments {
		return 0, core.Invalid("tolerance", tolerance, fmt.Sprintf("one that cuts the circle of %s %g mm into at most %d chords", field, radius, MaxSegments))
	}
	return n, nil
}

// chordError is how far the chords of a circle really stay from it.
func chordError(radius float64, segments int) float64 {
	return radius * (1 - math.Cos(math.Pi/float64(segments)))
}

// size refuses what is not a length.
func size(field string, v float64) error {
	if !(v >= MinLength && v <= MaxLength) {
		return core.Invalid(field, v, fmt.Sprintf("%g to %g mm", MinLength, MaxLength))
	}
	return nil
}

// coordinates refuses a point out of range.
func coordinates(field string, p ...float64) error {
	for _, v := range p {
		if !(math.Abs(v) <= MaxLength) {
			return core.Invalid(field, v, fmt.Sprintf("coordinates from -%g to %g mm", MaxLength, MaxLength))
		}
	}
	return nil
}

// unit scales a direction to length 1.
func unit(field string, v [3]float64) ([3]float64, error) {
	if err := coordinates(field, v[:]...); err != nil {
		return v, err
	}
	n := math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2])
	if n < 1e-9 {
		return v, core.Invalid(field, v, "a direction that is not zero")
	}
	return [3]float64{v[0] / n, v[1] / n, v[2] / n}, nil
}
