package kernel

import (
	"context"
	"encoding/binary"
	"math"

	"swarmdeck/engine/cad/mesh"
)

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
