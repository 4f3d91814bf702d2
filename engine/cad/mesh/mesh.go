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
	Vertices  [][3]float64
	Triangles [][3]uint32
	// Faces numbers the face of each triangle, which is flat unless the kernel is
	// exact; empty when unknown.
	Faces []uint32
}

// Box is an axis-parallel box.
type Box struct {
	Min, Max [3]float64
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

// Creases are the edges between different faces, each once: what a drawing
// shows. Without face numbers they are the edges bent by more than a degree.
func (m *Mesh) Creases() []Edge {
	owner := make(map[Edge]int, 3*len(m.Triangles))
	for i, t := range m.Triangles {
		for j, from := range t {
			owner[Edge{from, t[(j+1)%3]}] = i
		}
	}
	var out []Edge
	for i, t := range m.Triangles {
		for j, from := range t {
			e := Edge{from, t[(j+1)%3]}
			other, ok := owner[e.Back()]
			if ok && e.From > e.To {
				continue
			}
			if !ok || m.bent(i, other) {
				out = append(out, e)
			}
		}
	}
	return out
}

// bent says whether two neighbours are of different faces.
func (m *Mesh) bent(a, b int) bool {
	if len(m.Faces) == len(m.Triangles) && m.Faces[a] == m.Faces[b] {
		return false
	}
	const degree = math.Pi / 180
	return Dot(m.Normal(a), m.Normal(b)) < math.Cos(degree)
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
