package kernel

import (
	"context"
	"errors"
	"fmt"
	"math"

	"swarmdeck/engine/core"
)

// Operation says how Boolean combines solids.
type Operation string

// The operations of Boolean.
const (
	Union     Operation = "union"
	Subtract  Operation = "subtract"  // all others from the first
	Intersect Operation = "intersect" // what all share
)

func (o Operation) function() (string, error) {
	switch o {
	case Union:
		return "_manifoldUnionN", nil
	case Subtract:
		return "_manifoldDifferenceN", nil
	case Intersect:
		return "_manifoldIntersectionN", nil
	}
	return "", core.Invalid("operation", string(o), "union, subtract, intersect")
}

// Boolean combines two solids or more into a new one, which may be empty; the
// operands stay as they are.
func (k *Kernel) Boolean(ctx context.Context, op Operation, solids ...*Solid) (*Solid, error) {
	name, err := op.function()
	if err != nil {
		return nil, err
	}
	if len(solids) < 2 || len(solids) > MaxOperands {
		return nil, core.Invalid("entity_ids", len(solids), fmt.Sprintf("2 to %d solids", MaxOperands))
	}
	if err := k.usable("entity_ids", solids...); err != nil {
		return nil, err
	}
	return k.combine(ctx, name, solids)
}

func (k *Kernel) combine(ctx context.Context, name string, solids []*Solid) (*Solid, error) {
	list, err := k.in.call(ctx, "Vector_manifold/0")
	if err != nil {
		return nil, err
	}
	tolerance := 0.0
	for _, s := range solids {
		tolerance = max(tolerance, s.tolerance)
		if _, err = k.in.call(ctx, "Vector_manifold.push_back", list, uint64(s.pointer)); err != nil {
			return nil, errors.Join(err, k.in.discard(ctx, "Vector_manifold", uint32(list)))
		}
	}
	out, err := k.make(ctx, tolerance, name, list)
	return out, errors.Join(err, k.in.discard(ctx, "Vector_manifold", uint32(list)))
}

// LinearPattern joins count copies of a solid, each moved by spacing along the
// direction from the one before; the first is the solid itself.
func (s *Solid) LinearPattern(ctx context.Context, direction [3]float64, spacing float64, count int) (*Solid, error) {
	u, err := unit("direction", direction)
	if err != nil {
		return nil, err
	}
	if err := size("spacing", math.Abs(spacing)); err != nil {
		return nil, err
	}
	return s.pattern(ctx, count, func(i int) (Transform, error) {
		d := spacing * float64(i)
		return Translation([3]float64{d * u[0], d * u[1], d * u[2]}), nil
	})
}

// CircularPattern joins count copies of a solid spread over an angle in radians
// about an axis. A full turn spreads them evenly; a smaller angle has the first
// and the last copy at its ends.
func (s *Solid) CircularPattern(ctx context.Context, point, axis [3]float64, angle float64, count int) (*Solid, error) {
	if !(math.Abs(angle) > 1e-6 && math.Abs(angle) <= 2*math.Pi+1e-9) {
		return nil, core.Invalid("angle", angle, "up to a full turn of 2π radians, not 0")
	}
	gaps := count - 1
	if math.Abs(angle) > 2*math.Pi-1e-9 {
		gaps = count
	}
	return s.pattern(ctx, count, func(i int) (Transform, error) {
		return Rotation(point, axis, angle*float64(i)/float64(gaps))
	})
}

func (s *Solid) pattern(ctx context.Context, count int, place func(i int) (Transform, error)) (_ *Solid, err error) {
	if count < 2 || count > MaxOperands {
		return nil, core.Invalid("count", count, fmt.Sprintf("2 to %d", MaxOperands))
	}
	copies := make([]*Solid, 0, count)
	defer func() {
		for _, c := range copies {
			err = errors.Join(err, c.Free(ctx))
		}
	}()
	for i := range count {
		t, err := place(i)
		if err != nil {
			return nil, err
		}
		c, err := s.Transform(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("copy %d: %w", i+1, err)
		}
		copies = append(copies, c)
	}
	return s.kernel.combine(ctx, "_manifoldUnionN", copies)
}

// Mirror makes the reflection of a solid across a plane.
func (s *Solid) Mirror(ctx context.Context, point, normal [3]float64) (*Solid, error) {
	t, err := Reflection(point, normal)
	if err != nil {
		return nil, err
	}
	return s.Transform(ctx, t)
}
