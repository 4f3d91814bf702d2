package kernel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"swarmdeck/engine/cad/mesh"
)

// Operation says how Boolean combines solids.
type Operation string

// The operations of Boolean.
const (
	Union     Operation = "union"
	Subtract  Operation = "subtract"  // all others from the first
	Intersect Operation = "intersect" // what all share
)

// functions are what the geometry calls them.
var functions = map[Operation]string{Union: "_manifoldUnionN", Subtract: "_manifoldDifferenceN", Intersect: "_manifoldIntersectionN"}

// Boolean combines two solids or more into a new one, which may be empty; the
// operands stay as they are.
func (k *Kernel) Boolean(ctx context.Context, op Operation, solids ...*Solid) (*Solid, error) {
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
	out, err := k.make(ctx, tolerance, functions[op], list)
	return out, errors.Join(err, k.in.discard(ctx, "Vector_manifold", uint32(list)))
}

// LinearPattern joins count copies of a solid, each moved by spacing along the
// direction from the one before; the first is the solid itself.
func (s *Solid) LinearPattern(ctx context.Context, direction [3]float64, spacing float64, count int) (*Solid, error) {
	step := mesh.Scale(mesh.Unit(direction), spacing)
	return s.pattern(ctx, count, func(i int) mesh.Transform { return mesh.Translation(mesh.Scale(step, float64(i))) })
}

// CircularPattern joins count copies of a solid spread over an angle in radians
// about an axis. A full turn spreads them evenly; a smaller angle has the first
// and the last copy at its ends.
func (s *Solid) CircularPattern(ctx context.Context, point, axis [3]float64, angle float64, count int) (*Solid, error) {
	gaps := count - 1
	if math.Abs(angle) > 2*math.Pi-1e-9 {
		gaps = count
	}
	return s.pattern(ctx, count, func(i int) mesh.Transform {
		return mesh.Rotation(point, axis, angle*float64(i)/float64(gaps))
	})
}

func (s *Solid) pattern(ctx context.Context, count int, place func(i int) mesh.Transform) (_ *Solid, err error) {
	copies := make([]*Solid, 0, count)
	defer func() {
		for _, c := range copies {
			err = errors.Join(err, c.Free(ctx))
		}
	}()
	for i := range count {
		c, err := s.Transform(ctx, place(i))
		if err != nil {
			return nil, fmt.Errorf("copy %d: %w", i+1, err)
		}
		copies = append(copies, c)
	}
	return s.kernel.Boolean(ctx, Union, copies...)
}

// upsideDown turns half way about the x axis.
var upsideDown = mesh.Transform{{1, 0, 0}, {0, -1, 0}, {0, 0, -1}, {0, 0, 0}}

// along moves the origin to a point and turns z towards an axis.
func along(point, axis [3]float64) mesh.Transform {
	u, turn := mesh.Unit(axis), mesh.Identity
	switch sin := math.Hypot(u[0], u[1]); {
	case sin > 1e-12:
		turn = mesh.Rotation([3]float64{}, [3]float64{-u[1], u[0], 0}, math.Atan2(sin, u[2]))
	case u[2] < 0:
		turn = upsideDown
	}
	return mesh.Translation(point).After(turn)
}

// Transform makes a moved copy. A reflection keeps the solid's inside inside.
func (s *Solid) Transform(ctx context.Context, t mesh.Transform) (*Solid, error) {
	k := s.kernel
	numbers := make([]byte, 0, 128)
	stretch := 0.0
	for col, v := range t {
		last := 0.0
		if col == 3 {
			last = 1
		} else {
			stretch = max(stretch, mesh.Length(v))
		}
		for _, x := range append(v[:], last) {
			numbers = binary.LittleEndian.AppendUint64(numbers, math.Float64bits(x))
		}
	}
	defer k.in.values.reset()
	tolerance := s.tolerance
	if math.Abs(stretch-1) > 1e-9 {
		tolerance *= stretch
	}
	return k.make(ctx, tolerance, "Manifold.transform", uint64(s.pointer), k.in.values.put(array{kind: float64Kind, bytes: numbers}))
}
