// Package mesh is the triangle surface of a solid, in millimetres: what the
// kernels answer, the files carry and the preview draws. It measures and checks
// a surface and never changes its shape.
package mesh

import (
	"fmt"
	"math"

	"swarmdeck/engine/core"
)

// Limits of a mesh that Check accepts.
const (
	MaxTriangles = 2_000_000
	MaxVertices  = 2_000_000
)

// Mesh is a surface of triangles whose corners run counterclockwise seen from
// outside.
type Mesh struct {
	Vertices  [][3]float64 `json:"vertices"`
	Triangles [][3]uint32  `json:"triangles"`
	// Faces numbers the face of each triangle, which is flat unless the kernel is
	// exact; empty when unknown.
	Faces []uint32 `json:"faces"`
}

// Box is an axis-parallel box.
type Box struct {
	Min [3]float64 `json:"min"`
	Max [3]float64 `json:"max"`
}

// Meets says whether two boxes share a point.
func (b Box) Meets(c Box) bool {
	for i := range 3 {
		if b.Min[i] > c.Max[i] || c.Min[i] > b.Max[i] {
			return false
		}
	}
	return true
}

// Shared is the volume in mm³ that two boxes have in common; 0 when they are
// apart or only touch.
func (b Box) Shared(c Box) float64 {
	out := 1.0
	for i := range 3 {
		out *= max(0, min(b.Max[i], c.Max[i])-max(b.Min[i], c.Min[i]))
	}
	return out
}

// Size is the extent along each axis.
func (b Box) Size() [3]float64 { return Sub(b.Max, b.Min) }

// Bounds is the smallest box around all vertices; the zero Box for none.
func (m *Mesh) Bounds() Box {
	if len(m.Vertices) == 0 {
		return Box{}
	}
	b := Box{Min: m.Vertices[0], Max: m.Vertices[0]}
	for _, v := range m.Vertices {
		for i, x := range v {
			b.Min[i] = min(b.Min[i], x)
			b.Max[i] = max(b.Max[i], x)
		}
	}
	return b
}

// Corners are the points of one triangle.
func (m *Mesh) Corners(triangle int) (a, b, c [3]float64) {
	t := m.Triangles[triangle]
	return m.Vertices[t[0]], m.Vertices[t[1]], m.Vertices[t[2]]
}

// Check refuses a mesh that is not the closed surface of a solid: indices and
// numbers in range, every edge used once in each direction, a volume above 0.
func (m *Mesh) Check() error {
	switch {
	case len(m.Triangles) < 4 || len(m.Triangles) > MaxTriangles:
		return core.Invalid("mesh", fmt.Sprintf("%d triangles", len(m.Triangles)), fmt.Sprintf("4 to %d", MaxTriangles))
	case len(m.Vertices) > MaxVertices:
		return core.Invalid("mesh", fmt.Sprintf("%d vertices", len(m.Vertices)), fmt.Sprintf("at most %d", MaxVertices))
	case len(m.Faces) != 0 && len(m.Faces) != len(m.Triangles):
		return core.Invalid("mesh", fmt.Sprintf("%d face numbers", len(m.Faces)), fmt.Sprintf("one for each of %d triangles", len(m.Triangles)))
	}
	for i, v := range m.Vertices {
		for _, x := range v {
			if math.IsNaN(x) || math.Abs(x) > 1e9 {
				return core.Invalid("mesh", fmt.Sprintf("vertex %d at %v", i, v), "finite coordinates up to 1e9 mm")
			}
		}
	}
	if err := m.checkClosed(); err != nil {
		return err
	}
	if v := m.Properties().Volume; !(v > 0) {
		return core.Invalid("mesh", fmt.Sprintf("a volume of %g mm³", v), "triangles counterclockwise seen from outside, around a volume above 0")
	}
	return nil
}

// Edge is a directed edge between two vertices.
type Edge struct{ From, To uint32 }

// Back is the same edge the other way.
func (e Edge) Back() Edge { return Edge{e.To, e.From} }

// Owners are the triangles of a closed surface by their edges.
func (m *Mesh) Owners() map[Edge]int {
	owner := make(map[Edge]int, 3*len(m.Triangles))
	for i, t := range m.Triangles {
		for j, from := range t {
			owner[Edge{from, t[(j+1)%3]}] = i
		}
	}
	return owner
}

func (m *Mesh) checkClosed() error {
	used := make(map[Edge]struct{}, 3*len(m.Triangles))
	for i, t := range m.Triangles {
		for j, from := range t {
			to := t[(j+1)%3]
			if int(from) >= len(m.Vertices) || from == to {
				return core.Invalid("mesh", fmt.Sprintf("triangle %d of vertices %v", i, t), fmt.Sprintf("three different of the %d vertices", len(m.Vertices)))
			}
			if _, twice := used[Edge{from, to}]; twice {
				return core.Invalid("mesh", fmt.Sprintf("edge %d-%d used twice in one direction", from, to), "a closed surface, each edge shared by two triangles")
			}
			used[Edge{from, to}] = struct{}{}
		}
	}
	for e := range used {
		if _, ok := used[e.Back()]; !ok {
			return core.Invalid("mesh", fmt.Sprintf("edge %d-%d with one triangle only", e.From, e.To), "a closed surface, each edge shared by two triangles")
		}
	}
	return nil
}

// Normal is the unit normal of a triangle, zero when it has no area.
func (m *Mesh) Normal(triangle int) [3]float64 {
	a, b, c := m.Corners(triangle)
	n := Cross(Sub(b, a), Sub(c, a))
	if l := Length(n); l > 0 {
		return Scale(n, 1/l)
	}
	return [3]float64{}
}

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

// Unit is a vector of length 1 in the direction of one that is not zero.
func Unit(a [3]float64) [3]float64 { return Scale(a, 1/Length(a)) }

// Welded is the surface with one vertex in the place of those at the two ends of
// each edge without length. Triangles that this folds to lines are gone, and so
// are two that come to lie back to back. What was closed stays closed. Vertices
// that are equal without an edge between them stay apart: there solids touch.
// It is m itself where all edges have a length, and where four triangles would
// come to share an edge, which no solid has.
func (m *Mesh) Welded() *Mesh {
	joined := make([]uint32, len(m.Vertices))
	for v := range joined {
		joined[v] = uint32(v)
	}
	first := func(v uint32) uint32 {
		for joined[v] != v {
			joined[v] = joined[joined[v]]
			v = joined[v]
		}
		return v
	}
	whole := true
	for _, t := range m.Triangles {
		for i, v := range t {
			if to := t[(i+1)%3]; m.Vertices[v] == m.Vertices[to] {
				a, b := first(v), first(to)
				joined[max(a, b)] = min(a, b)
				whole = false
			}
		}
	}
	if whole {
		return m
	}
	out := &Mesh{}
	number := make([]uint32, len(m.Vertices))
	for v, at := range m.Vertices {
		if f := first(uint32(v)); f != uint32(v) {
			number[v] = number[f]
			continue
		}
		number[v] = uint32(len(out.Vertices))
		out.Vertices = append(out.Vertices, at)
	}
	triangles := make([][3]uint32, len(m.Triangles))
	left := make([]bool, len(m.Triangles))
	at := map[[3]uint32]int{} // what is left
	for i, t := range m.Triangles {
		t = fromLeast([3]uint32{number[t[0]], number[t[1]], number[t[2]]})
		triangles[i] = t
		if t[0] == t[1] || t[1] == t[2] || t[2] == t[0] {
			continue
		}
		back := [3]uint32{t[0], t[2], t[1]}
		if other, ok := at[back]; ok {
			left[other] = false
			delete(at, back)
			continue
		}
		left[i], at[t] = true, i
	}
	used := map[Edge]bool{}
	for i, t := range triangles {
		if !left[i] {
			continue
		}
		for j, from := range t {
			e := Edge{from, t[(j+1)%3]}
			if used[e] {
				return m
			}
			used[e] = true
		}
		out.Triangles = append(out.Triangles, t)
		if len(m.Faces) > 0 {
			out.Faces = append(out.Faces, m.Faces[i])
		}
	}
	return out
}

// fromLeast begins a triangle at its least vertex.
func fromLeast(t [3]uint32) [3]uint32 {
	for t[0] != min(t[0], t[1], t[2]) {
		t = [3]uint32{t[1], t[2], t[0]}
	}
	return t
}
