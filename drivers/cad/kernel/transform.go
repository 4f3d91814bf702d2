package kernel

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"swarmdeck/engine/core"
)

// Transform is an affine map: four columns of three numbers, the images of the
// three axes and of the origin.
type Transform [4][3]float64

// Identity moves nothing.
var Identity = Transform{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 0}}

// Translation moves by a vector.
func Translation(by [3]float64) Transform {
	t := Identity
	t[3] = by
	return t
}

func scaling(x, y, z float64) Transform {
	return Transform{{x, 0, 0}, {0, y, 0}, {0, 0, z}, {0, 0, 0}}
}

// Rotation turns by an angle in radians about the axis through a point,
// counterclockwise seen from the axis' tip.
func Rotation(point, axis [3]float64, angle float64) (Transform, error) {
	u, err := unit("axis_direction", axis)
	if err != nil {
		return Transform{}, err
	}
	if err := coordinates("axis_point", point[:]...); err != nil {
		return Transform{}, err
	}
	if math.IsNaN(angle) || math.Abs(angle) > 1e6 {
		return Transform{}, core.Invalid("angle", angle, "a number of radians between -1000000 and 1000000")
	}
	sin, cos := exactSincos(angle)
	var t Transform
	for col := range 3 {
		for row := range 3 {
			t[col][row] = (1 - cos) * u[row] * u[col]
		}
		t[col][col] += cos
	}
	t[0][1] += sin * u[2]
	t[0][2] -= sin * u[1]
	t[1][0] -= sin * u[2]
	t[1][2] += sin * u[0]
	t[2][0] += sin * u[1]
	t[2][1] -= sin * u[0]
	return t.about(point), nil
}

// exactSincos has no rounding at quarter turns, so that what was flat on a
// plane of the axes stays there.
func exactSincos(angle float64) (sin, cos float64) {
	sin, cos = math.Sincos(angle)
	for _, v := range []*float64{&sin, &cos} {
		if whole := math.Round(*v); math.Abs(*v-whole) < 1e-15 {
			*v = whole
		}
	}
	return sin, cos
}

// Reflection mirrors across the plane through a point with this normal.
func Reflection(point, normal [3]float64) (Transform, error) {
	u, err := unit("mirror_plane_normal", normal)
	if err != nil {
		return Transform{}, err
	}
	if err := coordinates("mirror_plane_point", point[:]...); err != nil {
		return Transform{}, err
	}
	t := Identity
	for col := range 3 {
		for row := range 3 {
			t[col][row] -= 2 * u[row] * u[col]
		}
	}
	return t.about(point), nil
}

// about lets a linear map keep a point in its place.
func (t Transform) about(p [3]float64) Transform {
	q := t.Apply(p)
	for i := range 3 {
		t[3][i] += p[i] - q[i]
	}
	return t
}

// Apply maps a point.
func (t Transform) Apply(p [3]float64) [3]float64 {
	out := t[3]
	for col := range 3 {
		for row := range 3 {
			out[row] += t[col][row] * p[col]
		}
	}
	return out
}

// After is the map that does u first, then t.
func (t Transform) After(u Transform) Transform {
	var out Transform
	for col := range 3 {
		for row := range 3 {
			for i := range 3 {
				out[col][row] += t[i][row] * u[col][i]
			}
		}
	}
	out[3] = t.Apply(u[3])
	return out
}

func (t Transform) determinant() float64 {
	a, b, c := t[0], t[1], t[2]
	return a[0]*(b[1]*c[2]-b[2]*c[1]) - b[0]*(a[1]*c[2]-a[2]*c[1]) + c[0]*(a[1]*b[2]-a[2]*b[1])
}

// along moves the origin to a point and turns z towards an axis.
func along(point, axis [3]float64) (Transform, error) {
	u, err := unit("axis_direction", axis)
	if err != nil {
		return Transform{}, err
	}
	turn := Identity
	switch sin := math.Hypot(u[0], u[1]); {
	case sin > 1e-12:
		turn, err = Rotation([3]float64{}, [3]float64{-u[1], u[0], 0}, math.Atan2(sin, u[2]))
	case u[2] < 0:
		turn = scaling(1, -1, -1)
	}
	if err != nil {
		return Transform{}, err
	}
	if err := coordinates("axis_point", point[:]...); err != nil {
		return Transform{}, err
	}
	return Translation(point).After(turn), nil
}

// Transform makes a moved copy. Scaling is allowed between a thousandth and a
// thousandfold; a reflection keeps the solid's inside inside.
func (s *Solid) Transform(ctx context.Context, t Transform) (*Solid, error) {
	k := s.kernel
	if err := k.usable("entity_id", s); err != nil {
		return nil, err
	}
	numbers := make([]byte, 0, 128)
	stretch := 0.0
	for col := range 4 {
		for row := range 3 {
			if math.IsNaN(t[col][row]) || math.IsInf(t[col][row], 0) {
				return nil, core.Invalid("transform", t[col][row], "finite numbers")
			}
			numbers = binary.LittleEndian.AppendUint64(numbers, math.Float64bits(t[col][row]))
		}
		last := 0.0
		if col == 3 {
			last = 1
		} else {
			stretch = max(stretch, math.Hypot(math.Hypot(t[col][0], t[col][1]), t[col][2]))
		}
		numbers = binary.LittleEndian.AppendUint64(numbers, math.Float64bits(last))
	}
	if d := math.Abs(t.determinant()); d < 1e-9 || d > 1e9 {
		return nil, core.Invalid("transform", fmt.Sprintf("a map of volume by %g", d), "a scale from 0.001 to 1000")
	}
	if err := k.reaches(ctx, s, t); err != nil {
		return nil, err
	}
	defer k.in.values.reset()
	tolerance := s.tolerance
	if math.Abs(stretch-1) > 1e-9 {
		tolerance *= stretch
	}
	return k.make(ctx, tolerance, "Manifold.transform", uint64(s.pointer), k.in.values.put(array{kind: float64Kind, bytes: numbers}))
}

// reaches refuses a map that would carry the solid out of range.
func (k *Kernel) reaches(ctx context.Context, s *Solid, t Transform) error {
	box, ok, err := s.Bounds(ctx)
	if err != nil || !ok {
		return err
	}
	for corner := range 8 {
		var p [3]float64
		for i := range 3 {
			p[i] = box.Min[i]
			if corner>>i&1 == 1 {
				p[i] = box.Max[i]
			}
		}
		q := t.Apply(p)
		if err := coordinates("bounding_box", q[:]...); err != nil {
			return err
		}
	}
	return nil
}
