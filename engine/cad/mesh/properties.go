package mesh

import "math"

// Properties are the integrals over a solid of density 1.
type Properties struct {
	Volume  float64
	Area    float64
	Center  [3]float64
	Inertia [3][3]float64 // about the centre
}

// Properties integrates over the tetrahedra between each triangle and a corner
// of the bounding box, which is near, so that little is lost to cancellation.
func (m *Mesh) Properties() Properties {
	var out Properties
	origin := m.Bounds().Min
	var first [3]float64     // ∫ x
	var second [3][3]float64 // ∫ x·xᵀ
	for i := range m.Triangles {
		a, b, c := m.Corners(i)
		out.Area += Length(Cross(Sub(b, a), Sub(c, a))) / 2
		p := [3][3]float64{Sub(a, origin), Sub(b, origin), Sub(c, origin)}
		six := Dot(p[0], Cross(p[1], p[2]))
		out.Volume += six / 6
		var sum [3]float64
		for j := range 3 {
			sum[j] = p[0][j] + p[1][j] + p[2][j]
			first[j] += six / 24 * sum[j]
		}
		for j := range 3 {
			for k := range 3 {
				second[j][k] += six / 120 * (sum[j]*sum[k] + p[0][j]*p[0][k] + p[1][j]*p[1][k] + p[2][j]*p[2][k])
			}
		}
	}
	if out.Volume == 0 {
		return out
	}
	center := Scale(first, 1/out.Volume)
	for j := range 3 {
		for k := range 3 {
			second[j][k] -= out.Volume * center[j] * center[k]
		}
	}
	trace := second[0][0] + second[1][1] + second[2][2]
	for j := range 3 {
		for k := range 3 {
			out.Inertia[j][k] = -second[j][k]
		}
		out.Inertia[j][j] += trace
	}
	out.Center = Add(center, origin)
	return out
}

// Add is a + b.
func Add(a, b [3]float64) [3]float64 { return [3]float64{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }

// Sub is a - b.
func Sub(a, b [3]float64) [3]float64 { return [3]float64{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

// Scale is a times a number.
func Scale(a [3]float64, by float64) [3]float64 {
	return [3]float64{a[0] * by, a[1] * by, a[2] * by}
}

// Dot is the scalar product.
func Dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

// Cross is the vector product.
func Cross(a, b [3]float64) [3]float64 {
	return [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

// Length is the length of a vector.
func Length(a [3]float64) float64 { return math.Sqrt(Dot(a, a)) }
