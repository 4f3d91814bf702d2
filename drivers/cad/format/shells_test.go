package format_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/format"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/expect"
)

// tetrahedra are that many small solids in one surface.
func tetrahedra(n int) format.Part {
	m := &mesh.Mesh{}
	one := tetrahedron().Mesh
	for i := range n {
		first := uint32(len(m.Vertices))
		for _, v := range one.Vertices {
			m.Vertices = append(m.Vertices, mesh.Add(v, [3]float64{2 * float64(i%100), 2 * float64(i/100), 0}))
		}
		for _, t := range one.Triangles {
			m.Triangles = append(m.Triangles, [3]uint32{first + t[0], first + t[1], first + t[2]})
		}
	}
	return format.Part{Name: "many", Mesh: m}
}

// stopping cancels as soon as something is written.
type stopping struct {
	bytes.Buffer

	cancel func()
}

func (s *stopping) Write(p []byte) (int, error) {
	s.cancel()
	return s.Buffer.Write(p)
}

func TestSTEPEndsWithItsContext(t *testing.T) {
	many := tetrahedra(100)
	ctx, cancel := context.WithCancel(t.Context())
	out := &stopping{cancel: cancel}
	err := format.WriteSTEP(ctx, out, []format.Part{many})
	expect.True(t, errors.Is(err, context.Canceled) && out.Len() != 0 && out.Len() <= len(step(t, many))/10, "%v after %d bytes", err, out.Len())
	out.Reset()
	err = format.WriteSTEP(ctx, out, []format.Part{many})
	expect.True(t, errors.Is(err, context.Canceled) && out.Len() == 0, "%v after %d bytes", err, out.Len())
}

func BenchmarkSTEPOfManySolids(b *testing.B) {
	for _, n := range []int{1000, 8000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			many := tetrahedra(n)
			for b.Loop() {
				step(b, many)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/solid")
		})
	}
}

func TestEachVoidGoesToTheSmallestSolidAroundIt(t *testing.T) {
	// A hollow box in a hollow box, beside a third one.
	m := &mesh.Mesh{}
	for _, one := range []struct{ at, size float64 }{{0, 100}, {10, -80}, {20, 40}, {25, -20}, {200, 10}} {
		cuboid(m, one.at, one.size)
	}
	text := step(t, format.Part{Name: "nested", Mesh: m})
	voids := regexp.MustCompile(`=BREP_WITH_VOIDS\('nested',#\d+,\(#\d+\)\)`).FindAllString(text, -1) // one each
	expect.True(t, len(voids) == 2 && strings.Count(text, "=MANIFOLD_SOLID_BREP(") == 1, "%q", voids)
}

// cuboid adds a box from a corner on the diagonal of the axes; below 0 the size
// is that of a void.
func cuboid(m *mesh.Mesh, at, size float64) {
	first := uint32(len(m.Vertices))
	for i := range 8 {
		var p [3]float64
		for j := range p {
			p[j] = at + float64(i>>j&1)*math.Abs(size)
		}
		m.Vertices = append(m.Vertices, p)
	}
	for _, q := range [][4]uint32{{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}} {
		if size < 0 {
			q[1], q[3] = q[3], q[1]
		}
		m.Triangles = append(m.Triangles, [3]uint32{first + q[0], first + q[1], first + q[2]}, [3]uint32{first + q[0], first + q[2], first + q[3]})
	}
}
