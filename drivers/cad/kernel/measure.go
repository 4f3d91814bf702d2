package kernel

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero/api"

	"swarmdeck/engine/cad/mesh"
)

// number calls a measure of a solid that answers a double.
func (s *Solid) number(ctx context.Context, name string, args ...uint64) (float64, error) {
	out, err := s.kernel.in.call(ctx, name, append([]uint64{uint64(s.pointer)}, args...)...)
	return api.DecodeF64(out), err
}

// Empty says whether nothing is left of the solid.
func (s *Solid) Empty(ctx context.Context) (bool, error) {
	out, err := s.kernel.in.call(ctx, "Manifold.isEmpty", uint64(s.pointer))
	return uint32(out) != 0, err
}

// Bounds is the smallest box around the solid; false when it is empty.
func (s *Solid) Bounds(ctx context.Context) (mesh.Box, bool, error) {
	if empty, err := s.Empty(ctx); err != nil || empty {
		return mesh.Box{}, false, err
	}
	at, err := s.kernel.in.call(ctx, "Manifold._boundingBox", uint64(s.pointer))
	if err != nil {
		return mesh.Box{}, false, err
	}
	var b [6]float64
	if err := s.kernel.in.takeDoubles(ctx, at, b[:]); err != nil {
		return mesh.Box{}, false, err
	}
	return mesh.Box{Min: [3]float64(b[:3]), Max: [3]float64(b[3:])}, true, nil
}

// Volume is the volume in mm³.
func (s *Solid) Volume(ctx context.Context) (float64, error) {
	return s.number(ctx, "Manifold.volume")
}

// Touching is the shared volume in mm³ up to which two solids count as touching
// and not as overlapping.
const Touching = 1e-6

// Overlap is what two solids share.
type Overlap struct {
	Volume float64 // mm³; above Touching they overlap
	Box    mesh.Box
}

// Interference finds what two solids share; nil when they are apart or touch.
func (k *Kernel) Interference(ctx context.Context, a, b *Solid) (_ *Overlap, err error) {
	boxA, okA, err := a.Bounds(ctx)
	if err != nil || !okA {
		return nil, err
	}
	boxB, okB, err := b.Bounds(ctx)
	if err != nil || !okB || !boxA.Meets(boxB) {
		return nil, err
	}
	common, err := k.Boolean(ctx, Intersect, a, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, common.Free(ctx)) }()
	volume, err := common.Volume(ctx)
	if err != nil || volume <= Touching {
		return nil, err
	}
	box, _, err := common.Bounds(ctx)
	return &Overlap{Volume: volume, Box: box}, err
}

// Distance is the smallest gap between two solids in mm, 0 when they touch or
// overlap, and most when they are farther apart than that.
func (s *Solid) Distance(ctx context.Context, other *Solid, most float64) (float64, error) {
	gap, err := s.number(ctx, "Manifold.minGap", uint64(other.pointer), api.EncodeF64(most))
	return max(gap, 0), err
}
