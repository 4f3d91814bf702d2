package mesh

import "math"

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

// Rotation turns by an angle in radians about the axis through a point,
// counterclockwise seen from the axis' tip.
func Rotation(point, axis [3]float64, angle float64) Transform {
	u := Unit(axis)
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
	return t.about(point)
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
func Reflection(point, normal [3]float64) Transform {
	u := Unit(normal)
	t := Identity
	for col := range 3 {
		for row := range 3 {
			t[col][row] -= 2 * u[row] * u[col]
		}
	}
	return t.about(point)
}

// about lets a linear map keep a point in its place.
func (t Transform) about(p [3]float64) Transform {
	t[3] = Add(t[3], Sub(p, t.Apply(p)))
	return t
}

// turned is where the map takes a direction.
func (t Transform) turned(d [3]float64) [3]float64 {
	return Add(Scale(t[0], d[0]), Add(Scale(t[1], d[1]), Scale(t[2], d[2])))
}

// Apply maps a point.
func (t Transform) Apply(p [3]float64) [3]float64 { return Add(t[3], t.turned(p)) }

// After is the map that does u first, then t.
func (t Transform) After(u Transform) Transform {
	return Transform{t.turned(u[0]), t.turned(u[1]), t.turned(u[2]), t.Apply(u[3])}
}
